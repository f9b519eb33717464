// frazil/schema: the Standard Schema and the JSON Schema of an ID, on their own and in ArkType, valibot and Ajv.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { test } from 'node:test'
import { inspect } from 'node:util'
import { createContext, runInContext } from 'node:vm'
import { Ajv } from 'ajv'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { FrazilError, Layout, Snowflake } from 'frazil'
import * as lite from 'frazil/lite'
import { idJsonSchema, snowflakeId } from 'frazil/schema'
import { bothVersions, install } from './installed.mjs'

/** Validates a value. Returns the output, or an error with the message. */
function verdict(schema, value) {
  const { value: output, issues } = schema['~standard'].validate(value)
  if (issues) {
    assert.equal(issues.length, 1)
    return new Error(issues[0].message)
  }
  return output
}

const GOOD = ['0', '1', '9', '10', '9007199254740993', '1541815603606036480', '999999999999999999', '1000000000000000000', '9223372036854775807']
const BAD_TEXT = [
  ['', /it has 0 characters/],
  ['-0', /'-' at position 0/],
  ['-1', /'-' at position 0/],
  ['+1', /'\+' at position 0/],
  ['00', /leading zeros/],
  ['007', /leading zeros/],
  ['0000000000000000007', /leading zeros/],
  [' 1', /' ' at position 0/],
  ['1 ', /' ' at position 1/],
  ['1\n', /'\\n' at position 1/],
  ['0x1f', /'x' at position 1/],
  ['1e18', /'e' at position 1/],
  ['1.0', /'.' at position 1/],
  ['1_000', /'_' at position 1/],
  ['１２', /'１' at position 0/],
  ['٣', /'٣' at position 0/],
  ['\ud800', /lone surrogate/],
  ['\0', /position 0/],
  ['9223372036854775808', /above 9223372036854775807/],
  ['9999999999999999999', /above 9223372036854775807/],
  ['10000000000000000000', /has 20 characters: .* at most 19/],
  ['1'.repeat(1 << 24), /has 16777216 characters/],
  ['__proto__', /'_' at position 0/],
]
const BAD_VALUES = [
  [1541815603606036480, /number 1541815603606036500, which JavaScript has already rounded: send it as a string, in quotes/],
  [2 ** 53, /already rounded/],
  [2 ** 53 - 1, /JavaScript rounds numbers above 2\^53 - 1: send it as a string/],
  [0, /send it as a string/],
  [-0, /send it as a string/],
  [5.5, /send it as a string/],
  [NaN, /send it as a string/],
  [Infinity, /send it as a string/],
  [5n, /the ID is a bigint: it must be a string of decimal digits/],
  [null, /the ID is null/],
  [undefined, /the ID is undefined/],
  [true, /a boolean/],
  [Symbol('5'), /a symbol/],
  [() => '5', /a function/],
  [{}, /an object/],
  [['5'], /an array/],
  [new Date(5), /a Date/],
  [new String('5'), /an object/],
  [new Number(5), /an object/],
  [Object(5n), /an object/],
  [Object.freeze({ toString: () => '5' }), /an object/],
  [Object.create(null), /an object/],
  [JSON.parse('{ "__proto__": "5", "constructor": "5" }'), /an object/],
  [new Proxy({}, {}), /an object/],
]

test('a schema takes the canonical decimal of an ID, and nothing else', () => {
  for (const id of GOOD) {
    assert.equal(verdict(snowflakeId(), id), id)
    assert.equal(verdict(snowflakeId({ as: 'bigint' }), id), BigInt(id))
  }
  for (const [value, message] of [...BAD_TEXT, ...BAD_VALUES]) {
    for (const as of ['string', 'bigint', undefined]) {
      const said = verdict(snowflakeId({ as }), value)
      assert.ok(said instanceof Error, `${inspect(value).slice(0, 40)} is taken`)
      assert.match(said.message, message)
      assert.ok(said.message.length < 250, said.message)
    }
  }
})

test('no code of a value is run', () => {
  const refuse = () => assert.fail('it is run')
  const hostile = { toString: refuse, valueOf: refuse, toJSON: refuse, [Symbol.toPrimitive]: refuse, get length() { return refuse() }, get then() { return refuse() } }
  assert.ok(verdict(snowflakeId(), hostile) instanceof Error)
})

test('what generators make is taken', () => {
  const ids = new Snowflake('standard', { node: 3, detached: true, clock: 'manual' })
  ids.setTime(Date.now())
  const schema = snowflakeId({ layout: ids.layout, maxAheadMs: 60_000 })
  for (const id of ids.batch(100)) {
    assert.equal(verdict(schema, id), id)
  }
})

test('with a layout: more bits than it has, and times to come, are refused', () => {
  const text = 'time:41@1ms node:10 sequence:12 epoch:2025-01-01'
  for (const layout of [text, new Layout(text), new lite.Layout(text)]) {
    const [past, future] = [-1000, 3600_000].map(ms => new Layout(text).minId(Date.now() + ms))
    const schema = snowflakeId({ layout, maxAheadMs: 60_000 })
    assert.equal(verdict(schema, past), past)
    assert.match(verdict(schema, future).message, /is not an ID yet: its time, 20.*Z, is more than 60000 ms after now/)
    assert.equal(verdict(snowflakeId({ layout }), future), future)
  }
  assert.match(verdict(snowflakeId({ layout: 'js53' }), '1541815603606036480').message, /more bits than the layout's 53/)
  assert.equal(verdict(snowflakeId({ layout: 'js53', as: 'bigint' }), '5'), 5n)
})

test('bad options are typed errors', () => {
  const cases = [
    [{ a: 1 }, 'UNKNOWN_KEY', /the option "a" is none of: as, layout, maxAheadMs/],
    [{ ['__proto__']: 1, constructor: 1 }, 'UNKNOWN_KEY', /none of/],
    [null, 'WRONG_TYPE', /options is null/],
    ['twitter', 'WRONG_TYPE', /options is a string/],
    [[], 'WRONG_TYPE', /options is an array/],
    [{ as: 'number' }, 'OUT_OF_RANGE', /as="number" is none of: string, bigint/],
    [{ as: 1 }, 'OUT_OF_RANGE', /as=number is none of/],
    [{ as: null }, 'OUT_OF_RANGE', /none of/],
    [{ layout: 5 }, 'WRONG_TYPE', /layout is a number: it must be a Layout or its text/],
    [{ layout: {} }, 'WRONG_TYPE', /layout is an object/],
    [{ layout: 'nonsense' }, 'SPEC', /nonsense/],
    [{ maxAheadMs: 5 }, 'SPEC', /maxAheadMs needs a layout/],
    [{ layout: 'twitter', maxAheadMs: -1 }, 'OUT_OF_RANGE', /maxAheadMs=-1/],
    [{ layout: 'twitter', maxAheadMs: '5' }, 'WRONG_TYPE', /maxAheadMs is a string/],
    [{ layout: 'twitter', maxAheadMs: NaN }, 'OUT_OF_RANGE', /maxAheadMs=NaN/],
  ]
  for (const [options, code, message] of cases) {
    assert.throws(() => snowflakeId(options), error => {
      assert.ok(error instanceof lite.FrazilError)
      assert.equal(error.code, code)
      assert.match(error.message, message)
      return true
    })
  }
  assert.equal(verdict(snowflakeId(Object.freeze({ as: undefined })), '5'), '5')
})

test('a schema is frozen, and of use in another realm and from several fields at once', () => {
  const schema = snowflakeId()
  for (const part of [schema, schema['~standard'], schema['~standard'].jsonSchema, idJsonSchema, idJsonSchema.not]) {
    assert.ok(Object.isFrozen(part))
  }
  const { validate } = schema['~standard']
  const foreign = runInContext('[new String("5"), Object("5"), {}, [], new Date(0), "5", 5]', createContext({}))
  const verdicts = Array.from(foreign, value => validate(value).issues === undefined)
  assert.deepEqual(verdicts, [false, false, false, false, false, true, false])
  assert.deepEqual(Object.keys(schema['~standard']).sort(), ['jsonSchema', 'validate', 'vendor', 'version'])
})

test('both builds, and two copies of the package, say the same', async () => {
  const one = install()
  const two = install()
  const [imported] = await one.import('frazil/schema')
  for (const build of [one.require('frazil/schema'), two.require('frazil/schema'), imported]) {
    assert.notEqual(build.snowflakeId, snowflakeId)
    for (const [value] of [...GOOD.map(id => [id]), ...BAD_TEXT, ...BAD_VALUES]) {
      assert.deepEqual(build.snowflakeId()['~standard'].validate(value), snowflakeId()['~standard'].validate(value))
    }
    assert.deepEqual(build.idJsonSchema, idJsonSchema)
  }
})

test('it needs neither the addon nor anything of Node', () => {
  const { folder } = install()
  const program = `
    const { snowflakeId } = require('frazil/schema')
    const loaded = Object.keys(require.cache).filter(file => !file.includes('lite')).map(file => require('path').basename(file))
    console.log(loaded.join(), snowflakeId()['~standard'].validate('5').value)`
  assert.equal(execFileSync(process.execPath, ['-e', program], { cwd: folder, encoding: 'utf8' }), 'schema.js 5\n')
})

test('the JSON Schema takes the same texts as the check, in Ajv of both drafts, and warns of nothing', () => {
  for (const Validator of [Ajv, Ajv2020]) {
    const logged = []
    const log = (...given) => logged.push(given)
    const ajv = new Validator({ strict: true, strictTypes: 'log', logger: { log, warn: log, error: log } })
    const validate = ajv.compile({ type: 'object', properties: { id: idJsonSchema } })
    const max = 2n ** 63n - 1n
    const near = Array.from({ length: 40 }, (_, at) => String(max - 20n + BigInt(at)))
    // The bound with each digit changed by one, up and down.
    const digits = [...String(max)].flatMap((digit, at, all) => [-1, 1]
      .map(step => Number(digit) + step).filter(other => other >= 0 && other <= 9)
      .flatMap(other => ['0', '9', '5'].map(rest => all.slice(0, at).join('') + other + rest.repeat(all.length - at - 1))))
    const texts = [...GOOD, ...BAD_TEXT.map(([text]) => text).filter(text => text !== '\ud800'), ...near, ...digits]
    for (const id of texts) {
      assert.equal(validate({ id }), !(verdict(snowflakeId(), id) instanceof Error), id.slice(0, 40))
    }
    for (const [id] of BAD_VALUES.filter(([value]) => value !== undefined)) {
      assert.equal(validate({ id }), false)
    }
    assert.equal(validate({ id: 1541815603606036480 }), false)
    assert.equal(validate.errors[0].message, 'must be string')
    assert.deepEqual(logged, [])
  }
})

test('the Standard JSON Schema is the same one, a copy each time', () => {
  const { jsonSchema } = snowflakeId()['~standard']
  for (const target of ['draft-07', 'draft-2020-12', 'openapi-3.0']) {
    for (const side of ['input', 'output']) {
      assert.deepEqual(jsonSchema[side]({ target }), idJsonSchema)
    }
  }
  jsonSchema.input({ target: 'draft-07' }).not.pattern = 'changed'
  assert.notEqual(jsonSchema.input({ target: 'draft-07' }).not.pattern, 'changed')
  const bigint = snowflakeId({ as: 'bigint' })['~standard'].jsonSchema
  assert.deepEqual(bigint.input({ target: 'draft-07' }), idJsonSchema)
  assert.throws(() => bigint.output({ target: 'draft-07' }), { code: 'WRONG_TYPE', message: /no bigint/ })
})

for (const [version, { require }] of bothVersions('arktype')) {
  test(`${version} accepts the schema unchanged`, () => {
    const { type } = require('arktype')
    const Order = type({ id: snowflakeId(), customer: snowflakeId({ as: 'bigint' }) })
    assert.deepEqual(Order({ id: '1541815603606036480', customer: '5' }), { id: '1541815603606036480', customer: 5n })
    const refusal = String(Order({ id: 1541815603606036480, customer: '007' }))
    assert.match(refusal, /already rounded/)
    assert.match(refusal, /leading zeros/)
  })
}

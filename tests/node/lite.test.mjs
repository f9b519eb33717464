// frazil/lite does the same as the addon, and needs only the language.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { test } from 'node:test'
import { inspect } from 'node:util'
import { createContext, runInContext } from 'node:vm'
import * as frazil from 'frazil'
import * as lite from 'frazil/lite'
import { here, vectors } from './helper.mjs'
import { cases, show } from './layout_cases.mjs'

const require = createRequire(import.meta.url)

/** Loads the CommonJS build in a realm that has only the language's own globals. */
function bare() {
  const context = createContext(Object.create(null))
  const modules = {}
  const load = name => {
    if (!modules[name]) {
      modules[name] = {}
      const code = readFileSync(join(here, '../../node/lite/cjs', name), 'utf8')
      runInContext(`(function (exports, require) {${code}\n})`, context)(modules[name], load)
    }
    return modules[name]
  }
  return load('./index.js')
}

const builds = { import: lite, require: require('frazil/lite'), 'a realm without globals': bare() }
for (const [name, build] of Object.entries(builds)) {
  for (const [about, check] of Object.entries(cases)) {
    test(`${about}, ${name}`, () => check(build, vectors))
  }
}

test('both builds export the same names, and classes have the same members as the addon\'s', () => {
  const names = ['FrazilError', 'Layout', 'compareIds', 'formatId', 'isId', 'parseId']
  assert.deepEqual(Object.keys(lite).sort(), names)
  assert.deepEqual(Object.keys(require('frazil/lite')).sort(), names)
  const members = type => Object.getOwnPropertyNames(type.prototype).sort()
  // Columns need the addon.
  assert.deepEqual([...members(lite.Layout), 'composeMany', 'decodeMany'].sort(), members(frazil.Layout))
  assert.deepEqual(Object.keys(new lite.Layout('twitter')), ['text'])
  for (const shared of ['formatId', 'parseId', 'Layout']) {
    assert.equal(lite[shared].length, frazil[shared].length)
  }
})

/** Returns the result of a call, or its error. */
function outcome({ FrazilError }, call) {
  try {
    return { gives: call() }
  } catch (error) {
    if (!(error instanceof FrazilError)) {
      throw error
    }
    return { code: error.code, number: error.number, message: error.message }
  }
}

/** Asserts that lite returns the same as the addon, with the same message for printable ASCII. Lite suggests no similar names, to stay small. */
function same(about, call, { message = true } = {}) {
  const [native, pure] = [frazil, lite].map(build => outcome(build, () => call(build)))
  if (!message) {
    delete native.message
    delete pure.message
  }
  if (native.message) {
    native.message = native.message.replace(/ \(did you mean [^)]*\?\)/, '')
  }
  assert.equal(show(pure), show(native), about)
  return native
}

// A small generator of random numbers with a fixed seed, so that a failure can be repeated.
let state = 20250101
function below(limit) {
  state = (Math.imul(state ^ (state >>> 15), 0x2c1b3c6d) + 0x9e3779b9) | 0
  return (((state ^ (state >>> 13)) >>> 0) / 2 ** 32 * limit) | 0
}
const pick = list => list[below(list.length)]
const bigBelow = bits => BigInt.asUintN(bits, (BigInt(below(2 ** 31)) << 40n) ^ (BigInt(below(2 ** 31)) << 20n) ^ BigInt(below(2 ** 31)))

function randomLayout() {
  const names = ['node', 'worker', 'datacenter', 'a', 'b_2', 'constructor', 'shard'].filter(() => below(3) === 0)
  let left = 63 - pick([41, 41, 39, 31, 28, 40, 1, 50])
  const timeBits = 63 - left
  const fields = []
  for (const name of ['sequence', ...names]) {
    const bits = Math.min(1 + below(pick([4, 12, 22, 62])), left - (names.length + 1 - fields.length - 1))
    if (bits > 0) {
      fields.splice(below(fields.length + 1), 0, `${name}:${bits}`)
      left -= bits
    }
  }
  const tick = pick(['1ms', '10ms', '1s', '7s', '1000ms', '3600000ms', '1h', '1m'])

  const dates = ['2025-01-01', '2024-02-29T23:59:59.999+05:30', '9999-12-30', '1969-12-31t23:59:60z']
  const epoch = pick(['1970-01-01', '0001-01-01', '1288834974657', ...dates])
  return `time:${timeBits}@${tick} ${fields.join(' ')} epoch:${epoch}`
}

const WIDE = [
  'time:53@1ms node:5 sequence:5 epoch:1970-01-01', 'time:5@1ms node:53 sequence:5 epoch:1970-01-01', 'time:5@1ms node:54 sequence:4 epoch:1970-01-01',
  'time:5@1ms sequence:53 epoch:1970-01-01', 'time:9@1ms sequence:54 epoch:1970-01-01',
]

const describe = layout => [
  String(layout), layout.epoch, layout.expiresAt, layout.fieldBits, layout.idsPerSecond, layout.nodes, layout.sequenceBits, layout.tickMs,
  layout.timeBits,
]

test('random layouts, times and IDs', () => {
  const seen = {}
  for (let round = 0; round < 300; round++) {
    const text = below(12) === 0 ? pick(vectors('layouts').valid).text : below(8) === 0 ? pick(WIDE) : randomLayout()
    const outcomeOf = same(text, ({ Layout }) => describe(new Layout(text)))
    assert.ok(outcomeOf.gives, `${text}: ${outcomeOf.message}`)
    const layouts = new Map([frazil, lite].map(build => [build, new build.Layout(text)]))
    const layout = layouts.get(frazil)
    const [first, last] = [layout.epoch.getTime(), layout.expiresAt?.getTime() ?? 253402300799999]
    for (let at = 0; at < 8; at++) {
      const time = pick([
        first - 1, first, last - 1, last, first + below(2 ** 31), first + Math.floor((last - first) * (below(1000) / 1000)),
        253402300800000,
      ])
      const values = Object.fromEntries(Object.entries(layout.fieldBits).map(([name, bits]) => [name, bigBelow(bits)]))
      const sequence = bigBelow(layout.sequenceBits + (below(20) === 0))
      const id = pick([String(bigBelow(63)), bigBelow(63), Number(bigBelow(53)), String(Number(bigBelow(63)))])
      const outcomes = [
        same(`${text} ${time}`, build => layouts.get(build).minId(time)),
        same(`${text} ${time}`, build => layouts.get(build).maxId(new Date(time))),
        same(`${text} ${show(values)}`, build => layouts.get(build).compose({ ...values, time, sequence })),
        same(`${text} ${id}`, build => layouts.get(build).decode(id)),
      ]
      for (const { gives, code } of outcomes) {
        seen[code ?? 'gives'] = (seen[code ?? 'gives'] ?? 0) + 1
        if (typeof gives === 'string') {
          assert.ok(same(`${text} ${gives}`, build => layouts.get(build).decode(gives)).gives)
        }
      }
    }
  }
  for (const code of ['gives', 'BEFORE_EPOCH', 'LAYOUT_EXPIRED', 'OUT_OF_RANGE', 'ID_INVALID']) {
    assert.ok(seen[code] > 50, `${code} came up: ${show(seen)}`)
  }
})

test('texts of layouts with faults', () => {
  const parts = [
    'time:41@1ms', 'time:41@0ms', 'time:41@1', 'time:41', 'time:x@1s', 'time:41@10y', 'time:41@3601s', 'time:41@99999999999999999999s',
    'time:0@1ms', 'time:64@1h',
    'time:41@87658h', 'time:41@87659h',
    'node:10', 'node:010', 'node:0', 'node:', 'node:1a', ':5', 'node', 'Node:5', 'sequence:12', 'sequence:63', 'store:3', 'id:3',
    `${'n'.repeat(33)}:1`, 'x y:5',
    'epoch:0', 'epoch:-0', 'epoch:007', 'epoch:2025-01-01', 'epoch:2025-02-29', 'epoch:2024-02-29', 'epoch:2025-13-01', 'epoch:2025-06-31',
    'epoch:2025-00-01',
    'epoch:0000-12-31', 'epoch:0001-01-01', 'epoch:-62135596800001', 'epoch:253402300800000', 'epoch:+5', 'epoch:1e3', 'epoch:', 'epoch:-',
    'epoch:2025-01-01T00:00:00Z', 'epoch:2025-01-01T24:00:00Z', 'epoch:2025-01-01T23:60:00Z', 'epoch:2025-01-01T23:59:61Z',
    'epoch:2016-12-31T23:59:60Z',
    'epoch:2025-01-01T00:00:00', 'epoch:2025-01-01T00:00:00.123Z', 'epoch:2025-01-01T00:00:00.1230Z', 'epoch:2025-01-01T00:00:00.1234Z',
    'epoch:2025-01-01T00:00:00.1234567890Z', 'epoch:2025-01-01T00:00:00.Z', 'epoch:2025-01-01T00:00:00+23:59',
    'epoch:2025-01-01T00:00:00-00:00',
    'epoch:2025-01-01t00:00:00.5z', 'epoch:2025-01-01T00:00:00+2:00', 'epoch:2025-1-1', 'epoch:25-01-01', 'epoch:-2025-01-01', 'epoch:now',
    '"', "'", '=',
  ]
  const codes = new Set()
  const compare = (text, options) => codes.add(same(text, ({ Layout }) => describe(new Layout(text)), options).code ?? 'gives')
  for (const part of parts) {
    compare(part)
    compare(`time:41@1ms node:10 sequence:12 ${part}`)
    compare(`time:41@1ms ${part} sequence:12 epoch:1970-01-01`)
    compare(`${part} node:10 sequence:12 epoch:1970-01-01`)
  }
  for (let round = 0; round < 3000; round++) {
    compare(Array.from({ length: 1 + below(6) }, () => pick(parts)).join(pick([' ', '  ', '\t', '\n', ','])))
  }
  for (const strange of [
    '', ' ', 'twitter ', '\tleaf\n', '\u00a0twitter\u2003', '\ufefftwitter', '\u0085twitter', '\vtwitter', 'Twitter', 'x'.repeat(1000),
    'x:'.repeat(1 << 20), 'é:1', '\ud800', '１２', '\0', 'toString', '__proto__', 'constructor', 'time:41@1ms\vsequence:1 epoch:1970-01-01',
    'time:41@1ms sequence:1\u00a0epoch:1970-01-01', 'time:４１@1ms sequence:1 epoch:1970-01-01',
  ]) {
    compare(strange, { message: false })
  }
  assert.deepEqual([...codes].sort(), ['LAYOUT_INVALID', 'OUT_OF_RANGE', 'SPEC', 'gives'])
})

class Empty {}
const OTHERS = [
  undefined, null, true, {}, [], [1], Symbol('s'), () => '1', new Map(), new Date(0), new Date(NaN), /x/, new Proxy({}, {}),
  new String('1'), new Uint8Array(8), new Empty(),
  Object.create(Date.prototype), Object.create(null), runInContext('new Date(5)', createContext({})),
  runInContext('({ time: 5 })', createContext({})),
]
const NUMBERS = [
  0, -0, 1, -1, 31, 32, 4096, 0.5, -1.5, NaN, 2 ** 53 - 1, 2 ** 53, -(2 ** 53), 253402300799999, 253402300800000, 1656432460105,
  0n, -1n, 31n, 32n, 2n ** 53n + 1n, 2n ** 62n, 2n ** 63n - 1n, 2n ** 63n, -(2n ** 63n), -(2n ** 63n) - 1n, 2n ** 64n + 1n, 10n ** 50n,
]
// JavaScript and Rust print these values differently, or see different prototypes.
const ODD = [Infinity, -Infinity, 1e21, Number.MAX_VALUE, 1e-7, new Proxy(new Date(0), {})]
const TEXTS = [
  '', '0', '00', '1', '-1', '+1', ' 1', '1 ', '1.0', '1e3', '0x1f', '9223372036854775807', '9223372036854775808', '0000000000000000001',
  '00000000000000000001', '1'.repeat(30),
  'hex', 'Hex', 'decimal', 'base62', 'base32', 'toString', '0000000000000000', 'ABCDEFabcdef0123', '7fffffffffffffff', '8000000000000000',
  '0000000000oiL', '000000000000u',
  '1ASD13XH1F800K', ' 1asd-l3xh-1f8Ook', '1ASD13HX1F800K', '1ASD13XH1F800', '1ASD13XH1F800K7', 'order_1ASD13XH1F800K', 'ORDER_order_', 'order_', 'K_',
  '1ptWyK4WgZU', 'zzzzzzzzzzz', 'AzL8n0Y58m7', 'AzL8n0Y58m8', 'twitter',
]
const STRANGE_TEXTS = [
  '\ud800', 'a\udc00b', '\u{1F98A}', '１２', '\0', '\n', '"', "'", 'é'.repeat(100), 'x'.repeat(1 << 22),
  '0000000000\u212A', '000000000000\u0130', '000000000000\u0131', '000000000000\u017f',
]

test('bad input, by every entry', () => {
  const twitter = new Map([frazil, lite].map(build => [build, new build.Layout('twitter')]))
  const good = { time: 1656432460105, datacenter: 11, worker: 26, sequence: 0 }
  const calls = [
    (build, value) => String(new build.Layout(value)),
    (build, value) => twitter.get(build).decode(value),
    (build, value) => twitter.get(build).minId(value),
    (build, value) => twitter.get(build).maxId(value),
    (build, value) => twitter.get(build).equals(value),
    (build, value) => twitter.get(build).compose(value),
    (build, value) => twitter.get(build).compose({ ...good, time: value }),
    (build, value) => twitter.get(build).compose({ ...good, worker: value }),
    (build, value) => twitter.get(build).compose({ ...good, sequence: value }),
    (build, value) => twitter.get(build).compose({ ...good, [String(value).slice(0, 100)]: 1 }),
    (build, value) => twitter.get(build).compose({ [String(value).slice(0, 100)]: value, ...good }),
    ...['decimal', 'base62', 'base32', 'hex', 'check', 'Hex', undefined].flatMap(format => [
      (build, value) => build.formatId(value, format),
      (build, value) => build.parseId(value, format),
      (build, value) => build.parseId(value, format, 'Order_'),
      (build, value) => build.parseId('order_1ASD-13XH 1F800K', format, value),
    ]),
    (build, value) => build.formatId('1', value),
    (build, value) => build.parseId('1', value),
    ...Object.entries(Object.getOwnPropertyDescriptors(lite.Layout.prototype))
      .filter(([name]) => name !== 'constructor')
      .map(([name]) => (build, value) => {
        const { value: method, get } = Object.getOwnPropertyDescriptor(build.Layout.prototype, name)
        return (method ?? get).call(value, 1)
      }),
  ]
  const counted = {}
  for (const [values, options] of [[[...OTHERS, ...NUMBERS, ...TEXTS], {}], [[...ODD, ...STRANGE_TEXTS], { message: false }]]) {
    for (const value of values) {
      for (const call of calls) {
        if ((typeof value === 'object' || typeof value === 'symbol') && String(call).includes('String(value)')) {
          continue
        }
        const about = `${call} of ${inspect(value).slice(0, 100)}`
        const { code = 'gives' } = same(about, build => call(build, value), options)
        counted[code] = (counted[code] ?? 0) + 1
      }
    }
  }
  // Lite has only these codes, because the others are about minting.
  const codes = [
    'BEFORE_EPOCH', 'ID_INVALID', 'LAYOUT_EXPIRED', 'LAYOUT_INVALID', 'NODE_MISSING', 'OUT_OF_RANGE', 'SPEC', 'UNKNOWN_KEY', 'WRONG_TYPE',
    'gives',
  ]
  assert.deepEqual(Object.keys(counted).sort(), codes, show(counted))
  const shown = outcome(lite, () => new lite.Layout(`x:${'y'.repeat(1 << 20)}`))
  assert.ok(shown.message.length < 300, shown.message)

  // An exception of the caller's own code is passed on unchanged.
  const mine = new Error('mine')
  const hostile = { get worker() { throw mine } }
  assert.throws(() => twitter.get(lite).compose(hostile), error => error === mine)
  assert.throws(() => lite.Layout('twitter'), TypeError)
})

test('compareIds sorts like the numbers, in both packages alike', () => {
  const sorted = ['0', '9', '10', '9007199254740993', '9223372036854775806', '9223372036854775807']
  for (const { compareIds } of [lite, frazil]) {
    assert.deepEqual([...sorted].reverse().sort(compareIds), sorted)
    assert.deepEqual([10n, '9', 3].sort(compareIds), [3, '9', 10n])
    assert.deepEqual(['10', '9'].sort(), ['10', '9'], 'as plain text they do not')
    assert.equal(compareIds('0000000000000000007', 7n), 0)
    assert.deepEqual([compareIds.name, compareIds.length], ['compareIds', 2])
  }
  const bad = ['x', '', '-1', '01', ' 1', '9223372036854775808', -1, -1n, 1n << 63n, 2 ** 53, 1541815603606036480]
  const codes = new Map([...bad.map(id => [id, 'ID_INVALID']), ...[null, undefined, true, {}, Symbol('id'), 0.5, NaN].map(id => [id, 'WRONG_TYPE'])])
  for (const [id, code] of codes) {
    for (const given of [['1', id], [id, '1']]) {
      const [ours, theirs] = [lite, frazil].map(of => outcome(of, () => of.compareIds(...given)))
      assert.equal(ours.code, code, String(id))
      assert.deepEqual(ours, theirs, String(id))
    }
  }
})

test('isId is true for the values that decode accepts, up to an instant', () => {
  const { Layout, isId } = lite
  const [twitter, js53] = [new Layout('twitter'), new Layout('js53')]
  for (const value of [...OTHERS, ...NUMBERS, ...ODD, ...TEXTS, ...STRANGE_TEXTS]) {
    for (const layout of [twitter, js53]) {
      assert.equal(isId(value, layout), 'gives' in outcome(lite, () => layout.decode(value)), `${inspect(value).slice(0, 100)}`)
    }
  }
  const id = '1541815603606036480'
  assert.deepEqual([isId(id, twitter), isId(id, js53)], [true, false])
  assert.deepEqual([1656432460104, 1656432460105, new Date(1656432460105)].map(latest => isId(id, twitter, latest)), [false, true, true])
  assert.equal(isId('no ID', twitter, 5), false)
  assert.equal(outcome(lite, () => isId(id, 'twitter')).code, 'WRONG_TYPE')
  assert.equal(outcome(lite, () => isId('no ID', twitter, NaN)).code, 'OUT_OF_RANGE')
  assert.equal(outcome(lite, () => isId('no ID', twitter, '2025')).code, 'WRONG_TYPE')
  const mine = new Error('mine')
  const hostile = new Layout('twitter')
  hostile.decode = () => { throw mine }
  assert.throws(() => isId(id, hostile), error => error === mine)
})

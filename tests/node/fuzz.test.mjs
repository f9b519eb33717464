// 20,000 random calls of all exports, with random and hostile arguments. Each call returns a value or throws a FrazilError with a reason.
// IDs always increase. A failure is printed with the seed that repeats it.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import * as frazil from 'frazil'
import { manual } from './helper.mjs'

const { FrazilError, Layout, Numbers, Segment, Snowflake, errors, formatId, parseId } = frazil
const CALLS = 20_000
const START = 1700000000000
// Methods that random calls leave out, because they would end or stop the objects.
const ENDS = ['constructor', 'close', 'closeAsync', 'setTime', 'observe', 'releaseNodeAsync', 'discardAsync']
const codes = new Set(errors.map(({ code }) => code))
const layouts = ['twitter', 'standard', 'sonyflake', 'js53', 'time:2@1h a:2 b:54 sequence:5 epoch:2025-01-01'].map(text => new Layout(text))

/** Thrown by an argument of a call; the call must throw it unchanged. */
class Mine extends Error {}

/** Makes a generator whose tick has room for all calls, and the function by which callbacks mint from it. */
function stage() {
  const ids = manual('layout="time:31@1s node:2 sequence:30 epoch:2020-01-01" start=zero node=1', START)
  let last = -1n
  const check = id => {
    assert.ok(id > last, `${last} is followed by ${id}`)
    last = id
  }
  const forms = [
    () => check(BigInt(ids.next())), () => check(ids.nextBigInt()), () => ids.batch(20).forEach(id => check(BigInt(id))),
    () => check(BigInt(parseId(ids.text('base62'), 'base62'))), () => check(BigInt(`0x${ids.text('hex')}`)),
  ]
  return { ids, mint: () => forms.forEach(form => form()), observe: () => check(ids.nextBigInt()) }
}

/** Values that call back while they are read. */
const hostile = ({ mint, ids }) => fc.constantFrom(
  { get maxWaitMs() { mint(); return 0 } },
  { get maxWaitMs() { throw new Mine() } },
  { get worker() { mint(); return 7 }, datacenter: 1, detached: true },
  { get signal() { mint(); return undefined } },
  { signal: { get aborted() { throw new Mine() } } },
  { signal: { aborted: true, reason: new Mine(), addEventListener() {}, removeEventListener() {} } },
  { get time() { mint(); return START }, sequence: 1, datacenter: 1, worker: 1 },
  { get time() { throw new Mine() } },
  { toString() { mint(); return '1' }, valueOf() { mint(); return 1 }, [Symbol.toPrimitive]() { mint(); return 1 } },
  { toString() { throw new Mine() }, valueOf() { throw new Mine() }, toJSON() { throw new Mine() } },
  new Proxy({}, { ownKeys() { throw new Mine() } }),
  new Proxy({}, { getPrototypeOf() { throw new Mine() } }),
  new Proxy({ maxWaitMs: 0 }, { get(target, key) { mint(); return Reflect.get(target, key) } }),
  new Proxy([], {}),
  ids, new Proxy(ids, {}), Object.create(ids), ids.layout, Snowflake, Snowflake.prototype,
  Object.assign(Object.create(null), { maxWaitMs: 0 }),
)

const likely = fc.oneof(
  fc.bigInt({ min: -(1n << 65n), max: 1n << 65n }), fc.bigInt({ min: 0n, max: (1n << 63n) - 1n }).map(String),
  fc.maxSafeInteger(), fc.double(), fc.nat(4000),
  fc.date({ noInvalidDate: false }), fc.date({ min: new Date('2011-01-01'), max: new Date('2060-01-01') }).map(Number),
  fc.constantFrom('decimal', 'base62', 'base32', 'hex', 'check', 'twitter', 'twitter datacenter=1 worker=2 detached=true'),
  fc.constantFrom('layout="time:41@1ms a:10 sequence:12 epoch:2025-01-01"', ...codes), fc.stringMatching(/^[0-9a-f]{24}$/),
  fc.uuid(), fc.uuid().map(uuid => `{${uuid}}`), fc.string({ unit: 'binary' }), fc.string(),
  fc.uint8Array({ minLength: 15, maxLength: 17 }), fc.nat(64).map(length => new BigInt64Array(length)), fc.constantFrom(...layouts),
  fc.record({ time: fc.date(), sequence: fc.nat(5000), datacenter: fc.nat(40), worker: fc.nat(40) }, { requiredKeys: [] }),
  fc.record({ datacenter: fc.nat(40), worker: fc.nat(40), detached: fc.boolean(), rollback: fc.string() }, { requiredKeys: [] }),
  fc.record({ maxWaitMs: fc.constantFrom(0, 1, '1', null, -1) }),
)

/** Functions that change the whole process. */
const SWEEPING = ['closeOnSigterm', 'restored']

/** Every function, and every method of each kind of object, by its name. */
function calls({ ids }, numbers) {
  const exported = Object.entries(frazil).filter(([name, value]) => typeof value === 'function' && !SWEEPING.includes(name))
  const functions = exported.map(([name, value]) => [name, /^[A-Z]/.test(name) ? (...given) => new value(...given) : value])
  const opens = [['Snowflake.open', (...given) => Snowflake.open(given[0], { maxWaitMs: 0, ...Object(given[1]) })]]
  const methods = [['ids', ids], ['numbers', numbers], ...layouts.map(layout => ['layout', layout])].flatMap(([name, object]) => {
    const type = Object.getPrototypeOf(object)
    const above = object instanceof Numbers ? Numbers.prototype : type
    const names = Object.getOwnPropertyNames(above).filter(name => !ENDS.includes(name))
    return names.map(method => [`${name}.${method}`, (...given) => {
      const value = object[method]
      return typeof value === 'function' ? object[method](...given) : value
    }])
  })
  return [...functions, ...opens, ...methods]
}

/** Asserts that a call was refused with an error of the table that has a message, or with the error of the caller's own code. */
function assertRefusal(name, error) {
  if (error instanceof Mine) {
    return
  }
  assert.ok(error instanceof FrazilError, `${name}: ${error?.stack ?? error}`)
  assert.ok(codes.has(error.code) && error.code !== 'INTERNAL', `${name}: ${error.stack}`)
  assert.ok(error.message.length > 5 && error.message.length < 3000, `${name}: ${error.message}`)
  assert.deepEqual(Object.keys(error).filter(key => !['code', 'number', 'retryAfterMs', 'written'].includes(key)), [])
}

test(`${CALLS} random calls`, async () => {
  const set = stage()
  const numbers = await Segment.open('fuzz', { store: 'memory', namespace: 'node-fuzz' })
  const table = calls(set, numbers)
  const kinds = ['BigInt', 'Date', 'Map', 'Set', 'NullPrototype', 'ObjectString', 'SparseArray', 'TypedArray']
  const anything = fc.anything(Object.fromEntries(kinds.map(kind => [`with${kind}`, true])))
  const argument = fc.oneof({ weight: 5, arbitrary: likely }, { weight: 2, arbitrary: hostile(set) }, { weight: 2, arbitrary: anything })
  const refused = new Map()
  let given = 0
  const property = fc.asyncProperty(fc.constantFrom(...table), fc.array(argument, { maxLength: 4 }), async ([name, call], values) => {
    try {
      const value = await call(...values)
      given++
      if (name === 'layout.decode') {
        assert.equal(typeof value.id, 'string')
      }
    } catch (error) {
      assertRefusal(name, error)
      refused.set(error.code, (refused.get(error.code) ?? 0) + 1)
    }
    set.observe()
  })
  await fc.assert(property, { numRuns: CALLS })
  // Both outcomes have occurred: values and refusals.
  assert.ok(given > CALLS / 20 && refused.size > 5, `${given} gave a value; ${[...refused]}`)
})

test('composed IDs and their texts round-trip in every layout and form', () => {
  const instants = fc.integer({ min: Date.parse('2025-02-01'), max: Date.parse('2040-01-01') })
  fc.assert(fc.property(fc.constantFrom(...layouts.slice(0, 4)), instants, fc.nat(), fc.nat(), fc.nat(), (layout, instant, sequence, ...values) => {
    const named = Object.entries(layout.fieldBits).map(([name, bits], at) => [name, values[at] % 2 ** bits])
    const parts = { time: instant, sequence: sequence % 2 ** layout.sequenceBits, ...Object.fromEntries(named) }
    const id = layout.compose(parts)
    const decoded = layout.decode(id)
    assert.ok(decoded.time <= instant && instant < decoded.time.getTime() + layout.tickMs)
    assert.deepEqual({ ...decoded.fields }, Object.fromEntries(named))
    assert.equal(layout.compose({ ...parts, time: decoded.time }), id)
    assert.ok(BigInt(layout.minId(instant)) <= BigInt(id) && BigInt(id) <= BigInt(layout.maxId(instant)))
    for (const format of ['decimal', 'base62', 'base32', 'hex', 'check']) {
      assert.equal(parseId(formatId(id, format), format), id)
    }
  }), { numRuns: 3000 })
})

// Many IDs in typed arrays: each row is what the calls for one ID give, and bad arrays are refused.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { FrazilError, Layout } from 'frazil'
import { refused, twitter } from './helper.mjs'

const KNOWN = 1541815603606036480n
const layouts = [
  'twitter', 'sonyflake', 'js53', 'time:41@1ms a:3 sequence:5 b:14 epoch:1950-01-01',
  'time:41@1h node:2 sequence:8 epoch:2025-01-01', 'time:2@1h a:2 b:54 sequence:5 epoch:2025-01-01',
].map(text => new Layout(text))
const width = layout => layout.timeBits + layout.sequenceBits + Object.values(layout.fieldBits).reduce((sum, bits) => sum + bits)
const note = (where, count) => `${where} is ${count === 1 ? 'the only bad row' : `the first of ${count} bad rows`}`

/** The outcome of a call: its value, or the code of its error. */
function outcome(call) {
  try {
    return call()
  } catch (error) {
    assert.ok(error instanceof FrazilError, error.stack)
    return error
  }
}

test('rows of decodeMany equal decode', () => {
  const bits = fc.bigInt({ min: 0n, max: (1n << 64n) - 1n })
  fc.assert(fc.property(fc.constantFrom(...layouts), fc.array(bits, { maxLength: 40 }), fc.boolean(), fc.boolean(), (layout, numbers, unsigned, any) => {
    // Numbers of the layout's width, and any.
    const values = numbers.map((number, at) => any && at % 7 === 0 ? number : BigInt.asUintN(width(layout), number))
    const ids = (unsigned ? BigUint64Array : BigInt64Array).from(values)
    const single = Array.from(ids, id => outcome(() => layout.decode(id)))
    const first = single.findIndex(parts => parts instanceof FrazilError)
    const many = outcome(() => layout.decodeMany(ids))
    if (first >= 0) {
      assert.equal(many.code, single[first].code)
      assert.ok(many.message.endsWith(note(`ids[${first}]`, single.filter(parts => parts instanceof FrazilError).length)), many.message)
      return
    }
    assert.deepEqual(Object.keys(many), ['time', ...Object.keys(layout.fieldBits), 'sequence', 'tick'])
    for (const [name, column] of Object.entries(many)) {
      assert.ok(column instanceof BigInt64Array && column.length === ids.length)
      single.forEach((parts, row) => assert.equal(column[row], BigInt(name === 'time' ? parts.time.getTime() : parts[name]), name))
    }
    const { tick, ...parts } = many
    // The time of a tick is its start, and composes the same ID.
    assert.deepEqual(layout.composeMany(parts), BigInt64Array.from(values))
  }), { numRuns: 500 })
})

test('rows of composeMany equal compose', () => {
  const numbers = fc.bigInt({ min: -3n, max: (1n << 63n) - 1n })
  const rows = fc.array(fc.array(numbers, { minLength: 4, maxLength: 4 }), { minLength: 1, maxLength: 30 })
  fc.assert(fc.property(fc.constantFrom(...layouts), rows, fc.boolean(), (layout, rows, any) => {
    const bits = { sequence: layout.sequenceBits, ...layout.fieldBits }
    const columns = { time: new BigInt64Array(rows.length) }
    for (const [at, name] of Object.keys(bits).entries()) {
      columns[name] = BigInt64Array.from(rows, (row, i) => any && i % 5 === 3 ? row[at] : BigInt.asUintN(bits[name], row[at]))
    }
    const span = BigInt((layout.expiresAt ?? new Date('9999-12-31T23:59:59.999Z')) - layout.epoch)
    // With any values, some instants are one off the layout's.
    rows.forEach((row, i) => { columns.time[i] = BigInt(layout.epoch.getTime()) + (any && i % 6 === 1 ? [-1n, span + 1n][i % 2] : (row[3] + 3n) % span) })
    const single = rows.map((_, row) => outcome(() => {
      const { time, ...fields } = Object.fromEntries(Object.entries(columns).map(([name, column]) => [name, column[row]]))
      return layout.compose({ time: Number(time), ...fields })
    }))
    const first = single.findIndex(id => id instanceof FrazilError)
    const many = outcome(() => layout.composeMany(columns))
    if (first < 0) {
      assert.deepEqual(many, BigInt64Array.from(single, BigInt))
      return
    }
    assert.ok(many.message.endsWith(note(`parts[${first}]`, single.filter(id => id instanceof FrazilError).length)), many.message)
    // A row with several bad values may be refused for another one of them.
    assert.ok(['OUT_OF_RANGE', 'BEFORE_EPOCH', 'LAYOUT_EXPIRED'].includes(many.code), many.message)
  }), { numRuns: 500 })
})

test('columns of several blocks', () => {
  for (const count of [0, 1, 511, 512, 513, 2047, 2048, 2049, 300000]) {
    const ids = BigInt64Array.from({ length: count }, (_, row) => KNOWN + BigInt(row))
    const { tick, ...parts } = twitter.decodeMany(ids)
    assert.equal(parts.sequence.findIndex((value, row) => value !== BigInt(row % 4096)), -1)
    assert.deepEqual(twitter.composeMany(parts), ids)
  }
})

test('fields and out of decodeMany', () => {
  const ids = BigInt64Array.of(KNOWN, KNOWN + 1n)
  assert.deepEqual(twitter.decodeMany(ids, { fields: ['sequence', 'time'] }), { sequence: BigInt64Array.of(0n, 1n), time: BigInt64Array.of(1656432460105n, 1656432460105n) })
  assert.deepEqual(Object.keys(twitter.decodeMany(ids, { fields: ['sequence', 'time'] })), ['sequence', 'time'])
  assert.deepEqual(twitter.decodeMany(ids, { fields: [] }), {})
  assert.deepEqual(twitter.decodeMany(ids, undefined), twitter.decodeMany(ids, {}))
  const out = { worker: new BigInt64Array(2), tick: new BigUint64Array(2) }
  const all = twitter.decodeMany(ids, { out })
  assert.ok(all.worker === out.worker && all.tick === out.tick && Object.keys(all).length === 2)
  assert.deepEqual(out, { worker: BigInt64Array.of(26n, 26n), tick: BigUint64Array.of(367597485448n, 367597485448n) })
  out.tick.fill(0n)
  assert.deepEqual(Object.keys(twitter.decodeMany(ids, { fields: ['worker'], out })), ['worker'])
  assert.equal(out.tick[0], 0n)
  // The result is an earlier one, written again.
  const reused = twitter.decodeMany(ids)
  assert.equal(twitter.decodeMany(BigInt64Array.of(1n, 2n), { out: reused }).time, reused.time)
  assert.deepEqual(reused.sequence, BigInt64Array.of(1n, 2n))

  refused('UNKNOWN_KEY', () => twitter.decodeMany(ids, { fields: ['workers'] }), 'did you mean worker', 'time, datacenter, worker, sequence, tick')
  refused('UNKNOWN_KEY', () => twitter.decodeMany(ids, { field: [] }), 'did you mean fields')
  refused('UNKNOWN_KEY', () => twitter.decodeMany(ids, { out: { node: new BigInt64Array(2) } }))
  refused('SPEC', () => twitter.decodeMany(ids, { fields: ['time', 'time'] }), 'given twice')
  refused('WRONG_TYPE', () => twitter.decodeMany(ids, { fields: ['time'], out: {} }), 'out has no array for the column time')
  for (const fields of ['time', null, 1, {}, new Set(['time']), [1], [undefined], new Array(3), new Proxy({}, {})]) {
    refused('WRONG_TYPE', () => twitter.decodeMany(ids, { fields }), 'fields')
  }
  for (const options of [null, 1, 'out', [], new Map(), new BigInt64Array(2)]) {
    refused('WRONG_TYPE', () => twitter.decodeMany(ids, options), 'options')
  }
  refused('UNKNOWN_KEY', () => twitter.decodeMany(ids, { fields: ['\ud800'] }), 'lone surrogate')
})

test('arrays of other types and lengths are refused', () => {
  const wrong = [
    undefined, null, 1, 1n, 'x', [], [1n], {}, new ArrayBuffer(16), new DataView(new ArrayBuffer(16)), Buffer.alloc(16), new Uint8Array(16),
    new Int32Array(4), new Float64Array(2), new Proxy(new BigInt64Array(2), {}), Object.create(BigInt64Array.prototype),
    { length: 2, 0: 1n, 1: 2n },
  ]
  const ids = BigInt64Array.of(KNOWN, KNOWN)
  const { tick, ...parts } = twitter.decodeMany(ids)
  for (const array of wrong) {
    refused('WRONG_TYPE', () => twitter.decodeMany(array), 'ids', 'BigInt64Array')
    if (array !== undefined) {
      refused('WRONG_TYPE', () => twitter.decodeMany(ids, { out: { time: array } }), 'out.time', 'BigInt64Array')
      refused('WRONG_TYPE', () => twitter.composeMany({ ...parts, worker: array }), 'parts.worker', 'BigInt64Array')
      refused('WRONG_TYPE', () => twitter.composeMany({ time: array, ...parts, time: array }), 'parts.time', 'BigInt64Array')
    }
  }
  refused('WRONG_TYPE', () => twitter.decodeMany(ids, { out: { time: new BigInt64Array(3) } }), 'out.time must have 2 numbers, as many as ids, not 3')
  refused('WRONG_TYPE', () => twitter.composeMany({ ...parts, sequence: new BigInt64Array(1) }), 'parts.sequence must have 2 numbers, as many as parts.time, not 1')
  refused('NODE_MISSING', () => twitter.composeMany({ time: parts.time }), 'datacenter')
  refused('NODE_MISSING', () => twitter.composeMany({ ...parts, worker: undefined }), 'worker')
  refused('UNKNOWN_KEY', () => twitter.composeMany({ ...parts, tick }), 'tick')
  refused('OUT_OF_RANGE', () => twitter.composeMany({ ...parts, worker: BigInt64Array.of(1n, -1n) }), 'worker=-1 is out of range: 5 bits allow 0 to 31; parts[1] is the only bad row')
  refused('ID_INVALID', () => twitter.decodeMany(BigUint64Array.of(1n, 2n ** 64n - 1n)), 'ids[1]=18446744073709551615')
  for (const parts of [undefined, null, 1, [], new Map(), ids]) {
    refused('WRONG_TYPE', () => twitter.composeMany(parts), 'parts')
  }
})

test('parts of memory, shared memory and overlapping arrays', () => {
  const memory = new ArrayBuffer(80)
  const ids = new BigInt64Array(memory, 16, 3)
  ids.set([KNOWN, KNOWN + 1n, KNOWN + 2n])
  assert.deepEqual(twitter.decodeMany(ids.subarray(1)).sequence, BigInt64Array.of(1n, 2n))
  // The views next to each other are separate; those that share a number are not.
  const free = new BigInt64Array(memory, 40, 3)
  assert.deepEqual(twitter.decodeMany(ids, { out: { sequence: free } }).sequence, BigInt64Array.of(0n, 1n, 2n))
  assert.deepEqual(Array.from(new BigInt64Array(memory)), [0n, 0n, KNOWN, KNOWN + 1n, KNOWN + 2n, 0n, 1n, 2n, 0n, 0n])
  for (const out of [{ tick: ids }, { tick: new BigInt64Array(memory, 32, 3) }, { tick: new BigUint64Array(memory, 0, 3) }, { time: free, tick: free }]) {
    refused('WRONG_TYPE', () => twitter.decodeMany(ids, { out }), 'share no memory')
  }
  assert.deepEqual(ids, BigInt64Array.of(KNOWN, KNOWN + 1n, KNOWN + 2n))
  const shared = new BigInt64Array(new SharedArrayBuffer(48))
  shared.set(ids)
  assert.deepEqual(twitter.decodeMany(shared.subarray(0, 3), { out: { sequence: shared.subarray(3) } }).sequence.at(-1), 2n)
  // Two columns may be one array.
  const zeros = new BigInt64Array(3)
  assert.equal(twitter.composeMany({ time: BigInt64Array.of(1656432460105n, 1656432460106n, 1656432460107n), datacenter: zeros, worker: zeros, sequence: zeros }).length, 3)
})

test('JavaScript that runs during a call cannot free its memory', () => {
  const make = () => BigInt64Array.from({ length: 1000 }, (_, row) => KNOWN + BigInt(row % 4096))
  const detach = array => structuredClone(array.buffer, { transfer: [array.buffer] })
  let ids = make()
  // Detached memory has no rows.
  detach(ids)
  assert.equal(twitter.decodeMany(ids).time.length, 0)
  ids = make()
  assert.equal(twitter.decodeMany(ids, { get fields() { detach(ids); return ['time'] } }).time.length, 0)
  ids = make()
  const time = new BigInt64Array(1000)
  refused('WRONG_TYPE', () => twitter.decodeMany(ids, { out: { time, get tick() { detach(time); return new BigInt64Array(1000) } } }), 'out.time')
  const parts = { time: ids, get datacenter() { detach(ids); return new BigInt64Array(1000) }, worker: new BigInt64Array(1000), sequence: new BigInt64Array(1000) }
  refused('WRONG_TYPE', () => twitter.composeMany(parts), 'must have 0 numbers, as many as parts.time, not 1000')
  // The names are read once, and the array's own idea of its length does not count.
  ids = make()
  const fields = ['time', 'tick']
  Object.defineProperty(fields, 0, { get() { fields.length = 1; return 'time' } })
  refused('WRONG_TYPE', () => twitter.decodeMany(ids, { fields }), 'a name of fields is undefined')
  class Liar extends BigInt64Array { get length() { return 1e9 } get byteLength() { return 8e9 } }
  assert.equal(twitter.decodeMany(Liar.of(KNOWN)).time.length, 1)
  const thrown = new Error('mine')
  assert.throws(() => twitter.decodeMany(ids, { get fields() { throw thrown } }), error => error === thrown)
  assert.throws(() => twitter.composeMany({ get time() { throw thrown } }), error => error === thrown)
  // An option inside of another call: the columns of both are whole.
  const { tick } = twitter.decodeMany(ids, { get fields() { assert.equal(twitter.decodeMany(ids).tick.length, 1000); return ['tick'] } })
  assert.equal(tick.length, 1000)

  const resizable = typeof ArrayBuffer.prototype.resize === 'function'
  if (resizable) {
    const memory = new ArrayBuffer(8000, { maxByteLength: 16000 })
    const tracking = new BigInt64Array(memory)
    tracking.fill(KNOWN)
    assert.equal(twitter.decodeMany(tracking, { get fields() { memory.resize(80); return ['time'] } }).time.length, 10)
    const fixed = new BigInt64Array(memory, 0, 5)
    memory.resize(8)
    assert.equal(twitter.decodeMany(fixed).time.length, 0)
    memory.resize(16000)
    refused('ID_INVALID', () => new Layout('time:2@1h a:2 sequence:5 epoch:2025-01-01').decodeMany(tracking), 'ids[0] is the only bad row')
  }
})

test('this must be a layout', () => {
  for (const name of ['decodeMany', 'composeMany']) {
    refused('WRONG_TYPE', () => Layout.prototype[name].call({}, new BigInt64Array(1)), 'this')
  }
})

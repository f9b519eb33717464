// Bad input at every entry: a typed error, never a crash, never another value.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { FrazilError, Layout, Segment, Snowflake, errors, formatId, parseId } from 'frazil'
import { assertAscending, manual, refused, rejected, twitter } from './helper.mjs'

const START = 1700000000000
const open = () => manual('twitter datacenter=9 worker=9', START)

test('every_error', async () => {
  // A process finds out after 1.5 x renew whether another one holds a number.
  const quick = { store: 'memory', namespace: 'node-every-error', detached: true, window: '400ms', renew: '100ms', rollback: 'error' }
  const memory = options => Snowflake.open(undefined, { layout: 'time:41@1ms node:1 sequence:12 epoch:2025-01-01', ...quick, ...options })
  const back = open()
  back.next()
  back.setTime(START - 1)
  const full = manual('twitter datacenter=9 worker=9 exhausted=error', START)
  full.batch(4096)
  const waiting = open()
  waiting.batch(4096)
  const closed = open()
  closed.close()
  const taken = await memory()
  const used = await memory({ namespace: 'node-every-error-used' })
  await used.releaseNodeAsync()
  const thieves = [await memory()]
  thieves.push(await memory({ namespace: 'node-every-error-used' }), await memory({ namespace: 'node-every-error-used' }))
  new Snowflake('twitter datacenter=9 worker=1')
  const end = await Segment.open('end store=memory namespace=node-every-error', { start: 2n ** 63n - 1n })
  await Segment.open('odd store=memory namespace=node-every-error increment=2 offset=1')

  const triggers = {
    SPEC: () => new Snowflake('twitter worker'),
    UNKNOWN_KEY: () => new Snowflake('twitter', { wroker: 7 }),
    OUT_OF_RANGE: () => new Snowflake('twitter', { worker: 32, datacenter: 0 }),
    LAYOUT_INVALID: () => new Layout('time:37@1ms server:20 sequence:16 epoch:2025-01-01'),
    ID_INVALID: () => twitter.decode('-1'),
    WRONG_TYPE: () => twitter.decode(null),
    CLOSED: () => closed.next(),
    LAYOUT_EXPIRED: () => new Snowflake('baidu', { worker: 1 }),
    BEFORE_EPOCH: () => twitter.minId(0),
    CLOCK_BACK: () => back.next(),
    EXHAUSTED: () => full.next(),
    WOULD_BLOCK: () => waiting.next(),
    CLOCK_NOT_SET: () => manual('twitter datacenter=9 worker=9').next(),
    NODE_MISSING: () => new Snowflake('twitter'),
    NODE_IN_USE: () => memory({ node: taken.node }),
    NO_FREE_NODE: () => memory(),
    LEASE_EXHAUSTED: () => used.nextAsync(),
    CONFLICT: () => new Snowflake('twitter datacenter=9 worker=1 rollback=wait'),
    LAYOUT_MISMATCH: () => Snowflake.open('twitter store=memory namespace=node-every-error detached=true'),
    STORE_UNREACHABLE: () => Snowflake.open('standard store=redis://127.0.0.1:1/0 window=4s renew=1s'),
    STORE_UNSUITABLE: () => new Snowflake('standard store=redis://127.0.0.1:1/0 lease=disposable'),
    SEGMENT_EXHAUSTED: () => end.batchAsync(2),
    SEGMENT_MISMATCH: () => Segment.open('odd store=memory namespace=node-every-error increment=2 offset=2'),
  }
  for (const [code, trigger] of Object.entries(triggers)) {
    await rejected(code, (async () => trigger())())
  }
  thieves.forEach(ids => ids.close())
  // Other tests have these codes. FORKED: 'fork'; COPIED: 'restored'; STORE_CHANGED: 'segment_errors'; INTERNAL: a unit test of node/src/error/panic.rs.
  // STORE_NOT_BUILT needs a build without a client. The others need a server: the core's tests have them.
  const elsewhere = new Set([
    'FORKED', 'COPIED', 'INTERNAL', 'CLOCK_SKEW', 'STORE_AUTH', 'STORE_READONLY', 'STORE_CORRUPT', 'STORE_CHANGED', 'STORE_NOT_BUILT', 'TAG_MISSING',
  ])
  const all = [...Object.keys(triggers), ...elsewhere]
  assert.deepEqual(all.sort(), errors.map(row => row.code).sort())

  assert.equal(refused('EXHAUSTED', () => full.next()).retryAfterMs, 1)
  assert.equal(refused('SPEC', triggers.SPEC).retryAfterMs, undefined)
})

// Values that are not a string, number, bigint, boolean or undefined.
const OBJECTS = [null, {}, [], [1], Symbol('s'), () => '1', new Map(), new Date(0), /x/, new Proxy({}, {}), new String('1'), new Uint8Array(8)]
const BIGINTS = [1n]
const NUMBERS = [1]
const STRINGS = ['1', '']
const BOOLEANS = [true]

test('wrong_types', async () => {
  const ids = open()
  const notStrings = [undefined, ...OBJECTS, ...BIGINTS, ...NUMBERS, ...BOOLEANS]
  const notIntegers = [undefined, ...OBJECTS, ...STRINGS, ...BOOLEANS]
  const notIds = [undefined, ...OBJECTS, ...BOOLEANS]
  const notTimes = [undefined, ...OBJECTS.filter(value => !(value instanceof Date)), ...BIGINTS, ...STRINGS, ...BOOLEANS]
  const notObjects = [null, [], [1], Symbol('s'), () => 1, new Map(), new Date(0), /x/, new Uint8Array(8), new (class A {})(), 'worker=7', 7, 7n, true]
  const notHandles = [undefined, ...OBJECTS, ...BIGINTS, ...NUMBERS, ...STRINGS, ...BOOLEANS, Object.create(Snowflake.prototype), new Proxy(ids, {})]

  const entries = [
    [notStrings.slice(1), value => new Snowflake(value)],
    [notObjects, value => new Snowflake('twitter', value)],
    [[...OBJECTS.filter(value => !(value instanceof Date))], value => new Snowflake('twitter', { epoch: value })],
    [OBJECTS, value => new Snowflake('twitter', { worker: value })],
    [OBJECTS, value => new Snowflake(undefined, { layout: value })],
    [notIntegers, value => ids.batch(value)],
    [notIntegers, value => ids.batchBigInt(value)],
    [notStrings, value => ids.text(value)],
    [notTimes, value => ids.setTime(value)],
    [notIds, value => ids.observe(value)],
    [notStrings, value => new Layout(value)],
    [notIds, value => twitter.decode(value)],
    [[undefined, ...notObjects], value => twitter.compose(value)],
    [notTimes, value => twitter.compose({ time: value, datacenter: 1, worker: 1, sequence: 1 })],
    [notIntegers, value => twitter.compose({ time: START, datacenter: 1, worker: 1, sequence: value })],
    [notIntegers.slice(1), value => twitter.compose({ time: START, datacenter: 1, worker: value, sequence: 1 })],
    [notTimes, value => twitter.minId(value)],
    [notTimes, value => twitter.maxId(value)],
    [[...notHandles, ids], value => twitter.equals(value)],
    [notIds, value => formatId(value, 'hex')],
    [notStrings, value => formatId('1', value)],
    [notStrings, value => parseId(value, 'hex')],
    [notStrings.slice(1), value => parseId('1', value)],
  ]
  for (const [values, call] of entries) {
    for (const value of values) {
      refused('WRONG_TYPE', () => call(value))
    }
  }
  for (const value of notIntegers) {
    await rejected('WRONG_TYPE', ids.batchAsync(value))
  }
  for (const value of notStrings.slice(1)) {
    await rejected('WRONG_TYPE', Snowflake.open(value))
  }
  refused('NODE_MISSING', () => twitter.compose({ time: START, datacenter: 1, worker: undefined, sequence: 1 }), 'worker')

  // Methods and properties of another object.
  for (const [type, prototype] of [[Snowflake, Snowflake.prototype], [Layout, Layout.prototype]]) {
    for (const [name, { value, get }] of Object.entries(Object.getOwnPropertyDescriptors(prototype))) {
      if (name === 'constructor') {
        continue
      }
      for (const other of [...notHandles, type === Layout ? ids : twitter]) {
        const call = () => (value ?? get).call(other, 1)
        await (name.endsWith('Async') ? rejected('WRONG_TYPE', call()) : refused('WRONG_TYPE', call))
      }
    }
  }
  assert.throws(() => Snowflake('twitter'), TypeError)
  assert.throws(() => Layout('twitter'), TypeError)

  // An exception of the caller's own code is passed on unchanged.
  const mine = new Error('mine')
  const hostile = { get worker() { throw mine } }
  assert.throws(() => new Snowflake('twitter', hostile), error => error === mine)
  assert.throws(() => twitter.compose(hostile), error => error === mine)
  const trap = new Proxy({}, { ownKeys() { throw mine } })
  assert.throws(() => new Snowflake('twitter', trap), error => error === mine)
  assertAscending([ids.next(), ids.next()])
})

test('out_of_range', async () => {
  const ids = open()
  const odd = [NaN, Infinity, -Infinity, 0.5, -1.5, 1e21, 2 ** 53, -(2 ** 53), Number.MAX_VALUE]
  const negative = [-1, -1n, -(2n ** 63n), -(2n ** 64n)]
  const huge = [2n ** 63n, 2n ** 64n, 2n ** 64n + 1n, 2n ** 1000n]
  const counts = [...odd, ...negative, ...huge, 2 ** 24 + 1, 2 ** 32, 2 ** 53 - 1, 2n ** 62n]
  for (const count of counts) {
    refused('OUT_OF_RANGE', () => ids.batch(count))
    refused('OUT_OF_RANGE', () => ids.batchBigInt(count))
    await rejected('OUT_OF_RANGE', ids.batchAsync(count))
  }
  for (const time of [...odd, new Date(NaN), 8.64e15, -8.64e15, new Date(8.64e15), 2 ** 53 - 1]) {
    refused('OUT_OF_RANGE', () => ids.setTime(time))
  }
  for (const time of [NaN, Infinity, 0.5, 2 ** 53, new Date(NaN)]) {
    refused('OUT_OF_RANGE', () => twitter.minId(time))
    refused('OUT_OF_RANGE', () => twitter.maxId(time))
    refused('OUT_OF_RANGE', () => twitter.compose({ time, datacenter: 1, worker: 1, sequence: 0 }))
    refused('OUT_OF_RANGE', () => new Snowflake('twitter datacenter=1 worker=1', { epoch: time }))
  }
  for (const value of [...odd, ...negative, ...huge, 4096]) {
    refused('OUT_OF_RANGE', () => twitter.compose({ time: START, datacenter: 1, worker: 1, sequence: value }), 'sequence')
    refused('OUT_OF_RANGE', () => twitter.compose({ time: START, datacenter: 1, worker: value, sequence: 1 }), 'worker')
  }
  for (const value of [...odd, -1, -1n, 32, 32n, 2n ** 64n]) {
    refused('OUT_OF_RANGE', () => new Snowflake('twitter', { datacenter: 1, worker: value }), 'worker')
  }
  for (const id of [...odd, ...negative, ...huge, '-1', '9223372036854775808', '1'.repeat(30)]) {
    const code = typeof id === 'number' && !Number.isInteger(id) ? 'WRONG_TYPE' : 'ID_INVALID'
    refused(code, () => twitter.decode(id))
    refused(code, () => formatId(id, 'hex'))
  }
  // The most common mistake: JSON.parse of an ID.
  refused('ID_INVALID', () => twitter.decode(JSON.parse('1541815603606036480')), 'rounded', 'string', 'BigInt')
  refused('ID_INVALID', () => new Layout('js53').decode(2n ** 60n), 'bits')
  assert.equal(formatId(Number.MAX_SAFE_INTEGER, 'decimal'), '0009007199254740991')
  assert.equal(formatId(2n ** 63n - 1n, 'decimal'), '9223372036854775807')
  assert.equal(ids.batch(3n).length, 3)
})

test('strange_strings', () => {
  const strange = ['', ' ', '\0', 'tw\0itter', 'zürich', '\u{1F98A}', '１２', 'x'.repeat(1 << 22), '\n', '=', '"', "'", '\\', '\ud800', 'a\udc00b', 'env:', '%s%n']
  const ids = open()
  const entries = [
    // An empty spec has no node number.
    [value => new Snowflake(value), ['SPEC', 'NODE_MISSING']],
    [value => new Snowflake('twitter datacenter=1', { worker: value }), ['SPEC']],
    [value => new Snowflake('twitter datacenter=1 worker=1', { [value]: 1 }), ['SPEC', 'UNKNOWN_KEY']],
    [value => new Snowflake('twitter datacenter=1 worker=1', { [value]: null }), ['SPEC', 'WRONG_TYPE']],
    [value => new Snowflake('twitter datacenter=1 worker=1', { [value]: NaN }), ['SPEC', 'OUT_OF_RANGE']],
    [value => twitter.compose({ [value]: -1n }), ['SPEC', 'OUT_OF_RANGE']],
    [value => new Snowflake('twitter datacenter=1 worker=1', { rollback: value }), ['SPEC']],
    [value => new Snowflake('twitter datacenter=1 worker=1', { epoch: value }), ['SPEC']],
    [value => new Snowflake('twitter datacenter=1 worker=1', { after: value }), ['SPEC', 'ID_INVALID']],
    [value => new Snowflake(undefined, { node: 1, layout: value }), ['SPEC']],
    [value => new Layout(value), ['SPEC', 'LAYOUT_INVALID']],
    [value => new Layout(`time:41@1ms ${value}:10 sequence:12 epoch:1970-01-01`), ['LAYOUT_INVALID']],
    [value => twitter.decode(value), ['ID_INVALID']],
    [value => formatId(value, 'hex'), ['ID_INVALID']],
    [value => formatId('1', value), ['OUT_OF_RANGE']],
    [value => ids.text(value), ['OUT_OF_RANGE']],
    [value => twitter.compose({ time: START, sequence: 1, [value]: 1 }), ['UNKNOWN_KEY', 'SPEC']],
    ...['decimal', 'base62', 'base32', 'hex', 'check'].map(format => [value => parseId(value, format), ['ID_INVALID']]),
  ]
  for (const [call, codes] of entries) {
    for (const value of strange) {
      try {
        call(value)
        assert.fail(`${call} takes ${JSON.stringify(value.slice(0, 20))}`)
      } catch (error) {
        assert.ok(error instanceof FrazilError, `${call} of ${JSON.stringify(value.slice(0, 20))}: ${error.stack}`)
        assert.ok(codes.includes(error.code), `${call} of ${JSON.stringify(value.slice(0, 20))}: ${error.code} ${error.message}`)
        assert.ok(error.message.length < 1000 && error.message.isWellFormed?.() !== false)
      }
    }
  }
  // A call with a bad format mints nothing.
  assert.equal(ids.layout.decode(ids.next()).sequence, 0)
})

test('closed_handle', async () => {
  const ids = open()
  const { next, nextBigInt } = ids
  const iterator = ids[Symbol.iterator]()
  const layout = ids.layout
  ids.close()
  ids.close()
  const calls = [
    () => ids.next(), () => ids.nextBigInt(), next, nextBigInt, () => ids.batch(1), () => ids.batchBigInt(1), () => ids.batch(0),
    () => ids.fill(new BigInt64Array(1)), () => ids.fill(new BigInt64Array(0)), () => ids.text('hex'), () => ids.credit(),
    () => ids.setTime(START), () => ids.observe(1), () => iterator.next(),
  ]
  for (const call of calls) {
    refused('CLOSED', call)
  }
  await ids.closeAsync()
  await rejected('CLOSED', ids.nextAsync())
  await rejected('CLOSED', ids.releaseNodeAsync())
  await rejected('CLOSED', ids.batchAsync(1))
  assert.deepEqual([ids.node, ids.fields.worker, ids.layout], [297, 9, layout])
  assert.match(ids.spec, /^twitter /)

  // Another handle on the same state stays open.
  const [one, two] = [new Snowflake('twitter datacenter=9 worker=2'), new Snowflake('twitter datacenter=9 worker=2')]
  one.close()
  refused('CLOSED', () => one.next())
  assert.match(two.next(), /^[0-9]+$/)

  if (Symbol.dispose) {
    two[Symbol.dispose]()
    refused('CLOSED', () => two.next())
  }
})

test('wrong_buffers', () => {
  const ids = open()
  const wrong = [
    undefined, null, 1, 'x', [], [1n], {}, new ArrayBuffer(8), new DataView(new ArrayBuffer(8)), Buffer.alloc(8), new Uint8Array(8),
    new Int8Array(8), new Int32Array(2), new Uint32Array(2), new Float32Array(2), new Float64Array(1), new BigUint64Array(1),
    new Proxy(new BigInt64Array(1), {}), Object.create(BigInt64Array.prototype),
  ]
  for (const buffer of wrong) {
    refused('WRONG_TYPE', () => ids.fill(buffer), 'BigInt64Array')
  }
  // The refused calls have minted nothing.
  assert.equal(ids.layout.decode(ids.next()).sequence, 0)

  // A fill writes only the view's own part. A detached buffer holds nothing.
  const memory = new ArrayBuffer(64)
  const all = new BigInt64Array(memory)
  assert.equal(ids.fill(new BigInt64Array(memory, 16, 3)), 3)
  assert.deepEqual([...all].map(id => id !== 0n), [false, false, true, true, true, false, false, false])
  structuredClone(memory, { transfer: [memory] })
  assert.equal(ids.fill(all), 0)
  const shared = new BigInt64Array(new SharedArrayBuffer(32))
  assert.equal(ids.fill(shared), 4)
  assertAscending(shared)
  class Mine extends BigInt64Array {}
  assert.equal(ids.fill(new Mine(2)), 2)
})

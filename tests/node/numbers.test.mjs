// Segments, tickets and rings: numbers that a thread prepares ahead.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, mkdirSync, mkdtempSync, renameSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import { Buffered, FrazilError, Numbers, Segment, Snowflake, Tickets } from 'frazil'
import { removeStores } from './folders.mjs'
import { assertAscending, inTime, refused, rejected, runChild } from './helper.mjs'

const folder = mkdtempSync(join(tmpdir(), 'frazil-numbers-'))
after(() => removeStores(folder))
const addon = createRequire(import.meta.url).resolve('frazil')
const LAST = 2n ** 63n - 1n
const FOUR = 'time:41@1ms node:4 sequence:12 epoch:2025-01-01'
const START = 1767225600000

/** A folder store that does not exist yet. */
const fileStore = name => `file:${join(folder, name)}`

/** Replaces a store's folder with another folder or a file, atomically, because a thread may be fetching. */
function swap(name, other) {
  symlinkSync(join(folder, other), join(folder, `${name}.new`))
  renameSync(join(folder, `${name}.new`), join(folder, name))
}

/** Makes a store whose folder can be swapped. */
function swappable(name) {
  mkdirSync(join(folder, `${name}.first`))
  symlinkSync(join(folder, `${name}.first`), join(folder, name))
  return fileStore(name)
}

/** Replaces a store's folder with a file. */
function takeAway(name) {
  writeFileSync(join(folder, `${name}.file`), 'not a folder')
  swap(name, `${name}.file`)
}

/** Returns the texts of `count` numbers, beginning with `first`. */
const counted = (first, count, by = 1) => Array.from({ length: count }, (_, at) => String(first + at * by))

/** Starts a server that accepts connections but never answers. */
async function silentServer() {
  const server = createServer(() => {}).listen(0, '127.0.0.1')
  await once(server, 'listening')
  server.unref()
  return `redis://127.0.0.1:${server.address().port}/0`
}

/** Returns the message that a worker thread's program posts. */
function inWorker(program, workerData = {}) {
  return new Promise((resolve, reject) => {
    const thread = new Worker(`const { parentPort, workerData } = require('node:worker_threads')
      const { Buffered, Segment } = require(workerData.addon)
      ;(async () => { ${program} })()`, { eval: true, workerData: { addon, ...workerData } })
    thread.once('message', resolve)
    thread.once('error', reject)
  })
}

test('segment', async () => {
  const orders = await Segment.open('orders', { store: 'memory', namespace: 'node-segment', step: 100, start: 1000 })
  assert.ok(orders instanceof Numbers && orders instanceof Segment && !(orders instanceof Snowflake))
  assert.deepEqual([orders.prepared, orders.lastError], [100, undefined])
  const { next, nextBigInt } = orders
  assert.deepEqual([orders.next(), orders.nextBigInt(), next(), nextBigInt()], ['1000', 1001n, '1002', 1003n])
  assert.deepEqual(orders.batch(7), counted(1004, 7))
  // After a tenth of the range, the next range is fetched.
  await inTime(() => orders.prepared >= 100)
  assert.deepEqual([orders.batch(0), orders.batchBigInt(0), orders.fill(new BigInt64Array(0))], [[], [], 0])
  const buffer = new BigInt64Array(50)
  assert.equal(orders.fill(buffer), 50)
  assert.deepEqual([...buffer].map(String), counted(1011, 50))
  assert.deepEqual(orders.batchBigInt(2), [1061n, 1062n])
  assert.deepEqual([await orders.nextAsync(), ...await orders.batchAsync(500)], counted(1063, 501))
  assert.deepEqual([await orders.nextBigIntAsync(), ...await orders.batchBigIntAsync(2)], [1564n, 1565n, 1566n])
  const iterator = orders[Symbol.iterator]()
  assert.equal(iterator.next().value, '1567')
  assert.match(orders.spec, /^orders .*store=memory/)

  // A second handle with the same spec draws its own ranges.
  const other = await Segment.open(orders.spec)
  const [mine, theirs] = [[], []]
  for (let i = 0; i < 50; i++) {
    mine.push(...await orders.batchAsync(20))
    theirs.push(...await other.batchAsync(20))
  }
  assertAscending(mine)
  assertAscending(theirs)
  assert.equal(new Set([...mine, ...theirs]).size, 2000)

  const odd = await Segment.open('parity store=memory namespace=node-odd increment=2 offset=1 step=3')
  const even = await Segment.open('parity', { store: ['memory'], namespace: 'node-even', increment: 2n, offset: [2], start: '3' })
  assert.deepEqual([await odd.batchAsync(5), await even.batchAsync(3)], [counted(1, 5, 2), counted(4, 3, 2)])

  // A method that was taken from an object keeps it alive.
  const alone = (await Segment.open('alone store=memory namespace=node-segment')).next
  await sleep(1)
  assert.deepEqual([alone(), alone()], ['1', '2'])

  // The constructor waits synchronously, for 2 ms at most.
  assert.equal(await new Segment('orders store=memory namespace=node-constructor').nextAsync(), '1')
})

test('segment_stores', async () => {
  const stores = [fileStore('a'), swappable('b')]
  const segment = await Segment.open('orders', { store: stores, step: 10 })
  assert.ok(segment.spec.endsWith(`store="${stores[0]} ${stores[1]}"`), segment.spec)
  let numbers = await segment.batchAsync(2000)
  assert.deepEqual(new Set(numbers.map(number => number % 2)), new Set([0, 1]))
  assert.equal(segment.lastError, undefined)
  // The same stores as one text, with the same offsets. In another order, each store would have another store's numbers.
  const again = await Segment.open('orders', { store: stores.join(' '), offset: [1, 2n], step: '10' })
  numbers.push(...await again.batchAsync(100))
  const swapped = Segment.open('orders', { store: stores, offset: '2 1' }).then(orders => orders.batchAsync(10000))
  await rejected('SEGMENT_MISMATCH', swapped, 'offset')
  takeAway('b')
  numbers = numbers.concat(await segment.batchAsync(200000))
  assert.equal(new Set(numbers).size, 202100)
  assert.ok(numbers.slice(-10000).every(number => number % 2 === 1))
  assert.ok(segment.lastError instanceof FrazilError && segment.lastError.message.includes(stores[1]))

  const tickets = new Tickets('photos', { store: [swappable('ta'), fileStore('tb')] })
  assert.ok(tickets instanceof Numbers)
  assert.equal(tickets.prepared, 0)
  const turns = [await tickets.nextAsync(), ...await tickets.batchAsync(19)].map(Number)
  for (let at = 0; at < 20; at += 2) {
    assert.notEqual(turns[at] % 2, turns[at + 1] % 2, `${turns}`)
  }
  assert.deepEqual(turns.sort((a, b) => a - b).map(String), counted(1, 20))
  takeAway('ta')
  assert.deepEqual(await tickets.batchAsync(5), counted(22, 5, 2))
  assert.ok(tickets.lastError.message.includes(fileStore('ta')))
})

test('segment_errors', async () => {
  const both = `memory ${fileStore('both')}`
  for (const [line, code, says] of [
    ['', 'SPEC', 'tag'],
    ['store=memory', 'SPEC', 'tag'],
    ['or/ders store=memory', 'SPEC', 'tag'],
    [`${'t'.repeat(65)} store=memory`, 'SPEC', 'tag'],
    ['orders', 'SPEC', 'store'],
    ["orders store=''", 'SPEC', 'store'],
    ['orders store=nowhere', 'SPEC', 'nowhere'],
    ["orders store='memory memory'", 'SPEC', 'twice'],
    ['orders store=memory step=0', 'OUT_OF_RANGE', 'step=0'],
    ['orders store=memory step=-1', 'OUT_OF_RANGE', 'step=-1'],
    ['orders store=memory step=many', 'SPEC', 'many'],
    ['orders store=memory start=9223372036854775808', 'OUT_OF_RANGE', 'start=9223372036854775808'],
    ['orders store=memory increment=0', 'OUT_OF_RANGE', 'increment=0'],
    ['orders store=memory increment=2 offset=3', 'OUT_OF_RANGE', 'offset=3'],
    [`orders store='${both}' offset='0 2'`, 'OUT_OF_RANGE', 'two stores'],
    [`orders store='${both}' offset=1`, 'SPEC', 'one for each'],
    ['orders store=memory wait=soon', 'SPEC', 'wait'],
    ["orders store=memory namespace='two words'", 'SPEC', 'namespace'],
    ['orders store=memory table=leaf', 'SPEC', 'table=leaf'],
    ['orders store=memory table=orders', 'SPEC', 'leaf, tinyid'],
    ['orders store=memory worker=1', 'UNKNOWN_KEY', 'worker'],
  ]) {
    refused(code, () => new Segment(line), says)
    await rejected(code, Segment.open(line), says)
  }
  for (const [options, code, says] of [
    [{ step: 0 }, 'OUT_OF_RANGE', 'step=0'],
    [{ step: 2n ** 127n }, 'OUT_OF_RANGE', 'step'],
    [{ increment: 2, offset: [3] }, 'OUT_OF_RANGE', 'offset=3'],
    [{ offset: [] }, 'SPEC', 'one for each'],
    [{ store: [] }, 'SPEC', 'store'],
    [{ store: ['memory', 7] }, 'SPEC', '7'],
  ]) {
    refused(code, () => new Segment('orders', { store: 'memory', ...options }), says)
  }
  refused('SPEC', () => new Segment('orders store=memory', { store: 'memory' }), 'store is given twice')
  refused('SPEC', () => new Tickets('photos', { store: 'memory' }), 'two stores')
  refused('SPEC', () => new Tickets('photos', { store: both, step: 2 }), 'step')
  // FRAZIL configures only generators.
  const codes = await runChild(`
    import { Buffered, Segment, Tickets } from 'frazil'
    const code = type => { try { new type() } catch (error) { return error.code } }
    console.log([Segment, Tickets, Buffered].map(code).join())`, { env: { FRAZIL: 'standard node=1' } })
  assert.equal(codes, 'SPEC,SPEC,NODE_MISSING')

  const parity = options => Segment.open('parity', { store: 'memory', namespace: 'node-errors', ...options })
  await parity({ increment: 2, offset: 1 })
  for (const options of [{ increment: 3, offset: 1 }, { increment: 2, offset: 2 }, {}]) {
    await rejected('SEGMENT_MISMATCH', parity(options))
  }

  const end = await Segment.open('end store=memory namespace=node-errors step=10', { start: LAST - 2n })
  assert.deepEqual(end.batchBigInt(3), [LAST - 2n, LAST - 1n, LAST])
  await rejected('SEGMENT_EXHAUSTED', end.nextAsync(), String(LAST))
  const near = await Segment.open('near store=memory namespace=node-errors', { start: String(LAST - 4n) })
  const buffer = new BigInt64Array(10)
  let error
  await inTime(() => {
    try {
      near.fill(buffer.subarray(5 * (error !== undefined)))
    } catch (thrown) {
      error ??= thrown
      return thrown.code === 'SEGMENT_EXHAUSTED'
    }
  })
  assert.equal(error.written, 5)
  assert.deepEqual([...buffer], [LAST - 4n, LAST - 3n, LAST - 2n, LAST - 1n, LAST, 0n, 0n, 0n, 0n, 0n])
  await rejected('SEGMENT_EXHAUSTED', Segment.open('slow', { store: await silentServer(), wait: '200ms' }), 'slow', 'no number arrived within 2')

  // The store's folder is restored from a backup.
  const segment = await Segment.open('orders', { store: swappable('back'), step: 100, wait: '2s' })
  cpSync(join(folder, 'back.first'), join(folder, 'backup'), { recursive: true })
  const before = await segment.batchAsync(20)
  // Once the next range is prefetched, the thread is idle, so no write is in progress.
  while (segment.prepared === 0) await new Promise(resolve => setTimeout(resolve, 1))
  swap('back', 'backup')
  const goOn = async () => {
    for (;;) {
      assert.ok(BigInt(await segment.nextAsync()) > BigInt(before.at(-1)))
    }
  }
  await rejected('STORE_CHANGED', goOn(), 'frazil segment file:')
  assert.ok(!('written' in await rejected('STORE_CHANGED', segment.batchAsync(3))))
  assert.equal(segment.lastError.code, 'STORE_CHANGED')
})

test('segment_processes', async () => {
  const store = fileStore('processes')
  const program = `
    import { Segment } from 'frazil'
    const orders = await Segment.open('orders', { store: '${store}', step: 100 })
    const minted = await orders.batchAsync(10000)
    for (let i = 0; i < 5000; i++) minted.push(await orders.nextAsync())
    console.log(minted.join())`
  const children = [runChild(program), runChild(program)]
  const orders = await Segment.open('orders', { store, step: 100 })
  const all = [await orders.batchAsync(15000), ...(await Promise.all(children)).map(text => text.split(','))]
  all.forEach(minted => assert.equal(minted.length, 15000))
  all.forEach(assertAscending)
  assert.equal(new Set(all.flat()).size, 45000)
})

test('segment_closed', async () => {
  const opened = [
    await Segment.open('closed store=memory namespace=node-closed'),
    await Buffered.open('standard node=970 size=10'),
    new Tickets('closed', { store: ['redis://127.0.0.1:1/0', 'redis://127.0.0.1:2/0'] }),
  ]
  for (const numbers of opened) {
    const { spec, next, nextBigInt } = numbers
    const iterator = numbers[Symbol.iterator]()
    numbers.close()
    numbers.close()
    const calls = [
      () => numbers.next(), () => numbers.nextBigInt(), next, nextBigInt, () => numbers.batch(1), () => numbers.batchBigInt(1),
      () => numbers.batch(0), () => numbers.fill(new BigInt64Array(1)), () => numbers.fill(new BigInt64Array(0)), () => iterator.next(),
      () => numbers.prepared, () => numbers.lastError,
    ]
    for (const call of calls) {
      refused('CLOSED', call)
    }
    await numbers.closeAsync()
    await rejected('CLOSED', numbers.nextAsync())
    await rejected('CLOSED', numbers.batchAsync(1))
    await rejected('CLOSED', numbers.batchAsync(0))
    await rejected('CLOSED', numbers.discardAsync())
    assert.equal(numbers.spec, spec)
  }
  if (Symbol.dispose) {
    const disposed = await Segment.open('dispose store=memory namespace=node-closed')
    disposed[Symbol.dispose]()
    refused('CLOSED', () => disposed.next())
    const later = await Segment.open('dispose store=memory namespace=node-closed')
    await later[Symbol.asyncDispose]()
    refused('CLOSED', () => later.next())
  }

  const clone = await Segment.open('discard store=memory namespace=node-closed step=100')
  assert.equal(clone.next(), '1')
  await clone.discardAsync()
  assert.ok(Number(await clone.nextAsync()) > 100)
})

test('buffered', async () => {
  const ids = await Buffered.open('standard', { node: 971, size: 10000, refill: 20 })
  assert.ok(ids instanceof Numbers && ids.prepared >= 10000)
  const minted = [ids.next(), String(ids.nextBigInt()), ...ids.batch(5000), ...await ids.batchAsync(30000), await ids.nextAsync()]
  assertAscending(minted)
  assert.deepEqual([...new Set(minted.map(id => ids.layout.decode(id).node))], [971])
  assert.equal(ids.layout, ids.layout)
  assert.ok(ids.layout.equals(new Snowflake('standard node=971').layout))

  // Each thread has its own ring over the same generator.
  const program = `
    const ids = await Buffered.open('standard node=972 size=500 refill=100')
    const minted = []
    for (let i = 0; i < 40; i++) minted.push(...await ids.batchAsync(490), ...await Promise.all(Array.from({ length: 10 }, () => ids.nextAsync())))
    parentPort.postMessage(minted)`
  const all = (await Promise.all([inWorker(program), inWorker(program), inWorker(program)])).flat()
  assert.equal(new Set(all).size, 60000)

  // Under a manual clock the generator has the eight IDs of one tick, and no more.
  const tick = 'layout="time:41@1ms node:10 sequence:3 epoch:2025-01-01" node=973 clock=manual exhausted=error start=zero'
  const clock = new Snowflake(tick)
  clock.setTime(START)
  const refusing = await Buffered.open(tick, { size: 4, empty: 'error' })
  const take = (got, count) => () => {
    try {
      got.push(refusing.next())
    } catch (error) {
      assert.equal(error.code, 'EXHAUSTED')
    }
    return got.length === count
  }
  await inTime(take([], 8))
  refused('EXHAUSTED', () => refusing.next(), 'empty')
  const late = await rejected('EXHAUSTED', Buffered.open(tick, { size: 4, empty: 'wait:100ms' }))
  const [, waited] = /no ID came within (\d+) ms/.exec(late.message) ?? assert.fail(late.message)
  assert.ok(waited >= 100, late.message)
  clock.setTime(START + 1)
  const next = []
  await inTime(take(next, 8))
  assert.deepEqual([...new Set(next.map(id => refusing.layout.decode(id).time.getTime()))], [START + 1])

  // The clock goes back.
  const strict = 'standard node=974 clock=manual rollback=error exhausted=ahead:1h start=zero'
  const other = new Snowflake(strict)
  other.setTime(START + 1_000_000)
  const ring = await Buffered.open(strict, { size: 20000, empty: 'wait:200ms' })
  const taken = [ring.next()]
  other.setTime(START)
  const drain = async () => {
    while (taken.length < 20000) {
      taken.push(await ring.nextAsync())
    }
  }
  await rejected('CLOCK_BACK', drain())
  assert.equal(ring.lastError.code, 'CLOCK_BACK')
  other.setTime(START + 2_000_000)
  const later = await ring.nextAsync()
  assert.equal(ring.layout.decode(later).time.getTime(), START + 2_000_000)
  assertAscending([taken.at(-1), later])

  for (const [line, code] of [
    ['standard node=1 size=0', 'OUT_OF_RANGE'],
    ['standard node=1 refill=101', 'OUT_OF_RANGE'],
    ['standard node=1 empty=block', 'SPEC'],
    ['standard node=1 sise=1', 'UNKNOWN_KEY'],
    ['standard size=10', 'NODE_MISSING'],
    ['baidu worker=1', 'LAYOUT_EXPIRED'],
  ]) {
    refused(code, () => new Buffered(line))
  }
})

test('a ring over a lease releases its number', async () => {
  const ids = await Buffered.open(undefined, { layout: FOUR, store: 'memory', namespace: 'node-ring', size: 5000 })
  const node = id => ids.layout.decode(id).node
  const before = node(ids.next())
  await ids.discardAsync()
  assert.ok(!(await ids.batchAsync(5000)).some(id => node(id) === before))
  await ids.closeAsync()

  // closeAsync(), the end of the process, and close().
  const list = async space => {
    const printed = await runChild(`
      import { execFileSync } from 'node:child_process'
      const cli = ${JSON.stringify(join(addon, '../cli.js'))}
      console.log(execFileSync(process.execPath, [cli, 'nodes', '--json', '--namespace', '${space}', '${fileStore('ring')}'], { encoding: 'utf8' }))`)
    return JSON.parse(printed).slots.map(slot => slot.state)
  }
  const opening = space => `
    import { Buffered } from 'frazil'
    const ids = await Buffered.open('game', { store: '${fileStore('ring')}', namespace: '${space}', size: 100 })
    ids.next()`
  for (const [space, end] of [['async', 'await ids.closeAsync()'], ['end', ''], ['exit', 'process.exit(0)']]) {
    await runChild(`${opening(space)}\n${end}`)
    assert.deepEqual(await list(space), ['free'], space)
  }
  // close() waits for 2 ms; then it continues in the background.
  const quick = await Buffered.open('game', { store: fileStore('ring'), namespace: 'quick', size: 100, window: '96s', renew: '8s' })
  // The store does not answer: another process holds the lock of the namespace's folder.
  const locking = [join(folder, 'ring', 'quick', '.lock'), 'sh', '-c', 'echo locked; sleep 600']
  const lock = spawn('flock', locking, { stdio: ['ignore', 'pipe', 'inherit'], detached: true })
  await once(lock.stdout, 'data')
  const started = performance.now()
  quick.close()
  const took = performance.now() - started
  process.kill(-lock.pid)
  assert.ok(took < 2500, `close holds the loop up for ${took} ms: one that waits does so for 5 s`)
  await inTime(async () => (await list('quick'))[0] === 'free')
})

test('numbers do not hold up the loop', async () => {
  const stores = [await silentServer(), await silentServer()]
  const started = performance.now()
  const orders = new Segment('orders', { store: stores[0], wait: '60s' })
  const error = refused('WOULD_BLOCK', () => orders.next(), 'use await ids.nextAsync(), or a longer maxWaitMs')
  assert.ok(error.retryAfterMs > 0)
  const patient = new Tickets('posters', { store: stores, wait: '60s' })
  for (const next of [() => patient.next(), () => patient.nextBigInt(), () => patient.next({ maxWaitMs: 2 })]) {
    refused('WOULD_BLOCK', next, 'use await ids.nextAsync(), or a longer maxWaitMs')
  }
  refused('WOULD_BLOCK', () => patient.batch(2), 'use await ids.batchAsync(2), or a longer maxWaitMs')
  refused('WOULD_BLOCK', () => patient.fill(new BigInt64Array(2)), 'use await ids.batchAsync(2), or a longer maxWaitMs')
  assert.ok(performance.now() - started < 30000)
  const tickets = new Tickets('photos', { store: stores, wait: '500ms' })
  let turns = 0
  const timer = setInterval(() => turns++, 10)
  for (const wait of [
    () => Segment.open('orders', { store: stores[0], wait: '500ms' }),
    () => tickets.nextAsync(),
    () => tickets.batchAsync(2),
  ]) {
    const before = turns
    await rejected('SEGMENT_EXHAUSTED', wait())
    assert.ok(turns - before > 10, `${turns - before} turns`)
  }
  clearInterval(timer)
})

test('a bundler may give the classes other names', async () => {
  const stores = JSON.stringify([fileStore('renamed-1'), fileStore('renamed-2')])
  const renamed = `
    import { Buffered, Segment, Tickets } from 'frazil'
    for (const type of [Segment, Tickets, Buffered]) {
      Object.defineProperty(type, 'name', { value: 'e' })
    }
    const orders = await Segment.open('renamed store=memory')
    const photos = new Tickets('renamed', { store: ${stores} })
    const ring = await Buffered.open('standard node=976 size=10')
    console.log(JSON.stringify([orders.next(), ['1', '2'].includes(await photos.nextAsync()), ring.layout.decode(ring.next()).node]))`
  assert.deepEqual(JSON.parse(await runChild(renamed)), ['1', true, 976])
})

test('worker threads never get the same number', async () => {
  const store = fileStore('workers')
  const program = `
    const orders = await Segment.open('orders', { store: workerData.store, step: 10 })
    parentPort.postMessage([await orders.batchAsync(5000), await orders.batchAsync(5000)].flat())`
  const minted = await Promise.all([inWorker(program, { store }), inWorker(program, { store }), inWorker(program, { store })])
  minted.forEach(assertAscending)
  assert.equal(new Set(minted.flat()).size, 30000)
})

test('numbers of wrong types', async () => {
  for (const type of [Segment, Tickets, Buffered]) {
    for (const value of [null, 7, 7n, ['orders'], {}, Symbol('s'), () => 'orders', new Date(0)]) {
      refused('WRONG_TYPE', () => new type(value), 'spec')
      await rejected('WRONG_TYPE', type.open(value), 'spec')
    }
    for (const key of ['store', 'offset']) {
      for (const value of [null, {}, Symbol('s'), new Set(['memory']), new Uint8Array(8), [null], [undefined], [['memory']], [{}], new Array(1)]) {
        refused('WRONG_TYPE', () => new type('orders', { [key]: value }), key, 'an array of these')
      }
    }
    refused('WRONG_TYPE', () => new type('orders', { store: 'memory', step: [1] }), 'step')
    refused('SPEC', () => new type('a\ud800b'))
    refused('SPEC', () => new type('orders', { store: ['a\ud800b'] }))
    refused('SPEC', () => new type('orders', { store: ['memory local'] }), 'store: the item "memory local"')
    assert.throws(() => type('orders'), TypeError)
  }
  refused('WRONG_TYPE', () => new Snowflake('standard', { store: ['memory'] }), 'store')
  refused('WRONG_TYPE', () => new Numbers('orders store=memory'), 'Segment')
  await rejected('WRONG_TYPE', Numbers.open('orders store=memory'), 'Segment')
  const mine = new Error('mine')
  assert.throws(() => new Segment('orders', { get store() { throw mine } }), error => error === mine)

  class Orders extends Segment {}
  const orders = await Orders.open('orders store=memory namespace=node-types')
  assert.ok(orders instanceof Orders)
  const ids = new Snowflake('standard node=975')
  const ring = await Buffered.open('standard node=975 size=10')
  for (const [type, others] of [[Numbers, [ids]], [Buffered, [ids, orders]], [Snowflake, [orders, ring]]]) {
    for (const [name, { value, get }] of Object.entries(Object.getOwnPropertyDescriptors(type.prototype))) {
      if (name === 'constructor') {
        continue
      }
      for (const other of [undefined, null, 7, {}, Object.create(type.prototype), ...others]) {
        const call = () => (value ?? get).call(other, 1)
        await (name.endsWith('Async') ? rejected('WRONG_TYPE', call()) : refused('WRONG_TYPE', call))
      }
    }
  }
  for (const value of [undefined, null, '7', [7], true, {}]) {
    refused('WRONG_TYPE', () => orders.batch(value))
    refused('WRONG_TYPE', () => orders.batchBigInt(value))
    await rejected('WRONG_TYPE', orders.batchAsync(value))
  }
  for (const value of [-1, -1n, 0.5, NaN, 2 ** 24 + 1, 2n ** 64n]) {
    refused('OUT_OF_RANGE', () => orders.batch(value), 'count')
    await rejected('OUT_OF_RANGE', orders.batchAsync(value), 'count')
  }
  for (const value of [undefined, null, [1n], new ArrayBuffer(8), new BigUint64Array(1), new Float64Array(1), new Proxy(new BigInt64Array(1), {})]) {
    refused('WRONG_TYPE', () => orders.fill(value), 'BigInt64Array')
  }
  refused('WRONG_TYPE', () => orders.fill(new Float64Array(1)), 'buffer is a Float64Array')
  refused('OUT_OF_RANGE', () => new Segment('orders', { store: 'memory', offset: [1.5] }), 'offset=1.5')
  refused('SPEC', () => new Segment('orders', { store: [1.5] }), 'store="1.5"')
  // The refused calls have spent no number.
  assert.equal(orders.next(), '1')
  assert.deepEqual(Object.keys(orders), [])
})

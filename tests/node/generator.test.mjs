// Generators: minting, batches, policies.
import assert from 'node:assert/strict'
import { mkdtempSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import { Layout, Snowflake, formatId, parseId } from 'frazil'
import { assertAscending, inTime, manual, refused, rejected, runChild, twitter } from './helper.mjs'

// 16 IDs in 100 ms, so a call often waits for more than 2 ms, but not for long.
const SLOW = 'layout="time:38@100ms node:10 sequence:4 epoch:2025-01-01" start=zero exhausted=wait'

test('next_increases', () => {
  const ids = new Snowflake('twitter', { datacenter: 1, worker: 1 })
  const before = Date.now()
  const next = ids.next
  const minted = []
  for (let i = 0; i < 20000; i++) {
    minted.push(ids.next(), String(ids.nextBigInt()), next())
  }
  const after = Date.now()
  assertAscending(minted)
  for (const id of [minted[0], minted.at(-1)]) {
    assert.match(id, /^[1-9][0-9]*$/)
    const parts = ids.layout.decode(id)
    assert.deepEqual([parts.datacenter, parts.worker], [1, 1])
    assert.ok(before <= parts.time.getTime() && parts.time.getTime() <= after)
  }
  assert.equal(ids.node, 33)
  assert.deepEqual(ids.fields, { datacenter: 1, worker: 1 })
  assert.equal(ids.spec, 'twitter datacenter=1 worker=1')
  assert.equal(ids.layout, ids.layout)
  assert.ok(ids.layout.equals(twitter))
})

test('batch_and_fill', () => {
  const ids = manual('twitter datacenter=1 worker=2', 1700000000000)
  const batch = ids.batch(100)
  const big = ids.batchBigInt(100)
  const buffer = new BigInt64Array(100)
  assert.equal(ids.fill(buffer), 100)
  assert.ok(batch.every(id => typeof id === 'string') && big.every(id => typeof id === 'bigint'))
  assertAscending([...batch, ...big, ...buffer])

  // A batch that ends at the end of one of its chunks.
  assertAscending([...ids.batch(2047), ids.next()])

  const tick = manual('twitter datacenter=1 worker=2', 1700000000000)
  const large = new BigInt64Array(5000)
  const error = refused('WOULD_BLOCK', () => tick.fill(large))
  assert.equal(error.written, 4096)
  assertAscending(large.subarray(0, 4096))
  assert.ok(large.subarray(4096).every(id => id === 0n))
  const manualClock = refused('WOULD_BLOCK', () => tick.fill(large.subarray(4096)), 'set_time')
  assert.ok(manualClock.written === 0 && !manualClock.message.includes('Async'), 'no wait helps')
  tick.setTime(1700000000001)
  assert.ok(!('written' in refused('WOULD_BLOCK', () => tick.batch(5000))))
  tick.setTime(1700000000002)
  assert.equal(tick.fill(large.subarray(4096)), 904)
  assertAscending(large)
})

test('a batch of some ticks is minted in place, and a longer one names batchAsync', async () => {
  const ids = new Snowflake('twitter datacenter=1 worker=9')
  for (const batch of [() => ids.batch(100_000), () => ids.batchBigInt(100_000)]) {
    // The batch needs 25 ms; a busy machine may take longer.
    let minted
    await inTime(() => {
      try {
        minted = batch()
      } catch (error) {
        assert.equal(error.code, 'WOULD_BLOCK')
      }
      return minted
    })
    assertAscending(minted)
    assert.equal(minted.length, 100_000)
  }
  const times = Array.from({ length: 10 }, () => {
    const begin = performance.now()
    refused('WOULD_BLOCK', () => ids.batch(1_000_000), 'use await ids.batchAsync(1000000), or a longer maxWaitMs')
    return performance.now() - begin
  })
  // The shortest time counts, because the machine may be busy. A call that waited for 50 ms would always take that long.
  assert.ok(Math.min(...times) < 45, `what cannot be had in 50 ms does not wait for them: ${times}`)
  refused('WOULD_BLOCK', () => ids.batch(100_000, { maxWaitMs: 2 }), 'batchAsync(100000)')
  assert.equal((await ids.batchAsync(100_000)).length, 100_000)
})

test('zero_length', async () => {
  const ids = manual('twitter datacenter=1 worker=3', 1700000000000)
  assert.deepEqual(ids.batch(0), [])
  assert.deepEqual(ids.batch(-0), [])
  assert.deepEqual(ids.batchBigInt(0), [])
  assert.deepEqual(await ids.batchAsync(0), [])
  assertAscending([ids.next(), await ids.nextBigIntAsync(), ...await ids.batchBigIntAsync(3), ids.next()].map(String))
  assert.deepEqual(await ids.batchBigIntAsync(0), [])
  assert.equal(ids.fill(new BigInt64Array(0)), 0)
})

test('iteration', () => {
  const ids = new Snowflake('twitter datacenter=1 worker=4')
  const taken = []
  for (const id of ids) {
    taken.push(id)
    if (taken.length === 100) {
      break
    }
  }
  const [first, second] = ids
  assertAscending([...taken, first, second])
})

test('async_forms', async () => {
  const opening = Snowflake.open(SLOW, { node: 1 })
  assert.ok(opening instanceof Promise)
  const ids = await opening
  assert.ok(ids instanceof Snowflake)
  assert.equal(ids.spec, `${SLOW.replace(' start=zero exhausted=wait', '')} node=1 exhausted=wait start=zero`)

  const error = refused('WOULD_BLOCK', () => ids.batch(64), 'use await ids.batchAsync(64), or a longer maxWaitMs')
  assert.ok(error.retryAfterMs > 2 && error.retryAfterMs <= 100, String(error.retryAfterMs))

  // The loop runs while promises wait.
  let ticks = 0
  const timer = setInterval(() => ticks++, 10)
  const batch = await ids.batchAsync(64)
  assert.equal(batch.length, 64)
  const singles = []
  for (let i = 0; i < 40; i++) {
    singles.push(await ids.nextAsync())
  }
  clearInterval(timer)
  assertAscending([...batch, ...singles])
  assert.ok(ticks >= 5, `${ticks} ticks of 10 ms in some 600 ms`)

  const together = await Promise.all(Array.from({ length: 40 }, () => ids.nextAsync()))
  assert.equal(new Set(together).size, 40)

  // A wait that could never end is rejected at once.
  const still = manual('twitter datacenter=1 worker=5', 1700000000000)
  assert.equal((await still.batchAsync(4096)).length, 4096)
  await rejected('WOULD_BLOCK', still.nextAsync(), 'set_time')
  await rejected('WOULD_BLOCK', still.batchAsync(2))
  await rejected('SPEC', Snowflake.open('nonsense'))
})

test('the constructor waits for 2 ms at most, and names the way out', async () => {
  const spec = 'layout="time:31@1s node:10 sequence:12 epoch:2025-01-01" node=7'
  // Starts just after a new second has begun, so that it does not end during the test.
  await sleep(1000 - (Date.now() % 1000) + 5)
  const error = refused('WOULD_BLOCK', () => new Snowflake(spec), 'use await Snowflake.open(...), or a longer maxWaitMs')
  assert.ok(error.retryAfterMs > 2 && error.retryAfterMs <= 1000)
  const ids = await Snowflake.open(spec)
  assert.equal(ids.layout.decode(ids.next()).node, 7)
})

test('new_text', () => {
  const ids = manual('twitter datacenter=1 worker=6', 1288834974657)
  for (const [format, width] of Object.entries({ decimal: 19, base62: 11, base32: 13, hex: 16, check: 14 })) {
    const texts = Array.from({ length: 100 }, () => ids.text(format))
    assert.ok(texts.every(text => text.length === width))
    assert.deepEqual([...texts].sort(), texts)
    assertAscending(texts.map(text => parseId(text, format)))
    assert.equal(formatId(parseId(texts[7], format), format), texts[7])
  }
})

test('min_max', () => {
  const time = new Date('2022-06-28T16:07:40.105Z')
  assert.equal(twitter.minId(time), twitter.compose({ time, datacenter: 0, worker: 0, sequence: 0 }))
  assert.equal(twitter.maxId(time.getTime()), twitter.compose({ time, datacenter: 31, worker: 31, sequence: 4095 }))
  assert.equal(BigInt(twitter.maxId(time)) + 1n, BigInt(twitter.minId(time.getTime() + 1)))
  assert.equal(twitter.minId(twitter.epoch), '0')
  const end = twitter.expiresAt.getTime()
  assert.equal(twitter.maxId(end - 1), '9223372036854775807')
  for (const bound of ['minId', 'maxId']) {
    refused('BEFORE_EPOCH', () => twitter[bound](twitter.epoch.getTime() - 1))
    refused('LAYOUT_EXPIRED', () => twitter[bound](end))
  }
})

test('manual_clock', () => {
  const ids = manual('twitter datacenter=1 worker=7')
  refused('CLOCK_NOT_SET', () => ids.next())
  refused('CLOCK_NOT_SET', () => ids.credit())
  ids.setTime(new Date(1700000000000))
  const id = ids.next()
  assert.equal(ids.layout.decode(id).time.getTime(), 1700000000000)
  ids.setTime(1700000000001)
  assertAscending([id, ids.next()])
  ids.setTime(1699999999000)
  assert.equal(refused('CLOCK_BACK', () => ids.next()).retryAfterMs, 1001)
  refused('SPEC', () => new Snowflake('twitter datacenter=1 worker=7').setTime(0), 'clock=manual')
})

test('observe', async () => {
  const now = 1735689600000 + 100000
  const ids = manual('standard node=1 start=zero', now)
  const first = ids.nextBigInt()
  assert.equal(ids.observe('0'), undefined)
  assert.equal(ids.nextBigInt(), first + 1n)
  const theirs = ids.layout.maxId(now + 1000)
  ids.observe(theirs)
  ids.observe(BigInt(theirs))
  ids.observe(first)
  ids.setTime(now + 1001)
  assertAscending([theirs, ids.next(), ids.layout.minId(now + 1002)])
  refused('OUT_OF_RANGE', () => ids.observe(ids.layout.minId(now + 2002)), 'id=', '1001 ms ahead of the clock', 'allow 1s')
  refused('LAYOUT_EXPIRED', () => manual('standard node=2', ids.layout.expiresAt.getTime() - 1).observe(2n ** 63n - 1n))
  refused('ID_INVALID', () => manual('js53 node=1', now).observe(2n ** 53n), '53')
  refused('ID_INVALID', () => ids.observe(2 ** 53))
  refused('CLOCK_NOT_SET', () => manual('standard node=1').observe(2 ** 40))
  const real = new Snowflake('standard node=917 rollback=ahead:1h exhausted=ahead:1h')
  const later = real.layout.maxId(Date.now() + 60000)
  real.observe(later)
  assertAscending([later, real.next(), await real.nextAsync(), ...real.batch(10)])
})

test('burst_credit', () => {
  const start = 1735689700000
  const ids = manual('game server=4711 start=zero', start)
  ids.next()
  const now = start + 20000
  ids.setTime(now)
  const credit = ids.credit()
  assert.ok(credit >= 65536, String(credit))
  const loot = new BigInt64Array(65536)
  assert.equal(ids.fill(loot), 65536)
  assertAscending(loot)
  assert.ok(ids.layout.decode(loot.at(-1)).time.getTime() <= now)
  assert.equal(ids.credit(), credit - 65536)
  ids.batch(ids.credit())
  refused('EXHAUSTED', () => ids.next())
})

test('registry', () => {
  const minted = new Set()
  for (let i = 0; i < 3000; i++) {
    minted.add(new Snowflake('twitter datacenter=2 worker=1').next())
  }
  assert.equal(minted.size, 3000)
  refused('CONFLICT', () => new Snowflake('twitter datacenter=2 worker=1 exhausted=error'), 'exhausted=error')
})

test('threads', async () => {
  const count = 50000
  const spec = 'twitter datacenter=2 worker=2'
  const program = `
    const { parentPort, workerData } = require('node:worker_threads')
    const { FrazilError, Snowflake } = require(workerData)
    const ids = new Snowflake('${spec}')
    const minted = new BigInt64Array(${count})
    for (let at = 0; at < minted.length; at++) {
      try {
        minted[at] = ids.nextBigInt()
      } catch (error) {
        // The threads share 4,096 IDs a millisecond; each thread has a different error class.
        if (!(error instanceof FrazilError) || error.code !== 'WOULD_BLOCK') throw error
        at--
      }
    }
    parentPort.postMessage(minted)`
  const worker = () =>
    new Promise((resolve, reject) => {
      const thread = new Worker(program, { eval: true, workerData: createRequire(import.meta.url).resolve('frazil') })
      thread.once('message', resolve)
      thread.once('error', reject)
    })
  const workers = Array.from({ length: 4 }, worker)
  const own = new Snowflake(spec)
  const here = []
  for (let i = 0; i < 500; i++) {
    here.push(await own.nextAsync())
    await sleep(i % 50 === 0 ? 1 : 0)
  }
  const all = [here, ...(await Promise.all(workers))]
  all.forEach(assertAscending)
  assert.equal(new Set(all.flatMap(ids => [...ids].map(String))).size, 4 * count + 500)
})

// Node does not fork without exec: a worker thread shares the process's state ('threads', above), and a
// child process begins with a new state. So FORKED cannot be raised here, and a child needs its own number.
test('fork', async () => {
  const mint = worker => `
    import { Snowflake } from 'frazil'
    const ids = await Snowflake.open('twitter', { datacenter: 3, worker: ${worker} })
    console.log((await ids.batchAsync(5000)).join())`
  const children = [1, 2].map(worker => runChild(mint(worker)))
  const own = await Snowflake.open('twitter datacenter=3 worker=3')
  const mine = await own.batchAsync(5000)
  const theirs = (await Promise.all(children)).flatMap(printed => printed.split(','))
  const all = [...mine, ...theirs]
  assert.equal(new Set(all).size, 15000)

  const spec = 'twitter datacenter=3 worker=4 clock=manual'
  const ids = new Snowflake(spec)
  ids.setTime(1700000000000)
  const inChild = await runChild(`
    import { Snowflake } from 'frazil'
    const ids = new Snowflake('${spec}')
    ids.setTime(1700000000000)
    console.log(ids.next())`)
  assert.equal(inChild, ids.next(), 'the child has its own state')
})

test('restored', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'frazil-restored-'))
  const printed = await runChild(`
    import { Segment, Snowflake, restored } from 'frazil'
    import { uuid7 } from 'frazil/uuid'
    const outcome = call => { try { return call() && 'made' } catch (error) { return error.code } }
    const ids = new Snowflake('standard node=7 detached=true')
    const leased = await Snowflake.open('standard store=memory namespace=node-restored')
    const tags = await Segment.open('node-restored', { store: ${JSON.stringify(`file:${folder}`)} })
    const calls = [ids, leased, tags].map(source => () => source.next())
    calls.forEach(call => call())
    restored()
    const other = new Snowflake('standard node=8 detached=true')
    console.log([...calls, () => other.next(), uuid7].map(outcome).join())
    // By index.d.ts, every generator has a number.
    console.log([ids, leased].map(source => outcome(() => typeof source.node === 'number')).join())`)
  assert.equal(printed, 'COPIED,COPIED,COPIED,made,made\nCOPIED,COPIED')
})

test('memory_store', async () => {
  // A process finds out after 1.5 x renew whether another one holds a number.
  const options = { store: 'memory', namespace: 'node-memory', detached: true, window: '400ms', renew: '100ms', rollback: 'error' }
  const layout = 'time:41@1ms node:1 sequence:12 epoch:2025-01-01'
  const open = more => Snowflake.open(undefined, { layout, ...options, ...more })
  const first = await open()
  const second = await open()
  assert.deepEqual([first.node, second.node].sort(), [0, 1])
  await rejected('NO_FREE_NODE', open(), 'all 2 node numbers')
  await rejected('NODE_IN_USE', open({ node: second.node }), `node number ${second.node} is held by`)
  const last = first.next()
  const freed = first.node
  await first.closeAsync()
  const third = await open()
  assert.equal(third.node, freed)
  assertAscending([last, third.next()])

  const roomy = await Snowflake.open('twitter store=memory namespace=node-release detached=true')
  const before = roomy.next()
  await roomy.releaseNodeAsync()
  assertAscending([before, await roomy.nextAsync()])
  await rejected('SPEC', new Snowflake('twitter datacenter=2 worker=3').releaseNodeAsync(), 'store')
})

test('environment', async () => {
  const program = `
    import { Snowflake } from 'frazil'
    let answer
    try {
      answer = new Snowflake(...(process.env.SPEC ? [process.env.SPEC] : [])).spec
    } catch (error) {
      answer = error.code + ' ' + error.message
    }
    console.log(answer)`
  const spec = env => runChild(program, { env })
  const [given, none, bad, variable, missing] = await Promise.all([
    spec({ FRAZIL: 'twitter worker=7 datacenter=1' }),
    spec({}),
    spec({ FRAZIL: 'twitter worker' }),
    spec({ SPEC: 'twitter datacenter=1 worker=env:MY_WORKER', MY_WORKER: '9' }),
    spec({ SPEC: 'twitter datacenter=1 worker=env:MY_WORKER' }),
  ])
  assert.equal(given, 'twitter worker=7 datacenter=1')
  assert.match(none, /^NODE_MISSING .*FRAZIL/)
  assert.match(bad, /^SPEC FRAZIL: /)
  assert.equal(variable, 'twitter datacenter=1 worker=env:MY_WORKER')
  assert.match(missing, /^SPEC .*MY_WORKER/)
})

test('options', () => {
  const line = new Snowflake('twitter worker=7 datacenter=1 clock=manual detached=true')
  const native = new Snowflake('twitter', { worker: 7, datacenter: '1', clock: 'manual', detached: true })
  assert.equal(native.spec, line.spec)
  assert.equal(new Snowflake('twitter worker=7', { datacenter: 1n, lag: undefined, detached: true }).spec, 'twitter worker=7 datacenter=1 detached=true')
  const layout = new Layout('time:41@1ms shop:10 sequence:12 epoch:2025-01-01')
  const epoch = new Date('2026-01-01')
  const own = new Snowflake(undefined, { layout, epoch, shop: 5, detached: true })
  assert.equal(own.layout.epoch.getTime(), epoch.getTime())
  assert.equal(own.layout.decode(own.next()).shop, 5)
  const bare = Object.assign(Object.create(null), { node: 3, detached: true, [Symbol('ignored')]: 1 })
  assert.equal(new Snowflake('standard', bare).node, 3)
  const after = new Snowflake('twitter', { datacenter: 1, worker: 1, after: 8388608009n, detached: true })
  assert.ok(after.nextBigInt() > 8388608009n)

  refused('SPEC', () => new Snowflake('twitter worker=7', { worker: 7 }), 'worker', 'twice')
  refused('UNKNOWN_KEY', () => new Snowflake('twitter', { datacenter: 1, wroker: 7 }), 'wroker')
  refused('SPEC', () => new Snowflake('twitter', { layout }), 'preset')
  refused('OUT_OF_RANGE', () => new Snowflake('twitter', { datacenter: 1, worker: 32 }), 'worker=32', '0 to 31')
})

test('wide fields are bigints, all others are numbers', () => {
  const wide = new Layout('time:3@1h node:55 sequence:5 epoch:2026-01-01')
  const parts = wide.decode('9223372036854775807')
  assert.deepEqual([parts.tick, parts.node, parts.sequence], [7, 2n ** 55n - 1n, 31])
  const { time, node, sequence } = parts
  assert.equal(wide.compose({ time, node, sequence }), '9223372036854775807')
  const ids = new Snowflake(`layout="${wide}" node=${node} clock=manual detached=true`)
  assert.equal(ids.node, node)
  assert.deepEqual(ids.fields, { node })
  assert.doesNotThrow(() => JSON.stringify(twitter.decode('1541815603606036480')))
})

test('looksRounded is true for an ID that a number has rounded', () => {
  assert.equal(twitter.decode('1541815603606036480').looksRounded, false)
  assert.equal(twitter.decode(String(1541815603606036481)).looksRounded, true)
})

test('a method that was taken from a generator keeps it alive, and an unreachable generator releases its number', async () => {
  const answer = await runChild(
    `
    import { Snowflake } from 'frazil'
    import { setImmediate as turn } from 'node:timers/promises'
    const open = () => Snowflake.open(undefined, {
      layout: 'time:41@1ms node:1 sequence:12 epoch:2025-01-01', store: 'memory', detached: true,
      window: '400ms', renew: '100ms', rollback: 'error' })
    const next = (await open()).next
    const collect = async () => { gc(); await turn() }
    for (let i = 0; i < 20; i++) {
      await collect()
      next()
    }
    let reused = 0
    for (let i = 0; i < 200 && reused < 10; i++) {
      try {
        await open()
        reused++
      } catch (error) {
        if (error.code !== 'NO_FREE_NODE') throw error
      }
      await collect()
    }
    console.log(reused, typeof next())`,
    { flags: ['--expose-gc'] },
  )
  assert.equal(answer, '10 string')
})

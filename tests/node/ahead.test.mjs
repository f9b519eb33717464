// Texts that are prepared before their IDs are issued. A program must not notice the preparation.
import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import { test } from 'node:test'
import { createContext, Script } from 'node:vm'
import { Worker } from 'node:worker_threads'
import { Segment, Snowflake, parseId } from 'frazil'
import { assertAscending, manual, refused, runChild } from './helper.mjs'

const START = 1700000000000
// IDs without random parts, and ticks with room for all IDs of a test.
const PLAIN = 'layout="time:31@1s node:10 sequence:20 epoch:2020-01-01" start=zero rollback=error'
const FORMATS = ['decimal', 'base62', 'base32', 'hex', 'check']

test('each call mints the next ID, in any mix of calls and handles', () => {
  const [one, two] = [new Snowflake(`${PLAIN} node=1 clock=manual`), new Snowflake(`${PLAIN} node=1 clock=manual`)]
  one.setTime(START)
  const calls = [one, two].flatMap(ids => [
    () => ids.next(), () => ids.nextBigInt(), () => ids.next({ maxWaitMs: 0 }), () => ids.batch(20).at(-1), () => ids.batchBigInt(2).at(-1),
    ...FORMATS.flatMap(format => [() => parseId(ids.text(format), format), () => parseId(ids.text(format, {}), format)]),
  ])
  const sizes = new Map([[3, 20n], [4, 2n], [18, 20n], [19, 2n]])
  let last = one.nextBigInt()
  let seed = 1
  for (let i = 0; i < 3000; i++) {
    seed = (seed * 48271) % 2147483647
    const call = seed % calls.length
    // Each call is repeated, so that pieces of prepared text are begun, used up and dropped.
    for (let left = seed % 40; left >= 0; left--) {
      const expected = last + (sizes.get(call) ?? 1n)
      last = BigInt(calls[call]())
      assert.equal(last, expected, `${calls[call]}`)
    }
  }
})

test('the stamp is the time of the call', () => {
  const ids = manual(`${PLAIN} node=2`)
  const time = id => ids.layout.decode(id).time.getTime()
  for (let second = 0; second < 50; second++) {
    ids.setTime(START + second * 1000)
    for (let nth = 0; nth < second; nth++) {
      assert.equal(time(ids.next()), START + second * 1000)
      assert.equal(time(parseId(ids.text('hex'), 'hex')), START + second * 1000)
    }
  }
  ids.setTime(START)
  refused('CLOCK_BACK', () => ids.next())
})

test('numbers of any width and distance', async () => {
  const open = more => Segment.open(`widths store=memory namespace=node-ahead-${more.namespace} step=100000`, more.options)
  const numbers = await open({ namespace: 'one' })
  for (let number = 1; number < 1200; number++) {
    assert.equal(numbers.next(), String(number))
  }
  const batches = await open({ namespace: 'batch' })
  assert.deepEqual(batches.batch(12345), Array.from({ length: 12345 }, (_, at) => String(at + 1)))
  const odd = await open({ namespace: 'odd', options: { increment: 2, offset: 1 } })
  for (let number = 1; number < 1200; number += 2) {
    assert.equal(odd.next(), String(number))
  }
  assert.deepEqual(odd.batch(100), Array.from({ length: 100 }, (_, at) => String(1201 + 2 * at)))
})

test('EXHAUSTED in the middle of the prepared texts, and the next tick continues', () => {
  const ids = manual('layout="time:41@1ms node:10 sequence:5 epoch:2020-01-01" start=zero exhausted=error node=3', START)
  const minted = []
  for (let tick = 0; tick < 20; tick++) {
    ids.setTime(START + tick)
    for (let nth = 0; nth < 32; nth++) {
      minted.push(nth % 9 === 8 ? parseId(ids.text('base62'), 'base62') : ids.next())
    }
    refused('EXHAUSTED', () => ids.next())
    refused('EXHAUSTED', () => ids.text('base62'))
  }
  assertAscending(minted)
})

test('a closed handle has no prepared texts left', () => {
  const ids = manual(`${PLAIN} node=4`, START)
  const { next, text } = ids
  for (let nth = 0; nth < 20; nth++) {
    next()
    text('hex')
  }
  ids.close()
  for (const call of [next, () => text('hex'), () => text('base32'), () => next({ maxWaitMs: 1 })]) {
    refused('CLOSED', call)
  }
  refused('OUT_OF_RANGE', () => text('roman'))
})

test('subclasses, and methods that a program replaces', async () => {
  class Orders extends Snowflake {
    order() {
      return `order-${this.next()}`
    }
  }
  const opened = await Orders.open(`${PLAIN} node=5 clock=manual detached=true`)
  const ids = new Orders(`${PLAIN} node=5 clock=manual detached=true`)
  for (const each of [opened, ids]) {
    each.setTime(START)
    assert.ok(each instanceof Orders)
    const [first, second] = [each.order(), each.order()].map(order => BigInt(order.slice(6)))
    assert.equal(second, first + 1n)
    assert.deepEqual(Object.keys(each), [])
  }
  assert.deepEqual([ids.next.name, ids.next.length, ids.text.name], ['next', 0, 'text'])
  ids.next = () => '7'
  assert.deepEqual([ids[Symbol.iterator]().next().value, ids.order()], ['7', 'order-7'])
})

test('a stack overflow in a call skips no ID', () => {
  const ids = manual(`${PLAIN} node=6`, START)
  const minted = []
  const deeper = () => {
    try {
      deeper()
    } catch (error) {
      assert.ok(error instanceof RangeError)
      throw error
    } finally {
      // Near the end of the stack, each call may fail at a different place.
      try {
        minted.push(ids.next())
      } catch (error) {
        assert.ok(error instanceof RangeError, error)
      }
    }
  }
  for (let round = 0; round < 5; round++) {
    assert.throws(deeper, RangeError)
    const now = ids.nextBigInt()
    minted.push(ids.next())
    assert.equal(BigInt(minted.at(-1)), now + 1n)
  }
  assertAscending(minted)
})

test('workers with one generator', async () => {
  const spec = 'layout="time:41@1ms node:2 sequence:20 epoch:2020-01-01" node=1'
  const program = `
    const { parentPort, workerData } = require('node:worker_threads')
    const { Snowflake } = require(workerData)
    const ids = new Snowflake('${spec}', { maxWaitMs: 10000 })
    const minted = []
    for (let i = 0; i < 30000; i++) minted.push(i % 1000 < 500 ? ids.next() : BigInt('0x' + ids.text('hex')).toString())
    parentPort.postMessage(minted)`
  const run = () => new Promise((resolve, reject) => {
    const worker = new Worker(program, { eval: true, workerData: createRequire(import.meta.url).resolve('frazil') })
    worker.once('message', resolve)
    worker.once('error', reject)
  })
  const all = await Promise.all([run(), run(), run()])
  all.forEach(assertAscending)
  assert.equal(new Set(all.flat()).size, 90000)
})

test('a kept ID keeps little other memory', async () => {
  const program = `
    import { Snowflake } from 'frazil'
    const ids = new Snowflake('layout="time:31@1s node:2 sequence:30 epoch:2020-01-01" node=1 clock=manual')
    ids.setTime(${START})
    const kept = []
    globalThis.gc()
    const before = process.memoryUsage().heapUsed
    for (let i = 0; i < 10000; i++) {
      for (let k = 0; k < 50; k++) ids.next()
      kept.push(ids.next(), ids.batch(100)[50])
    }
    globalThis.gc()
    console.log(Math.round((process.memoryUsage().heapUsed - before) / kept.length))`
  const bytes = Number(await runChild(program, { flags: ['--expose-gc'] }))
  assert.ok(bytes > 20 && bytes < 500, `${bytes} bytes for each`)
})

test('a script that times out during a call skips no ID', () => {
  const ids = manual('layout="time:31@1s node:2 sequence:30 epoch:2020-01-01" start=zero node=1', START)
  const context = createContext({ ids })
  const script = new Script('for (;;) { for (let nth = 0; nth < 7; nth++) ids.next(); ids.text("hex") }')
  let last = 0n
  for (let round = 0; round < 60; round++) {
    assert.throws(() => script.runInContext(context, { timeout: 1 + round % 5 }), { code: 'ERR_SCRIPT_EXECUTION_TIMEOUT' })
    const minted = [ids.nextBigInt(), BigInt(ids.next()), BigInt(ids.next()), BigInt(`0x${ids.text('hex')}`)]
    assert.ok(minted[0] > last)
    assert.deepEqual(minted, [0n, 1n, 2n, 3n].map(nth => minted[0] + nth))
    last = minted[3]
  }
})

test('a lease that is released in the middle of a piece, and a handle that is closed by a callback', async () => {
  const ids = await Snowflake.open('layout="time:31@1s node:10 sequence:20 epoch:2020-01-01" store=memory namespace=node-ahead')
  const minted = []
  const nodes = new Set()
  for (let round = 0; round < 8; round++) {
    // Each round takes more IDs, so that a piece is dropped at another place.
    for (let nth = 0; nth < 18 + round * 3; nth++) {
      const id = nth % 5 === 4 ? parseId(ids.text('hex'), 'hex') : ids.next()
      minted.push(id)
      assert.equal(ids.layout.decode(id).node, ids.node)
    }
    nodes.add(ids.node)
    await ids.releaseNodeAsync()
    minted.push(await ids.nextAsync())
  }
  assertAscending(minted)
  assert.ok(nodes.size > 1, `${[...nodes]}`)

  const { next } = ids
  next()
  next()
  refused('CLOSED', () => ids.next({ get maxWaitMs() { ids.close(); return 0 } }))
  refused('CLOSED', next)
})

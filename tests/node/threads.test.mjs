// Worker threads that are terminated while they mint.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createRequire } from 'node:module'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import { Segment, Snowflake } from 'frazil'

const addon = createRequire(import.meta.url).resolve('frazil')
const CAPACITY = 1 << 20

/** Terminates three workers while they mint into shared memory. Returns the IDs of each worker. */
async function ended(open) {
  const program = `
    const { parentPort, workerData } = require('node:worker_threads')
    const { Segment, Snowflake } = require(workerData.addon)
    ;(async () => {
      const ids = ${open}
      const minted = new BigInt64Array(workerData.memory)
      parentPort.postMessage('minting')
      for (let at = 0; at < minted.length;) {
        try {
          minted[at] = ids.nextBigInt()
          at++
        } catch (error) {
          if (error.code !== 'WOULD_BLOCK') throw error
        }
      }
    })()`
  return Promise.all([1, 2, 3].map(async turn => {
    const memory = new SharedArrayBuffer(8 * CAPACITY)
    const worker = new Worker(program, { eval: true, workerData: { addon, memory } })
    await once(worker, 'message')
    await sleep(10 * turn)
    await worker.terminate()
    const minted = new BigInt64Array(memory)
    const end = minted.indexOf(0n)
    return [...minted.subarray(0, end === -1 ? CAPACITY : end)]
  }))
}

/** Asserts that all IDs differ, and that a worker was terminated before it was done. */
function assertUnique(parts) {
  assert.ok(parts.every(ids => ids.length > 0) && parts.some(ids => ids.length < CAPACITY), `${parts.map(ids => ids.length)} IDs`)
  const all = parts.flat()
  assert.equal(new Set(all).size, all.length)
}

test('workers that are terminated while they mint leave the generator to the others', async () => {
  const spec = 'twitter datacenter=2 worker=5'
  const own = new Snowflake(spec)
  const before = own.batchBigInt(10)
  const parts = await ended(`new Snowflake('${spec}')`)
  assertUnique([before, ...parts, await own.batchAsync(1000).then(ids => ids.map(BigInt)), new Snowflake(spec).batchBigInt(10)])
})

test('workers that are terminated while they take numbers leave the segment to the others', async () => {
  const spec = 'orders store=memory namespace=node-threads'
  const own = await Segment.open(spec)
  const parts = await ended(`await Segment.open('${spec}')`)
  assertUnique([own.batchBigInt(10), ...parts, (await own.batchAsync(1000)).map(BigInt)])
})

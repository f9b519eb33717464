// Every call that waits, for the tests. Run as a program, it prints how long each call takes to end.
import { once } from 'node:events'
import { spawn } from 'node:child_process'
import { mkdtempSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { threadId } from 'node:worker_threads'
import { Buffered, Segment, Snowflake, Tickets } from 'frazil'
import { removeStores } from './folders.mjs'

/** The folder of the stores, removed at the end. */
export const folder = mkdtempSync(join(tmpdir(), 'frazil-waits-'))
process.on('exit', () => removeStores(folder))

// Sixteen IDs an hour, and a wait for the next hour.
const HOUR = 'layout="time:31@1h node:20 sequence:4 epoch:2025-01-01" exhausted=wait:2h start=zero store=memory'
// Sixteen IDs a second.
const SECOND = 'layout="time:31@1s node:20 sequence:4 epoch:2025-01-01" exhausted=wait:60s start=zero'
// Calls of a store that time out late.
const LONG = { window: '64s', renew: '16s' }

/** Starts a server that accepts connections but never answers. */
async function silent() {
  const server = createServer(() => {}).listen(0, '127.0.0.1')
  await once(server, 'listening')
  server.unref()
  return `etcd://127.0.0.1:${server.address().port}`
}

/** Opens on a store, which then stops answering: another process holds the lock of its folder. */
async function lost(namespace, type, spec, options) {
  // Each call has its own store, because a thread of each store waits for the lock.
  const ids = await type.open(spec, { store: `file:${join(folder, namespace)}`, ...options })
  // The locking process ends with this process.
  const locking = [join(folder, namespace, type === Segment ? `default~${spec}` : 'default', '.lock'), 'sh', '-c', 'echo locked; cat']
  const lock = spawn('flock', locking, { stdio: ['pipe', 'pipe', 'ignore'] })
  await once(lock.stdout, 'data')
  lock.unref()
  lock.stdin.unref()
  lock.stdout.destroy()
  return ids
}

/** Opens a segment, takes all its prefetched numbers, and leaves it without a store that answers. */
async function empty(namespace) {
  const ids = await lost(namespace, Segment, 'orders', { step: 2, wait: '60s' })
  while (await ids.nextAsync({ maxWaitMs: 50 }).catch(() => false)) {
    // Takes the prefetched numbers.
  }
  return ids
}

let turn = 0
const unique = name => `${name}-${process.pid}-${threadId}-${turn++}`
const uniqueNode = () => 1000 * (threadId + 1) + turn++

/** Every promise that waits. For each name: `begin` starts it with options, and `ids` is the object whose `close` ends it. */
export const waits = {
  'Snowflake.open': async () => {
    const store = await silent()
    return { begin: options => Snowflake.open('standard', { store, ...options }) }
  },
  'Snowflake.nextAsync': async () => {
    const ids = await Snowflake.open(HOUR, { namespace: unique('next') })
    await ids.batchAsync(16)
    return { ids, begin: options => ids.nextAsync(options) }
  },
  'Snowflake.batchAsync': async () => {
    const ids = await Snowflake.open(SECOND, { node: uniqueNode() })
    return { ids, begin: options => ids.batchAsync(1000, options) }
  },
  'Snowflake.nextBigIntAsync': async () => {
    const ids = await Snowflake.open(HOUR, { namespace: unique('next-bigint') })
    await ids.batchAsync(16)
    return { ids, begin: options => ids.nextBigIntAsync(options) }
  },
  'Snowflake.batchBigIntAsync': async () => {
    const ids = await Snowflake.open(SECOND, { node: uniqueNode() })
    return { ids, begin: options => ids.batchBigIntAsync(1000, options) }
  },
  'Snowflake.releaseNodeAsync': async () => {
    const ids = await lost(unique('release'), Snowflake, 'standard', LONG)
    return { ids, begin: options => ids.releaseNodeAsync(options) }
  },
  'Snowflake.closeAsync': async () => {
    const ids = await lost(unique('close'), Snowflake, 'standard', LONG)
    return { begin: options => ids.closeAsync(options) }
  },
  'Segment.open': async () => {
    const store = await silent()
    return { begin: options => Segment.open('orders', { store, wait: '60s', ...options }) }
  },
  'Segment.nextAsync': async () => {
    const ids = await empty(unique('segment'))
    return { ids, begin: options => ids.nextAsync(options) }
  },
  'Segment.batchAsync': async () => {
    const ids = await empty(unique('segments'))
    return { ids, begin: options => ids.batchAsync(3, options) }
  },
  'Segment.nextBigIntAsync': async () => {
    const ids = await empty(unique('segment-bigint'))
    return { ids, begin: options => ids.nextBigIntAsync(options) }
  },
  'Segment.batchBigIntAsync': async () => {
    const ids = await empty(unique('segment-bigints'))
    return { ids, begin: options => ids.batchBigIntAsync(3, options) }
  },
  'Tickets.nextAsync': async () => {
    const store = await silent()
    const ids = await Tickets.open('orders', { store: [store, `${store}/two`], wait: '60s' })
    return { ids, begin: options => ids.nextAsync(options) }
  },
  'Tickets.batchAsync': async () => {
    const store = await silent()
    const ids = await Tickets.open('photos', { store: [store, `${store}/two`], wait: '60s' })
    return { ids, begin: options => ids.batchAsync(3, options) }
  },
  'Buffered.open': async () => {
    const store = await silent()
    return { begin: options => Buffered.open('standard', { store, empty: 'wait:60s', ...options }) }
  },
  'Buffered.nextAsync': async () => {
    const ids = await Buffered.open(HOUR, { namespace: unique('ring'), size: 2, empty: 'wait:60s' })
    await ids.batchAsync(16)
    return { ids, begin: options => ids.nextAsync(options) }
  },
  'Buffered.batchAsync': async () => {
    const ids = await Buffered.open(SECOND, { node: uniqueNode(), size: 2, empty: 'wait:60s' })
    return { ids, begin: options => ids.batchAsync(1000, options) }
  },
  'Buffered.discardAsync': async () => {
    const ids = await lost(unique('ring-discard'), Buffered, 'standard', LONG)
    return { ids, begin: options => ids.discardAsync(options) }
  },
  'Buffered.closeAsync': async () => {
    const ids = await lost(unique('ring-close'), Buffered, 'standard', LONG)
    return { begin: options => ids.closeAsync(options) }
  },
}

/** Returns how long a promise takes to end after `end`, in ms, and its outcome. */
export async function ended(promise, end) {
  let state = 'waits'
  const settled = promise.then(() => { state = 'kept' }, error => { state = error })
  await sleep(100)
  if (state !== 'waits') {
    throw new Error(`it does not wait: ${state.stack ?? state}`)
  }
  const began = performance.now()
  end()
  await Promise.race([settled, sleep(15000)])
  return { state, ms: performance.now() - began }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const rows = []
  const row = (name, how, ms) => rows.push({ wait: name, 'ended by': how, ms: Math.round(10 * ms) / 10 })
  for (const [name, make] of Object.entries(waits)) {
    const times = { signal: [], close: [] }
    for (let i = 0; i < 5; i++) {
      const { ids, begin } = await make()
      const abort = new AbortController()
      times.signal.push((await ended(begin({ signal: abort.signal }), () => abort.abort())).ms)
      if (ids && !/(releaseNode|discard)Async$/.test(name)) {
        times.close.push((await ended(begin(), () => ids.close())).ms)
      }
    }
    for (const [how, ms] of Object.entries(times).filter(([, ms]) => ms.length > 0)) {
      row(name, `${how} (worst of ${ms.length})`, Math.max(...ms))
    }
    const { begin } = await make()
    const began = performance.now()
    const error = await begin({ maxWaitMs: 300 }).catch(error => error)
    row(name, `maxWaitMs: 300 (${error.code})`, performance.now() - began)
  }
  console.table(rows)
  process.exit()
}

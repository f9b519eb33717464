// Leased node numbers: their state, their release, and sharing them.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, readdirSync, renameSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import { FrazilError, Snowflake } from 'frazil'
import { removeStores } from './folders.mjs'
import { assertAscending, here, inTime, refused, rejected, runChild } from './helper.mjs'

const folder = mkdtempSync(join(tmpdir(), 'frazil-lease-'))
const opened = []
after(async () => {
  await Promise.all(opened.map(ids => ids.closeAsync()))
  removeStores(folder)
})

/** Opens a generator that is closed after the test. */
async function open(...given) {
  opened.push(await Snowflake.open(...given))
  return opened.at(-1)
}

// The texts of programs contain the path, on Windows too.
const store = `file:${folder.replaceAll('\\', '/')}`
// A process finds out after 1.5 x renew whether another one holds a number. On a busy machine, the renewing thread may be delayed by 1 s.
const QUICK = { window: '4s', renew: '1s', rollback: 'error' }
// A blocking call to the store takes 5 s. A call that does not block returns much earlier, even on a busy machine.
const SLOW = { window: '32s', renew: '8s' }
const NOT_BLOCKED_MS = 2500
const TWO = 'time:41@1ms node:1 sequence:12 epoch:2025-01-01'
const addon = createRequire(import.meta.url).resolve('frazil').replaceAll('\\', '/')

/** Returns the state of each node number of a namespace in the file store: 'held' or 'free'. */
function slots(namespace) {
  const states = {}
  for (const name of readdirSync(join(folder, namespace)).filter(name => /^[0-9]+$/.test(name))) {
    const bytes = readFileSync(join(folder, namespace, name))
    const half = bytes.readBigUInt64LE(24) > bytes.readBigUInt64LE(4096 + 24) ? 0 : 4096
    const text = bytes.toString('utf8', half + 36, half + 36 + bytes.readUInt32LE(half + 32))
    states[name] = text.split(' ')[1]
  }
  return states
}

const tenures = namespace => Object.values(slots(namespace))

/** Makes the store stop answering: another process holds the lock of the namespace's folder. Returns a function that ends this. */
async function silenced(namespace) {
  const locking = [join(folder, namespace, '.lock'), 'sh', '-c', 'echo locked; sleep 600']
  const lock = spawn('flock', locking, { stdio: ['ignore', 'pipe', 'inherit'], detached: true })
  await once(lock.stdout, 'data')
  return () => process.kill(-lock.pid)
}

/** Runs a program in a worker thread. Returns the thread and its first message. */
function inWorker(program, workerData = {}) {
  const thread = new Worker(`const { parentPort, workerData } = require('node:worker_threads')
    const { Snowflake } = require(workerData.addon)
    ;(async () => { ${program} })()`, { eval: true, workerData: { addon, store, ...workerData } })
  const message = new Promise((resolve, reject) => {
    thread.once('message', resolve)
    thread.once('error', reject)
  })
  return { thread, message }
}

/** Starts a server that accepts connections but never answers. */
async function silentServer() {
  const server = createServer(() => {}).listen(0, '127.0.0.1')
  await once(server, 'listening')
  server.unref()
  return server
}

test('lease_info', async () => {
  assert.equal(new Snowflake('twitter datacenter=10 worker=1').lease, undefined)
  const before = Date.now()
  const ids = await open('standard', { store, namespace: 'eu-items_2.1' })
  const lease = ids.lease
  assert.equal(lease.node, ids.node)
  assert.ok(lease.bound instanceof Date && lease.bound.getTime() > before + 2000 && lease.bound.getTime() < Date.now() + 5000)
  assert.deepEqual([lease.store, lease.namespace, lease.healthy], [store, 'eu-items_2.1', true])
  assert.deepEqual([lease.lastError, lease.left], [undefined, undefined])
  assert.ok(Object.isFrozen(lease))
  await inTime(() => ids.lease.bound > lease.bound)
  ids.close()
  assert.equal(ids.lease.namespace, 'eu-items_2.1', 'a property stays')

  const options = { layout: TWO, store: 'memory', namespace: 'node-disposable', lease: 'disposable', detached: true }
  const counted = [await open(undefined, options), await open(undefined, options)]
  assert.deepEqual(counted.map(ids => [ids.lease.node, ids.lease.bound, ids.lease.left]), [[0, undefined, 1], [1, undefined, 0]])
  await rejected('NO_FREE_NODE', Snowflake.open(undefined, options), 'spent')

  const epoch = new Date(Date.now() - 3_600_000)
  const wide = await open('layout="time:3@1h node:55 sequence:5 epoch:1970-01-01" store=memory', { epoch })
  assert.equal(typeof wide.lease.node, 'bigint')
  assert.equal(wide.lease.node, wide.node)
})

test('lease_close_releases', async () => {
  const ids = await open('standard', { store, namespace: 'close' })
  const other = await open('standard', { store, namespace: 'close' })
  assert.equal(other.node, ids.node)
  await ids.closeAsync()
  assert.deepEqual(slots('close'), { [ids.node]: 'held' }, 'another handle is open')
  assert.match(other.next(), /^[0-9]+$/)
  await other.closeAsync()
  await other.closeAsync()
  assert.deepEqual(slots('close'), { [ids.node]: 'free' })
  refused('CLOSED', () => other.next())

  const quick = await open('standard', { store, namespace: 'close-2', ...SLOW })
  const letGo = await silenced('close-2')
  const started = performance.now()
  quick.close()
  const took = performance.now() - started
  assert.deepEqual(tenures('close-2'), ['held'])
  letGo()
  assert.ok(took < NOT_BLOCKED_MS, `close holds the loop up for ${took} ms, which shall be 2`)
  await inTime(() => tenures('close-2')[0] === 'free')

  if (Symbol.asyncDispose) {
    const disposed = await open('standard', { store, namespace: 'dispose' })
    await disposed[Symbol.asyncDispose]()
    assert.deepEqual(tenures('dispose'), ['free'])
    refused('CLOSED', () => disposed.next())
  }

  const released = await open('standard', { store, namespace: 'release' })
  const first = released.next()
  await released.releaseNodeAsync()
  await released.releaseNodeAsync()
  assert.deepEqual(tenures('release'), ['free'])
  assertAscending([first, await released.nextAsync()])
  assert.equal(slots('release')[released.node], 'held')
  assert.equal(released.lease.node, released.node)
  await released.closeAsync()
})

test('a collected generator releases its number', async () => {
  const program = `
    import { Snowflake } from 'frazil'
    await (async () => { (await Snowflake.open('standard', { store: '${store}', namespace: 'collected' })).next() })()
    console.log('minted')
    for (;;) {
      gc()
      await new Promise(resolve => setTimeout(resolve, 10))
    }`
  const flags = ['--expose-gc', '--input-type=module', '-e', program]
  const child = spawn(process.execPath, flags, { cwd: here, stdio: ['ignore', 'pipe', 'inherit'] })
  try {
    await once(child.stdout, 'data')
    await inTime(() => tenures('collected')[0] === 'free')
    assert.deepEqual([child.exitCode, child.signalCode], [null, null], 'it is the collector, not the end of the process')
  } finally {
    child.kill('SIGKILL')
  }
})

test('the end of the process releases numbers', async () => {
  const ends = {
    natural: '',
    exit: 'process.exit(0)',
    code: 'process.exitCode = 3',
    uncaught: 'setTimeout(() => { throw new Error("uncaught") })',
    listener: `process.on('exit', () => { console.log(ids.next()) })`,
    again: `process.once('beforeExit', () => { ids.next(); process.exit(1) })`,
  }
  await Promise.all(Object.entries(ends).map(async ([name, end]) => {
    const program = `
      import { Snowflake } from 'frazil'
      const ids = await Snowflake.open('standard', { store: '${store}', namespace: 'end-${name}' })
      ids.next()
      ${end}`
    await runChild(program).catch(error => assert.equal(error.signal, null))
    assert.deepEqual(tenures(`end-${name}`), ['free'], name)
  }))
})

test('the end of a process that has only workers releases numbers', async () => {
  for (const end of ['', 'process.exit(0)', 'await worker.terminate()']) {
    const namespace = `workers-${end.replace(/[^a-z]/g, '')}`
    await runChild(`
      import { Worker } from 'node:worker_threads'
      import { once } from 'node:events'
      const program = \`
        const { Snowflake } = require(${JSON.stringify(addon)})
        Snowflake.open('standard', { store: '${store}', namespace: '${namespace}' }).then(ids => {
          ids.next()
          require('node:worker_threads').parentPort.postMessage(1)
          ${end === '' ? '' : 'setInterval(() => ids.next(), 10)'}
        })\`
      const worker = new Worker(program, { eval: true, execArgv: [] })
      await once(worker, 'message')
      ${end}`)
    assert.deepEqual(tenures(namespace), ['free'], end)
  }
})

test('an end waits for a silent store for half a second at most', async () => {
  const namespace = 'silent'
  const program = `
    import { Snowflake } from 'frazil'
    const ids = await Snowflake.open('standard', { store: '${store}', namespace: '${namespace}', ...${JSON.stringify(SLOW)} })
    console.log(ids.next())
    process.stdin.once('data', () => { console.log(Date.now()); process.exit(0) })`
  const child = spawn(process.execPath, ['--input-type=module', '-e', program], { cwd: here, stdio: ['pipe', 'pipe', 'inherit'] })
  await once(child.stdout, 'data')
  const letGo = await silenced(namespace)
  let output = ''
  child.stdout.on('data', data => { output += data })
  child.stdin.write('end\n')
  await once(child, 'exit')
  const took = Date.now() - Number(output)
  letGo()
  // Without the limit, the end would wait for 5 s.
  assert.ok(took >= 400 && took < 4000, `${took} ms`)
  assert.deepEqual(tenures(namespace), ['held'])
})

test('lease_named_slot', async () => {
  const options = { store, namespace: 'named', ...QUICK }
  const program = `
    import { Snowflake } from 'frazil'
    const ids = await Snowflake.open('standard', { node: 7, ...${JSON.stringify(options)} })
    console.log(ids.next())
    process.stdin.resume()`
  const child = spawn(process.execPath, ['--input-type=module', '-e', program], { cwd: here, stdio: ['pipe', 'pipe', 'inherit'] })
  const [printed] = await once(child.stdout, 'data')
  const again = Snowflake.open('standard', { node: 7, ...options })
  const error = await rejected('NODE_IN_USE', again, 'node number 7 is held by', `:${child.pid} until`, store)
  assert.equal(error.number, 302)
  assert.equal((await open('standard', { node: 8, ...options })).node, 8)
  child.stdin.end()
  await once(child, 'exit')
  const ids = await open('standard', { node: 7, ...options })
  assert.deepEqual([ids.node, ids.lease.node], [7, 7])
  assertAscending([String(printed).trim(), ids.next()])
})

test('lease_file_store', async () => {
  const options = { store, namespace: 'shared' }
  const program = `
    import { Snowflake } from 'frazil'
    import { readdirSync } from 'node:fs'
    const ids = await Snowflake.open('standard', ${JSON.stringify(options)})
    const minted = []
    for (let i = 0; i < 5; i++) {
      minted.push(...await ids.batchAsync(4000))
    }
    console.log(JSON.stringify([ids.node, minted]))
    // No process releases its number before all three have theirs.
    while (readdirSync(${JSON.stringify(join(folder, options.namespace))}).filter(name => /^[0-9]+$/.test(name)).length < 3) {
      await new Promise(resolve => setTimeout(resolve, 10))
    }`
  const children = [runChild(program), runChild(program)]
  const ids = await open('standard', options)
  const all = [[ids.node, await ids.batchAsync(20000)], ...(await Promise.all(children)).map(text => JSON.parse(text))]
  assert.equal(new Set(all.map(([node]) => node)).size, 3)
  for (const [node, minted] of all) {
    assertAscending(minted)
    assert.deepEqual([...new Set(minted.map(id => ids.layout.decode(id).node))], [node])
  }
  assert.equal(new Set(all.flatMap(([, minted]) => minted)).size, 60000)
})

test('lease_errors', async () => {
  const opening = options => () => new Snowflake('standard', { store, namespace: 'errors', ...options })
  refused('SPEC', opening({ namespace: 'two words' }), 'namespace', 'a-z')
  refused('SPEC', opening({ lease: 'forever' }), 'lease', 'disposable')
  refused('OUT_OF_RANGE', opening({ renew: '99ms' }), 'renew=99ms', '100ms')
  refused('OUT_OF_RANGE', opening({ window: '2s', renew: '1s' }), 'window=2s', '4s')
  refused('SPEC', opening({ window: 'soon' }), 'window')
  refused('SPEC', opening({ window: '3s', lease: 'disposable' }), 'window', 'disposable')
  refused('SPEC', () => new Snowflake('standard node=1', { window: '3s' }), 'window', 'store')

  // The refusal contacts no server: nothing listens at this address.
  const why = refused('STORE_UNSUITABLE', opening({ store: 'redis://user:secret@203.0.113.1/0', lease: 'disposable' }), '203.0.113.1')
  assert.ok(!why.message.includes('secret'))

  // No server listens on port 1.
  const nobody = { store: 'redis://:secret@127.0.0.1:1/0', window: '4s', renew: '1s' }
  const gone = await rejected('STORE_UNREACHABLE', Snowflake.open('standard', nobody), '127.0.0.1:1')
  assert.ok(!gone.message.includes('secret'))

  const one = await open('standard', { store, namespace: 'errors' })
  await rejected('LAYOUT_MISMATCH', Snowflake.open('twitter', { store, namespace: 'errors' }), 'errors')
  await rejected('CONFLICT', Snowflake.open('standard', { store, namespace: 'errors', rollback: 'error' }), `node number ${one.node}`)
  one.close()

  const two = { layout: TWO, store: 'memory', namespace: 'node-errors', detached: true, ...QUICK }
  const full = [await open(undefined, two), await open(undefined, two)]
  await rejected('NO_FREE_NODE', Snowflake.open(undefined, two), 'all 2 node numbers')
  // While another owner has the released number, calls fail and name the reason. Once the number is free, the next call leases it again.
  await full[0].releaseNodeAsync()
  const thief = await open(undefined, two)
  await rejected('LEASE_EXHAUSTED', full[0].nextAsync(), 'all 2 node numbers')
  const lease = full[0].lease
  assert.ok(!lease.healthy && lease.lastError instanceof FrazilError && lease.lastError.code === 'NO_FREE_NODE')
  await thief.closeAsync()
  await inTime(() => full[0].nextAsync().then(() => true, error => assert.equal(error.code, 'LEASE_EXHAUSTED')))
  assert.deepEqual([full[0].lease.healthy, full[0].lease.lastError], [true, undefined])

  // The store is unreachable when the bound is reached.
  const ids = await open('standard', { store, namespace: 'away', ...QUICK })
  renameSync(join(folder, 'away'), join(folder, 'gone'))
  writeFileSync(join(folder, 'away'), 'in the way')
  let error
  for (const until = Date.now() + 60000; error === undefined && Date.now() < until; await sleep(1)) {
    error = await ids.nextAsync().then(() => undefined, error => error)
  }
  assert.equal(error.code, 'LEASE_EXHAUSTED')
  assert.match(error.message, new RegExp(`node number ${ids.node} .* since `))
  assert.ok(!ids.lease.healthy)
})

test('a store does not hold up the loop', async context => {
  const server = await silentServer()
  const slow = `redis://127.0.0.1:${server.address().port}`
  const options = { store: slow, window: '2500ms', renew: '500ms' }
  const started = performance.now()
  for (const store of [slow, slow.replace('redis:', 'postgresql:')]) {
    refused('WOULD_BLOCK', () => new Snowflake('standard', { store, ...SLOW }), 'use await Snowflake.open(...), or a longer maxWaitMs')
  }
  assert.ok(performance.now() - started < NOT_BLOCKED_MS)
  let turns = 0
  const timer = setInterval(() => turns++, 10)
  context.after(() => {
    clearInterval(timer)
    server.close()
  })
  await rejected('STORE_UNREACHABLE', Snowflake.open('standard', options), '127.0.0.1')
  assert.ok(turns > 10, `${turns} turns`)
})

test('worker threads share a number', async () => {
  const mint = `
    const ids = await Snowflake.open('standard', { store: workerData.store, namespace: 'threads' })
    const minted = []
    for (let i = 0; i < 4; i++) minted.push(...await ids.batchAsync(5000))
    if (workerData.close) await ids.closeAsync()
    parentPort.postMessage([ids.node, minted])`
  const own = await open('standard', { store, namespace: 'threads' })
  const workers = [inWorker(mint, { close: true }), inWorker(mint)]
  const mine = []
  for (let i = 0; i < 20; i++) {
    mine.push(...await own.batchAsync(500))
  }
  const theirs = await Promise.all(workers.map(worker => worker.message))
  await Promise.all(workers.map(({ thread }) => thread.terminate()))
  assert.deepEqual(theirs.map(([node]) => node), [own.node, own.node])
  const all = [mine, ...theirs.map(([, minted]) => minted)]
  all.forEach(assertAscending)
  assert.equal(new Set(all.flat()).size, 50000)
  // One handle was closed, and the thread of another has ended. The remaining handle still has the number.
  assert.deepEqual(slots('threads'), { [own.node]: 'held' })
  assertAscending([mine.at(-1), own.next()])
  await own.closeAsync()
  assert.deepEqual(slots('threads'), { [own.node]: 'free' })
})

test('the end of a worker releases its number', async () => {
  const program = `
    const ids = await Snowflake.open('standard', { store: workerData.store, namespace: 'worker' })
    ids.next()
    parentPort.postMessage(ids.node)
    if (workerData.stays) setInterval(() => ids.next(), 10)`
  for (const stays of [false, true]) {
    const { thread, message } = inWorker(program, { stays })
    const node = await message
    await (stays ? thread.terminate() : once(thread, 'exit'))
    await inTime(() => slots('worker')[node] === 'free')
  }
})

test('cluster and child_process: each process has its own number', async () => {
  const program = `
    const cluster = require('node:cluster')
    const { Snowflake } = require(${JSON.stringify(addon)})
    const open = () => Snowflake.open('standard', { store: '${store}', namespace: 'cluster' })
    ;(async () => {
      const ids = await open()
      if (cluster.isPrimary) {
        const workers = [cluster.fork(), cluster.fork(), cluster.fork()]
        const answers = await Promise.all(workers.map(worker => new Promise(resolve => worker.once('message', resolve))))
        console.log(JSON.stringify([[ids.node, await ids.batchAsync(10000)], ...answers]))
        workers.forEach(worker => worker.disconnect())
      } else {
        process.send([ids.node, await ids.batchAsync(10000)])
      }
    })()`
  const file = join(folder, 'cluster.cjs')
  writeFileSync(file, program)
  const child = spawn(process.execPath, [file], { stdio: ['ignore', 'pipe', 'inherit'] })
  let text = ''
  child.stdout.on('data', data => { text += data })
  const [code] = await once(child, 'close')
  assert.equal(code, 0)
  const answers = JSON.parse(text)
  assert.equal(new Set(answers.map(([node]) => node)).size, 4)
  assert.equal(new Set(answers.flatMap(([, minted]) => minted)).size, 40000)
  assert.deepEqual(tenures('cluster'), ['free', 'free', 'free', 'free'])
})

test('closeAll releases every number', async () => {
  const printed = await runChild(`
    import { Snowflake, closeAll } from 'frazil'
    const open = namespace => Snowflake.open('standard', { store: '${store}', namespace })
    const all = await Promise.all(['close-one', 'close-other'].map(open))
    closeAll()
    closeAll()
    console.log(JSON.stringify(all.map(ids => { try { return ids.next() } catch (error) { return error.code } })))`)
  assert.deepEqual(JSON.parse(printed), ['CLOSED', 'CLOSED'])
  assert.deepEqual([tenures('close-one'), tenures('close-other')], [['free'], ['free']])
})

// Starts that wait: the process emits a warning that names the reason, in the thread of the call.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createRequire } from 'node:module'
import { describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import { Buffered, Snowflake } from 'frazil'
import { rejected, runChild } from './helper.mjs'
import { folder } from './waits.mjs'

const addon = createRequire(import.meta.url).resolve('frazil')
// A start waits for the bound of a killed process, longer than any test takes.
const LOST = { store: `file:${folder}`, node: 7, window: '120s', renew: '30s' }

/** Returns options of a start that waits. */
async function waiting(namespace) {
  const options = { ...LOST, namespace }
  const program = `
    import { Snowflake } from 'frazil'
    await Snowflake.open('standard', ${JSON.stringify(options)})
    process.kill(process.pid, 'SIGKILL')`
  await assert.rejects(runChild(program), { signal: 'SIGKILL' })
  return options
}

/** Collects this thread's future warnings about a namespace. */
function warnings(context, namespace) {
  const heard = []
  const hear = warning => warning.message.includes(`namespace=${namespace}`) && heard.push(warning)
  process.on('warning', hear)
  context.after(() => process.off('warning', hear))
  return heard
}

function assertWaitWarning({ name, code, message }, namespace) {
  assert.deepEqual([name, code], ['FrazilWarning', 'FRAZIL_WAIT'])
  for (const part of [`store=file:${folder}`, `namespace=${namespace}`, 'waiting: node number 7 is held by ']) {
    assert.ok(message.includes(part), `"${message}" does not say "${part}"`)
  }
}

/** Waits until there is a warning. */
async function first(heard) {
  for (const until = Date.now() + 30000; heard.length === 0; await sleep(10)) {
    assert.ok(Date.now() < until, 'no warning')
  }
  return heard[0]
}

describe('starts that wait', { concurrency: true }, () => {
  test('a start warns once of the reason, and still waits', async context => {
    const options = await waiting('once')
    const heard = warnings(context, 'once')
    const abort = new AbortController()
    const began = performance.now()
    const open = Snowflake.open('standard', { ...options, signal: abort.signal })
    const other = Snowflake.open('standard', { ...options, signal: abort.signal })
    assertWaitWarning(await first(heard), 'once')
    assert.ok(performance.now() - began > 900, 'warned at once')
    assert.equal(await Promise.race([open, other, sleep(1500, 'it waits')]), 'it waits')
    assert.equal(heard.length, 1)
    // The ring's start does not warn again, because it waits for the same number.
    await rejected('NODE_IN_USE', Buffered.open('standard', { ...options, maxWaitMs: 1500 }), 'is held by', 'use a longer maxWaitMs')
    assert.equal(heard.length, 1)
    abort.abort('enough')
    assert.deepEqual((await Promise.allSettled([open, other])).map(({ reason }) => reason), ['enough', 'enough'])
  })

  test('a listener for warnings may abort the start', async context => {
    const options = await waiting('aborted')
    const abort = new AbortController()
    const hear = ({ message }) => message.includes('namespace=aborted') && abort.abort(message)
    process.on('warning', hear)
    context.after(() => process.off('warning', hear))
    const reason = await Snowflake.open('standard', { ...options, signal: abort.signal }).catch(reason => reason)
    assert.match(String(reason), /namespace=aborted/)
  })

  test('a synchronous start warns afterwards, even if the program ends', async () => {
    const options = await waiting('in-place')
    const program = `
      import { Snowflake } from 'frazil'
      process.on('warning', warning => console.log(JSON.stringify({ name: warning.name, code: warning.code, message: warning.message })))
      try { new Snowflake('standard', ${JSON.stringify({ ...options, maxWaitMs: 5000 })}) } catch (error) { console.log(error.code) }`
    const [code, warning, ...others] = (await runChild(program)).split('\n')
    assert.equal(code, 'NODE_IN_USE')
    assertWaitWarning(JSON.parse(warning), 'in-place')
    assert.deepEqual(others, [])
  })

  test('only the worker whose start waits gets the warning', async context => {
    const options = await waiting('worker')
    const heard = warnings(context, 'worker')
    const program = `
      const { parentPort, workerData } = require('node:worker_threads')
      const { Snowflake } = require(workerData.addon)
      process.on('warning', ({ name, code, message }) => parentPort.postMessage({ name, code, message }))
      Snowflake.open('standard', workerData.options).catch(() => {})`
    const worker = new Worker(program, { eval: true, execArgv: [], workerData: { addon, options } })
    const [warning] = await once(worker, 'message')
    assertWaitWarning(warning, 'worker')
    await worker.terminate()
    assert.deepEqual(heard, [])
  })

  test('a worker may end just before its warning', async context => {
    const heard = warnings(context, 'ends-')
    const program = `
      const { workerData } = require('node:worker_threads')
      const { Snowflake } = require(workerData.addon)
      process.on('warning', () => process.exit())
      Snowflake.open('standard', workerData.options).catch(() => {})
      require('node:worker_threads').parentPort.postMessage('begun')`
    const namespaces = await Promise.all([1, 2, 3, 4, 5, 6].map(turn => waiting(`ends-${turn}`)))
    await Promise.all(namespaces.map(async (options, turn) => {
      const worker = new Worker(program, { eval: true, execArgv: [], workerData: { addon, options } })
      await once(worker, 'message')
      // The first worker ends by itself.
      await (turn === 0 ? once(worker, 'exit') : sleep(985 + 6 * turn).then(() => worker.terminate()))
    }))
    assert.deepEqual(heard, [])
  })

  test('process.exit in the listener ends the process', async () => {
    const options = await waiting('exit')
    const program = `
      import { Snowflake } from 'frazil'
      process.on('warning', () => process.exit(7))
      await Snowflake.open('standard', ${JSON.stringify(options)})`
    await assert.rejects(runChild(program), { code: 7 })
  })

  test('two copies of the package in a thread: each start warns once', async () => {
    const [one, two] = [await waiting('copy-one'), await waiting('copy-two')]
    const program = `
      import { createRequire } from 'node:module'
      const require = createRequire(${JSON.stringify(import.meta.url)})
      const copy = () => { Object.keys(require.cache).forEach(name => delete require.cache[name]); return require(${JSON.stringify(addon)}) }
      const [one, two] = [copy(), copy()]
      if (one === two) throw new Error('one copy')
      const heard = []
      process.on('warning', ({ message }) => heard.push(message))
      const opened = [one.Snowflake.open('standard', ${JSON.stringify({ ...one, maxWaitMs: 6000 })}), two.Snowflake.open('standard', ${JSON.stringify({ ...two, maxWaitMs: 6000 })})]
      console.log(JSON.stringify([(await Promise.allSettled(opened)).map(({ reason }) => reason.code), heard.sort()]))`
    const [codes, heard] = JSON.parse(await runChild(program))
    assert.deepEqual(codes, ['NODE_IN_USE', 'NODE_IN_USE'])
    assert.equal(heard.length, 2, heard)
    assert.ok(heard[0].includes('namespace=copy-one') && heard[1].includes('namespace=copy-two'), heard)
  })

  test('a start waits even if no warning can be emitted', async () => {
    const options = { ...(await waiting('silent')), maxWaitMs: 1500 }
    const program = `
      import { Snowflake } from 'frazil'
      process.emitWarning = undefined
      const options = ${JSON.stringify(options)}
      await Snowflake.open('standard', options).catch(error => console.log(error.code))
      try { new Snowflake('standard', options) } catch (error) { console.log(error.code) }`
    assert.equal(await runChild(program), 'NODE_IN_USE\nNODE_IN_USE')
  })
})

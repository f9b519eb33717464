// Waits end by a signal, by time, by `close`, and by the end of a worker or the process. A wait must not delay other work.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { lookup } from 'node:dns/promises'
import { once } from 'node:events'
import { existsSync, readFileSync, readdirSync } from 'node:fs'
import { stat } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import * as esbuild from 'esbuild'
import { Buffered, Segment, Snowflake, Tickets, closeOnSigterm } from 'frazil'
import { assertAscending, here, refused, rejected, runChild } from './helper.mjs'
import { ended, folder, waits } from './waits.mjs'

// An ended call returns within milliseconds, or seconds on a busy machine. A call that is not ended would wait for longer than this.
const LIMIT = 15000
const addon = createRequire(import.meta.url).resolve('frazil')
const store = `file:${folder}`
const waitsModule = JSON.stringify(new URL('./waits.mjs', import.meta.url).href)
// Some waits continue in the background.
after(() => setTimeout(() => process.exit(), 100).unref())

/** Rejects if a promise does not end within LIMIT. */
async function inTime(promise, what = 'it') {
  let timer
  const late = new Promise((_, reject) => { timer = setTimeout(() => reject(new Error(`${what} does not end`)), LIMIT) })
  return Promise.race([promise, late]).finally(() => clearTimeout(timer))
}

/** Returns whether a number of the namespace is held in the file store. */
function isHeld(namespace) {
  const names = readdirSync(join(folder, namespace)).filter(name => /^[0-9]+$/.test(name))
  return names.some(name => {
    const bytes = readFileSync(join(folder, namespace, name))
    const half = bytes.readBigUInt64LE(24) > bytes.readBigUInt64LE(4096 + 24) ? 0 : 4096
    return bytes.toString('utf8', half + 36, half + 36 + bytes.readUInt32LE(half + 32)).split(' ')[1] === 'held'
  })
}

for (const [name, make] of Object.entries(waits)) {
  test(`${name} is ended by a signal`, async () => {
    const { begin } = await make()
    for (const reason of [new Error('mine'), 'a string', undefined]) {
      const abort = new AbortController()
      const { state, ms } = await ended(begin({ signal: abort.signal }), () => abort.abort(reason))
      assert.equal(state, abort.signal.reason)
      assert.ok(ms < LIMIT)
      if (/(releaseNode|discard|close)Async$/.test(name)) {
        break
      }
    }
  })

  if (!/(open|releaseNodeAsync|discardAsync|closeAsync)$/.test(name)) {
    test(`${name} is ended by close`, async () => {
      const { ids, begin } = await make()
      const { state } = await ended(begin(), () => ids.close())
      assert.equal(state.code, 'CLOSED', state.stack)
    })
  }

  test(`${name} is ended by maxWaitMs`, async () => {
    const { begin } = await make()
    if (name === 'Segment.open') {
      // The first range comes after the open, or the first call fails with the reason.
      const ids = await inTime(begin({ maxWaitMs: 200 }), name)
      await inTime(rejected('WOULD_BLOCK', ids.nextAsync({ maxWaitMs: 1 }), 'use a longer maxWaitMs'), 'its first call')
    } else {
      await inTime(rejected('WOULD_BLOCK', begin({ maxWaitMs: 200 }), 'use a longer maxWaitMs'), name)
    }
  })
}

test('process.exit and worker.terminate wait for no call', async () => {
  const begun = `
    const { waits } = await import(${waitsModule})
    const made = await Promise.all(Object.values(waits).map(make => make()))
    for (const { begin } of made) begin().catch(() => {})`
  const began = Date.now()
  const printed = await inTime(runChild(`${begun}
    const program = \`(async () => { ${begun.replaceAll('\\', '\\\\').replaceAll('`', '\\`')}
      require('node:worker_threads').parentPort.postMessage(1) })()\`
    const { Worker } = await import('node:worker_threads')
    for (let i = 0; i < 3; i++) {
      const worker = new Worker(program, { eval: true, execArgv: [] })
      await new Promise(resolve => worker.once('message', resolve))
      await worker.terminate()
    }
    console.log('terminated')
    setTimeout(() => process.exit(7), 200)`).catch(error => { assert.equal(error.code, 7, error.stderr); return error.stdout }), 'the process')
  assert.match(printed, /terminated/)
  assert.ok(Date.now() - began < LIMIT)
})

test('worker.terminate ends a wait in place', async () => {
  for (const call of ['next({ maxWaitMs: Infinity })', 'fill(new BigInt64Array(8), { maxWaitMs: 1e7 })']) {
    const program = `const { Snowflake } = require(${JSON.stringify(addon)})
      const hour = 'layout="time:31@1h node:20 sequence:4 epoch:2025-01-01" exhausted=wait:2h start=zero store=memory'
      const ids = new Snowflake(hour, { namespace: 'terminated', maxWaitMs: 30000 })
      require('node:worker_threads').parentPort.postMessage('waits')
      for (;;) ids.${call}`
    const worker = new Worker(program, { eval: true })
    await once(worker, 'message')
    assert.equal(await inTime(worker.terminate(), call), 1)
  }
})

test('calls whose results come while their worker ends do no harm', async () => {
  const program = `
    const { Snowflake } = require(${JSON.stringify(addon)})
    const ids = new Snowflake('standard', { node: 60 })
    const go = async () => { for (;;) await ids.batchAsync(9000) }
    for (let i = 0; i < 20; i++) go()
    require('node:worker_threads').parentPort.postMessage(1)`
  await inTime(Promise.all(Array.from({ length: 20 }, async (_, i) => {
    const worker = new Worker(program, { eval: true, execArgv: [] })
    await once(worker, 'message')
    await sleep(2 * i)
    await worker.terminate()
  })))
  assert.match(await new Snowflake('standard', { node: 60 }).nextAsync(), /^[0-9]+$/)
})

test('waits do not delay file and DNS calls', async () => {
  const { ids, begin } = await waits['Snowflake.nextAsync']()
  const abort = new AbortController()
  const rejections = Array.from({ length: 20 }, () => rejected.call(null, 'CLOSED', begin({ signal: abort.signal })))
  await inTime(Promise.all([stat(folder), lookup('localhost')]), 'stat or lookup')
  ids.close()
  await inTime(Promise.all(rejections))
})

test('a promise that waits keeps the process alive, and nothing else does', async () => {
  const program = `
    import { Snowflake } from 'frazil'
    const ids = await Snowflake.open('layout="time:31@1s node:20 sequence:4 epoch:2025-01-01" node=4 exhausted=wait:60s')
    ids.batchAsync(40).then(ids => console.log(ids.length))`
  assert.equal(await inTime(runChild(program)), '40')
})

test('an aborted signal prevents every call', async () => {
  const reason = new Error('mine')
  const signal = AbortSignal.abort(reason)
  const mine = promise => assert.rejects(promise, error => error === reason)
  await mine(Snowflake.open('standard', { store, namespace: 'never', signal }))
  await mine(Segment.open('orders', { store, namespace: 'never', signal }))
  await mine(Buffered.open('standard', { store, namespace: 'never', signal }))
  await sleep(200)
  assert.ok(!existsSync(join(folder, 'never')))
  const ids = new Snowflake('standard clock=manual detached=true node=1')
  ids.setTime(1750000000000)
  const first = ids.next()
  for (const call of [() => ids.nextAsync({ signal }), () => ids.batchAsync(1, { signal }), () => ids.releaseNodeAsync({ signal }), () => ids.closeAsync({ signal })]) {
    await mine(call())
  }
  // The rejected calls have minted and closed nothing.
  assert.equal(BigInt(ids.next()) - BigInt(first), 1n)
})

test('maxWaitMs in place', async () => {
  const ids = await Snowflake.open('layout="time:31@1s node:20 sequence:4 epoch:2025-01-01" exhausted=wait:60s start=zero', { node: 41 })
  const buffer = new BigInt64Array(40)
  // The fill needs two more ticks, so without maxWaitMs it is WOULD_BLOCK.
  refused('WOULD_BLOCK', () => ids.fill(buffer))
  assert.equal(ids.fill(buffer, { maxWaitMs: 30000 }), 40)
  assert.equal(ids.batch(40, { maxWaitMs: Infinity }).length, 40)
  assert.equal(ids.batchBigInt(40, { maxWaitMs: 30000 }).length, 40)
  await ids.batchAsync(16)
  const minted = [ids.batch(16, { maxWaitMs: 30000 }).at(-1), ids.next({ maxWaitMs: 30000 }), String(ids.nextBigInt({ maxWaitMs: 30000 }))]
  assertAscending([...minted, ids.text('decimal', { maxWaitMs: 30000 })])
  assertAscending(new Snowflake('standard', { store, namespace: 'in-place', maxWaitMs: 30000 }).batch(2))
  assert.equal(new Segment('orders', { store, namespace: 'in-place', maxWaitMs: 30000 }).next(), '1')
  const ring = new Buffered('standard', { store, namespace: 'in-place', size: 100, maxWaitMs: 30000 })
  ring.close({ maxWaitMs: 30000 })
  refused('CLOSED', () => ring.next({ maxWaitMs: 1 }))
  const { ids: lost } = await waits['Snowflake.releaseNodeAsync']()
  refused('WOULD_BLOCK', () => lost.close({ maxWaitMs: 5 }), 'use await ids.closeAsync()')
  lost.close()
})

test('store=memory is waited for in place, however late its thread runs', () => {
  // The only number is held, so only the limit ends the wait.
  const options = { node: 1, store: 'memory', namespace: 'late', detached: true }
  const holder = new Snowflake('standard', options)
  const since = performance.now()
  assert.throws(() => new Snowflake('standard', options), { code: /^(NODE_IN_USE|WOULD_BLOCK)$/ })
  assert.ok(performance.now() - since >= 900)
  holder.close()
})

test('WRONG_TYPE and OUT_OF_RANGE for wrong time-outs and signals', async () => {
  const ids = await Snowflake.open('standard', { node: 42 })
  const ring = await Buffered.open('standard', { node: 42, size: 10 })
  const before = BigInt(ids.next())
  const inPlace = [
    options => new Snowflake('standard', { node: 42, ...options }), options => new Segment('orders', { store: 'memory', ...options }),
    options => new Tickets('photos', { store: ['memory', 'memory'], ...options }), options => new Buffered('standard', { node: 42, ...options }),
    ...[ids, ring].flatMap(ids => [
      options => ids.next(options), options => ids.nextBigInt(options), options => ids.batch(1, options), options => ids.batchBigInt(1, options),
      options => ids.fill(new BigInt64Array(1), options), options => ids.close(options),
    ]),
    options => ids.text('hex', options),
  ]
  const promises = [
    options => Snowflake.open('standard', { node: 42, ...options }), options => Segment.open('orders', { store: 'memory', ...options }),
    options => Buffered.open('standard', { node: 42, ...options }),
    ...[ids, ring].flatMap(ids => [
      options => ids.nextAsync(options), options => ids.batchAsync(1, options), options => (ids.releaseNodeAsync ?? ids.discardAsync).call(ids, options), options => ids.closeAsync(options),
    ]),
  ]
  for (const [value, code, ...says] of [
    [-1, 'OUT_OF_RANGE', 'maxWaitMs=-1', '0 or more'], [-Infinity, 'OUT_OF_RANGE', 'maxWaitMs=-inf'], [NaN, 'OUT_OF_RANGE', 'maxWaitMs=NaN'],
    ['5', 'WRONG_TYPE', 'maxWaitMs is a string'], [null, 'WRONG_TYPE', 'null'], [5n, 'WRONG_TYPE', 'a bigint'], [{}, 'WRONG_TYPE'], [new Date(), 'WRONG_TYPE'],
  ]) {
    for (const call of inPlace) {
      refused(code, () => call({ maxWaitMs: value }), 'maxWaitMs', ...says)
    }
    for (const call of promises) {
      await rejected(code, call({ maxWaitMs: value }), 'maxWaitMs', ...says)
    }
  }
  for (const signal of [null, 5, 'abort', {}, { aborted: true }, new EventTarget(), new AbortController()]) {
    for (const call of promises) {
      await rejected('WRONG_TYPE', call({ signal }), 'signal is', 'an AbortSignal')
    }
  }
  for (const call of [...inPlace.slice(4), ...promises.slice(3)]) {
    const refusedBy = call === inPlace.at(-1) || inPlace.includes(call) ? refused : (code, call, ...says) => rejected(code, call(), ...says)
    await refusedBy('UNKNOWN_KEY', () => call({ maxWait: 5 }), 'options.maxWait is unknown here (did you mean maxWaitMs?)')
    for (const options of [null, 5, 'x', [], new Map()]) {
      await refusedBy('WRONG_TYPE', () => call(options), 'options')
    }
  }
  refused('UNKNOWN_KEY', () => ids.next({ signal: new AbortController().signal }), 'signal')
  // The refused calls have closed nothing. Allowed values are accepted.
  for (const maxWaitMs of [0, 0.5, 1e300, Infinity, undefined]) {
    assert.ok(BigInt(await ids.nextAsync({ maxWaitMs, signal: undefined })) > before)
  }
  assert.ok(Array.from({ length: 3 }, ids.next).every(id => BigInt(id) > before))
})

test('a signal may end any number of calls', async context => {
  const heard = []
  const hear = warning => heard.push(warning)
  process.on('warning', hear)
  context.after(() => process.off('warning', hear))
  const { begin } = await waits['Snowflake.nextAsync']()
  const abort = new AbortController()
  const calls = Array.from({ length: 30 }, () => begin({ signal: abort.signal }))
  // A call that ends by itself leaves the other calls to the signal.
  await rejected('WOULD_BLOCK', begin({ signal: abort.signal, maxWaitMs: 1 }))
  abort.abort('all')
  assert.deepEqual((await inTime(Promise.allSettled(calls))).map(({ reason }) => reason), calls.map(() => 'all'))
  assert.deepEqual(heard, [])
})

test('an ended call leaves no listener, and a cancelled one no memory', async () => {
  const program = `
    import { getEventListeners } from 'node:events'
    import { waits } from ${waitsModule}
    const { begin } = await waits['Snowflake.nextAsync']()
    const kept = new AbortController()
    const round = async () => {
      const abort = new AbortController()
      const calls = Array.from({ length: 1000 }, () => begin({ signal: abort.signal }).catch(() => {}))
      const late = Array.from({ length: 10 }, () => begin({ signal: kept.signal, maxWaitMs: 1 }).catch(() => {}))
      abort.abort()
      await Promise.all([...calls, ...late])
    }
    const used = async () => { await new Promise(resolve => setTimeout(resolve, 200)); gc(); return process.memoryUsage().rss }
    const more = []
    for (let part = 0; part < 5; part++) {
      const before = await used()
      for (let i = 0; i < 50; i++) await round()
      more.push((await used() - before) / 2 ** 20)
    }
    console.log(JSON.stringify([more, getEventListeners(kept.signal, 'abort').length]))
    process.exit()`
  const [more, listeners] = JSON.parse(await runChild(program, { flags: ['--expose-gc'] }))
  assert.equal(listeners, 0)
  // Leaked calls would add 8 MB in each part. Without a leak, memory grows only until the allocator has enough.
  assert.ok(Math.min(...more) < 3, `${more} MB more after 50000 cancelled calls each`)
})

test('close from within a callback', async () => {
  const { ids, begin } = await waits['Snowflake.batchAsync']()
  const abort = new AbortController()
  abort.signal.addEventListener('abort', () => ids.close())
  const both = [begin({ signal: abort.signal }), begin()]
  abort.abort('why')
  const [one, two] = await inTime(Promise.allSettled(both))
  assert.deepEqual([one.reason, two.reason.code], ['why', 'CLOSED'])
  const other = await Snowflake.open('standard', { node: 43 })
  await rejected('CLOSED', other.nextAsync().then(() => other.close()).then(() => other.nextAsync()))
})

test('await using releases the number', { skip: !Symbol.asyncDispose }, async () => {
  const source = `
    import { Snowflake } from 'frazil'
    {
      await using ids = await Snowflake.open('standard', { store: ${JSON.stringify(store)}, namespace: 'using' })
      console.log(ids.next())
    }
    console.log('disposed')`
  const { code } = await esbuild.transform(source, { target: 'node18', format: 'esm' })
  // Only the end of the block can have released it, because the process is killed next.
  const printed = await runChild(`${code}\nprocess.kill(process.pid, 'SIGKILL')`).catch(error => error.stdout)
  assert.match(printed, /^[0-9]+\ndisposed\n$/)
  assert.ok(!isHeld('using'))
})

test('the end releases at every store, though the first is silent', async () => {
  const begun = namespace => `
    const { waits } = await import(${waitsModule})
    const { Snowflake } = await import(${JSON.stringify(import.meta.resolve('frazil'))})
    globalThis.kept = [await waits['Snowflake.closeAsync']()]
    kept.push(await Snowflake.open('standard', { store: ${JSON.stringify(store)}, namespace: '${namespace}' }))`
  const inWorker = `(async () => { ${begun('end-worker')} })()`
  const programs = {
    'end-natural': begun('end-natural'),
    'end-exit': `${begun('end-exit')}; process.exit()`,
    'end-worker': `
      const { Worker } = await import('node:worker_threads')
      await new Promise(resolve => new Worker(${JSON.stringify(inWorker)}, { eval: true, execArgv: [] }).once('exit', resolve))
      process.kill(process.pid, 'SIGKILL')`,
  }
  await Promise.all(Object.entries(programs).map(async ([namespace, program]) => {
    await inTime(runChild(program).catch(error => assert.equal(error.signal, 'SIGKILL', error.stderr)), namespace)
    assert.ok(!isHeld(namespace), namespace)
  }))
})

/** Returns how a process ends on SIGTERM, and its output after it has opened a generator. */
async function terminated(namespace, program) {
  const flags = ['--input-type=module', '-e', `
    import { Snowflake, closeOnSigterm } from 'frazil'
    import { Worker } from 'node:worker_threads'
    const ids = await Snowflake.open('standard', { store: ${JSON.stringify(store)}, namespace: '${namespace}' })
    const state = () => { try { return ids.next() && 'open' } catch (error) { return error.code } }
    setInterval(() => {}, 1000)
    ${program}
    console.log('ready')`]
  const child = spawn(process.execPath, flags, { cwd: here, stdio: ['ignore', 'pipe', 'inherit'] })
  let text = ''
  child.stdout.on('data', data => {
    if (!text && String(data).startsWith('ready')) {
      child.kill('SIGTERM')
    }
    text += data
  })
  const [code, signal] = await inTime(once(child, 'close')).finally(() => child.kill('SIGKILL'))
  return [signal ?? code, isHeld(namespace) ? 'held' : 'free', text.replace('ready\n', '').trim()]
}

test('closeOnSigterm', async () => {
  const handler = `console.log(state()); setTimeout(() => process.kill(process.pid, 'SIGKILL'), 50)`
  const cases = {
    none: ['', ['SIGTERM', 'held', '']],
    alone: ['closeOnSigterm()', ['SIGTERM', 'free', '']],
    twice: ['closeOnSigterm(); closeOnSigterm()', ['SIGTERM', 'free', '']],
    after: [`closeOnSigterm(); process.on('SIGTERM', () => { ${handler} })`, ['SIGKILL', 'free', 'CLOSED']],
    before: [`process.on('SIGTERM', () => { ${handler} }); closeOnSigterm()`, ['SIGKILL', 'free', 'CLOSED']],
    once: [`process.once('SIGTERM', () => { ${handler} }); closeOnSigterm()`, ['SIGKILL', 'free', 'CLOSED']],
    // Like signal-exit: the last listener ends the process.
    polite: [`process.on('SIGTERM', function last() {
      if (process.listenerCount('SIGTERM') === 1) { process.off('SIGTERM', last); process.kill(process.pid, 'SIGTERM') } }); closeOnSigterm()`,
    ['SIGTERM', 'free', '']],
    back: ['const back = closeOnSigterm(); back(); back()', ['SIGTERM', 'held', '']],
    backonce: ['const back = closeOnSigterm(); closeOnSigterm(); back(); back()', ['SIGTERM', 'free', '']],
    waiting: [`
      const hour = await Snowflake.open('layout="time:31@1h node:20 sequence:4 epoch:2025-01-01" exhausted=wait:2h start=zero store=memory')
      await hour.batchAsync(16)
      closeOnSigterm()
      process.on('SIGTERM', () => {})
      hour.nextAsync().catch(error => { console.log(error.code); process.kill(process.pid, 'SIGKILL') })`, ['SIGKILL', 'free', 'CLOSED']],
    worker: [`
      const worker = new Worker('require(${JSON.stringify(addon)}).closeOnSigterm()()', { eval: true, execArgv: [] })
      await new Promise(resolve => worker.once('exit', resolve))`, ['SIGTERM', 'held', '']],
  }
  await Promise.all(Object.entries(cases).map(async ([name, [program, expected]]) => {
    assert.deepEqual(await terminated(`sigterm-${name}`, program), expected, name)
  }))
  const listeners = process.listenerCount('SIGTERM')
  closeOnSigterm()()
  assert.equal(process.listenerCount('SIGTERM'), listeners)
})

test('the first requests of cluster workers and worker threads all get an ID', async () => {
  const server = namespace => `
    const { createServer } = require('node:http')
    const { Snowflake } = require(${JSON.stringify(addon)})
    let opened
    const open = () => opened ??= Snowflake.open('standard', { store: ${JSON.stringify(store)}, namespace: '${namespace}', signal: AbortSignal.timeout(60000) })
    const server = createServer((request, response) => {
      open().then(ids => ids.nextAsync()).then(id => response.end(id), error => { response.statusCode = 500; response.end(String(error)) })
    }).listen(0, '127.0.0.1')`
  const program = `
    import cluster from 'node:cluster'
    import { get } from 'node:http'
    import { Worker } from 'node:worker_threads'
    import { createRequire } from 'node:module'
    const require = createRequire(${JSON.stringify(import.meta.url)})
    cluster.setupPrimary({ exec: '/dev/stdin', execArgv: [] })
    const ask = port => new Promise((resolve, reject) => get({ port, host: '127.0.0.1', agent: false }, async response => {
      let text = ''
      for await (const data of response) text += data
      resolve([response.statusCode, text])
    }).on('error', reject))
    const ports = await START
    const answers = await Promise.all(ports.map(port => Promise.all(Array.from({ length: 200 }, () => ask(port)))))
    console.log(JSON.stringify(answers.flat()))
    process.exit()`
  const { writeFileSync } = await import('node:fs')
  const file = join(folder, 'cluster.cjs')
  writeFileSync(file, `${server('first-cluster')}.on('listening', () => process.send(server.address().port))`)
  const inThread = `${server('first-threads')}.on('listening', () => require('node:worker_threads').parentPort.postMessage(server.address().port))`
  const starts = {
    cluster: `Promise.all([1, 2, 3].map(() => new Promise(resolve => cluster.fork().once('message', resolve))))`,
    threads: `Promise.all([1, 2, 3].map(() => new Promise(resolve => new Worker(${JSON.stringify(inThread)}, { eval: true, execArgv: [] }).once('message', resolve))))`,
  }
  for (const [name, start] of Object.entries(starts)) {
    const text = await runChild(program.replace('START', start).replace("'/dev/stdin'", JSON.stringify(file)))
    const answers = JSON.parse(text)
    assert.deepEqual(answers.filter(([status]) => status !== 200), [], name)
    assert.equal(new Set(answers.map(([, id]) => id)).size, 600, name)
  }
})

test('a signal that fails by itself rejects the call, and leaves nothing that fails later', async () => {
  const program = `
    import { Snowflake } from 'frazil'
    const ids = await Snowflake.open('layout="time:38@100ms node:10 sequence:4 epoch:2025-01-01" start=zero exhausted=wait detached=true node=3')
    const plain = { aborted: false, addEventListener() {}, removeEventListener() {} }
    const failing = { ...plain, addEventListener() { throw new RangeError('mine') } }
    const twice = second => { let n = 0; return { get signal() { return n++ ? second() : plain } } }
    const options = [{ signal: failing }, twice(() => { throw new RangeError('mine') }), twice(() => 7)]
    for (const each of options) {
      // The getters must stay getters, so the object is not spread.
      const given = Object.defineProperty(each, 'maxWaitMs', { value: 20, enumerable: true })
      console.log(await ids.batchAsync(1000, given).then(() => 'kept', error => error.name))
    }
    // If a call does not catch its rejection, the process ends before this.
    await ids.batchAsync(20)
    console.log('alive')`
  assert.equal(await runChild(program), 'RangeError\nRangeError\nTypeError\nalive')
})

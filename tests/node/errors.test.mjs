// Errors: their stack, their properties, several copies of the package in one process, and errors that a test makes.
import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import { test } from 'node:test'
import { createContext, runInContext } from 'node:vm'
import { readFileSync } from 'node:fs'
import { FrazilError, Segment, Snowflake, errors } from 'frazil'
import { here, manual, refused, rejected, runChild } from './helper.mjs'

const require = createRequire(import.meta.url)
const START = 1700000000000
// 16 IDs in 100 ms and none ahead, so a call often waits for more than 2 ms, but not for long.
const SLOW = 'layout="time:38@100ms node:10 sequence:4 epoch:2025-01-01" start=zero exhausted=wait detached=true'

/** Loads another copy of the package over the same addon, like jest.resetModules(). */
function anotherCopy() {
  const entry = require.resolve('frazil')
  const cached = require.cache[entry]
  delete require.cache[entry]
  try {
    return require(entry)
  } finally {
    require.cache[entry] = cached
  }
}

/** Loads a copy in another realm. Test runners make a realm for each file. */
function copyInAnotherRealm() {
  const context = createContext({ process, Buffer })
  const root = createRequire(require.resolve('frazil'))
  const module = { exports: {} }
  const code = readFileSync(require.resolve('frazil'), 'utf8')
  runInContext(`(function (module, require) {${code}\n})`, context)(module, root)
  return { copy: module.exports, realm: code => runInContext(code, context) }
}

test('the error of a call that has waited has a stack that leads to the awaiting function', async () => {
  const ids = manual('twitter datacenter=4 worker=1', START)
  ids.batch(4096)
  const numbers = await Segment.open('stacks', { store: 'memory', namespace: 'node-errors' })
  const slow = await Snowflake.open(SLOW, { node: 1 })
  async function namedCaller(call) {
    try {
      return await call()
    } catch (error) {
      return error
    }
  }
  const closing = namedCaller(() => slow.batchAsync(1000))
  slow.close()
  const error = await closing
  assert.ok(error instanceof FrazilError)
  assert.equal(error.code, 'CLOSED')
  assert.match(error.stack, /^FrazilError: .*\n {4}at /)
  assert.match(error.stack, /at async namedCaller \(.*errors\.test\.mjs/)

  const bounded = await Snowflake.open(SLOW, { node: 2 })
  const late = await namedCaller(() => bounded.batchAsync(1000, { maxWaitMs: 20 }))
  assert.equal(late.code, 'WOULD_BLOCK')
  assert.match(late.stack, /at async namedCaller \(.*errors\.test\.mjs/)
  for (const call of [() => ids.nextAsync(), () => numbers.batchAsync(-1)]) {
    assert.match((await namedCaller(call)).stack, /errors\.test\.mjs/)
  }
  assert.match(refused('OUT_OF_RANGE', () => ids.batch(-1)).stack, /errors\.test\.mjs/)
})

test('an error carries what it means, and nothing else', async () => {
  const ids = manual('twitter datacenter=4 worker=2', START)
  const fill = refused('WOULD_BLOCK', () => ids.fill(new BigInt64Array(5000)))
  assert.deepEqual(Object.keys(fill).sort(), ['code', 'number', 'retryAfterMs', 'written'])
  assert.equal(fill.written, 4096)
  assert.deepEqual(Object.keys(refused('OUT_OF_RANGE', () => ids.batch(-1))), ['code', 'number'])
  const slow = await Snowflake.open(SLOW, { node: 3 })
  const block = refused('WOULD_BLOCK', () => slow.batch(64))
  assert.deepEqual(Object.keys(block).sort(), ['code', 'number', 'retryAfterMs'])
  assert.ok(block.retryAfterMs > 0)
})

test('a test can make any error', () => {
  for (const { code, number, meaning } of errors) {
    const error = new FrazilError(code)
    assert.deepEqual([error.code, error.number, error.message, error.name], [code, number, meaning, 'FrazilError'])
    assert.deepEqual(Object.keys(error), ['code', 'number'])
    assert.ok(error instanceof FrazilError && error instanceof Error)
  }
  const cause = new Error('cause')
  const made = new FrazilError('WOULD_BLOCK', 'busy', { retryAfterMs: 7, written: 0, cause })
  assert.deepEqual([made.message, made.retryAfterMs, made.written, made.cause], ['busy', 7, 0, cause])
  assert.match(made.stack, /^FrazilError: busy\n.*errors\.test\.mjs/s)
  assert.deepEqual(Object.keys(new FrazilError('SPEC', undefined, { retryAfterMs: undefined })), ['code', 'number'])
  for (const code of [undefined, null, 7, 'NO_SUCH', 'clock_back', Symbol('s'), {}]) {
    refused('OUT_OF_RANGE', () => new FrazilError(code), 'code=', 'CLOCK_BACK')
  }
  for (const message of [null, 7, {}, Object.create(null), Symbol('s')]) {
    refused('WRONG_TYPE', () => new FrazilError('SPEC', message), 'message')
  }
})

test('instanceof FrazilError is true only for errors of frazil', () => {
  class Mine extends FrazilError {}
  const [mine, base] = [new Mine('SPEC'), new FrazilError('SPEC')]
  assert.deepEqual([mine instanceof Mine, mine instanceof FrazilError, base instanceof Mine], [true, true, false])
  for (const other of [undefined, null, 7, 'SPEC', {}, new Error('SPEC'), { code: 'SPEC' }, Object.create(null)]) {
    assert.ok(!(other instanceof FrazilError))
  }
})

test('two copies in a process: each makes its own errors, and both know both', async () => {
  const spec = 'twitter datacenter=4 worker=3'
  const first = new Snowflake(spec, { maxWaitMs: 1000 })
  const copy = anotherCopy()
  assert.notEqual(copy.Snowflake, Snowflake)
  const second = new copy.Snowflake(spec, { maxWaitMs: 1000 })
  const calls = ids => [
    () => ids.batch(-1), () => ids.next(7), () => ids.nextBigInt(7), () => ids.text('roman'), () => ids.layout.decode('x'),
    () => new ids.constructor('x'),
  ]
  for (const [ids, own, other] of [[first, FrazilError, copy.FrazilError], [second, copy.FrazilError, FrazilError]]) {
    for (const call of [...calls(ids), () => { ids.close(); ids.next() }, () => ids.nextBigInt()]) {
      let error
      try { call() } catch (thrown) { error = thrown }
      assert.equal(error?.constructor, own, String(call))
      assert.ok(error instanceof own && error instanceof other)
    }
    const error = await ids.nextAsync().catch(error => error)
    assert.equal(error.constructor, own)
  }
})

test('two copies in a process: waits of the first end as they should', async () => {
  const ids = await Snowflake.open(SLOW, { node: 4 })
  const other = await Snowflake.open(SLOW, { node: 5 })
  const waiting = Promise.all(Array.from({ length: 40 }, () => ids.nextAsync()))
  const copy = anotherCopy()
  const theirs = await copy.Snowflake.open(SLOW, { node: 6 })
  const both = [waiting, Promise.all(Array.from({ length: 40 }, () => theirs.nextAsync())), other.batchAsync(40)]
  const nodes = (await Promise.all(both)).map(minted => {
    assert.equal(new Set(minted).size, 40)
    return new Set(minted.map(id => ids.layout.decode(id).node))
  })
  assert.deepEqual(nodes, [new Set([4]), new Set([6]), new Set([5])])
})

test('two copies in a process: the lease of the first is released when a worker ends', async () => {
  const program = `
    import { createRequire } from 'node:module'
    import { once } from 'node:events'
    import { Worker } from 'node:worker_threads'
    import { Snowflake } from 'frazil'
    const require = createRequire(${JSON.stringify(import.meta.url)})
    const spec = 'standard node=9 store=memory namespace=two-copies'
    const worker = new Worker(\`
      const { parentPort, workerData } = require('node:worker_threads')
      const { Snowflake } = require(workerData)
      Snowflake.open('\${spec}').then(ids => {
        globalThis.ids = ids
        delete require.cache[workerData]
        require(workerData)
        parentPort.postMessage('leased')
      })\`, { eval: true, execArgv: [], workerData: require.resolve('frazil') })
    await once(worker, 'message')
    await worker.terminate()
    // The number is free; otherwise this open would wait for a minute.
    const ids = await Snowflake.open(spec, { maxWaitMs: 20000 })
    console.log(ids.node)`
  assert.equal(await runChild(program), '9')
})

test('a copy in another realm returns values of that realm', async () => {
  const { copy, realm } = copyInAnotherRealm()
  const [theirDate, theirError, theirObject, theirArray, theirPromise, theirBytes] =
    ['Date', 'Error', 'Object', 'Array', 'Promise', 'Uint8Array'].map(realm)
  const ids = await copy.Snowflake.open(SLOW, { node: 7 })
  const parts = ids.layout.decode(ids.next())
  const leased = await copy.Snowflake.open('standard', { store: 'memory', namespace: 'node-errors-realm' })
  const { epoch, expiresAt } = ids.layout
  for (const date of [parts.time, epoch, expiresAt, copy.interop.uuid.uuidTime(copy.interop.uuid.uuid7()), copy.interop.objectid.decodeObjectId(copy.interop.objectid.objectId()).time]) {
    assert.equal(Object.getPrototypeOf(date), theirDate.prototype)
  }
  assert.ok(leased.lease.bound === undefined || leased.lease.bound instanceof theirDate)
  const objects = [parts, parts.fields, ids.fields, ids.layout.fieldBits, leased.lease, copy.interop.objectid.decodeObjectId(copy.interop.objectid.objectId()), ...copy.errors]
  for (const object of objects) {
    assert.equal(Object.getPrototypeOf(object), theirObject.prototype)
  }
  const many = [ids.batch(1), ids.batchBigInt(1), await ids.batchAsync(40), copy.errors]
  for (const array of many) {
    assert.equal(Object.getPrototypeOf(array), theirArray.prototype)
  }
  assert.equal(Object.getPrototypeOf(copy.interop.uuid.uuidBytes(copy.interop.uuid.uuid7())), theirBytes.prototype)
  // The second call waits.
  for (const call of [() => ids.nextAsync(), () => ids.batchAsync(40), () => leased.releaseNodeAsync(), () => leased.closeAsync()]) {
    const promise = call()
    assert.equal(Object.getPrototypeOf(promise), theirPromise.prototype)
    const value = await promise
    assert.ok(typeof value !== 'object' || value.length === 40)
  }
  for (const call of [() => ids.batch(-1), () => ids.next(7), () => new copy.Layout('x')]) {
    assert.throws(call, error => error instanceof theirError && error instanceof copy.FrazilError && error instanceof FrazilError)
  }
  ids.close()
  await assert.rejects(ids.nextAsync(), error => error instanceof theirError && error instanceof copy.FrazilError)
})

test('an error of a caller\'s own code within a call is thrown unchanged', async () => {
  const ids = manual('twitter datacenter=4 worker=4', START)
  for (const thrown of [new RangeError('mine'), 'text', undefined, ['an', 'array'], { code: 'SPEC' }, new FrazilError('SPEC', 'mine')]) {
    const options = { get maxWaitMs() { throw thrown } }
    const calls = [
      () => ids.next(options), () => ids.nextBigInt(options), () => ids.batch(1, options), () => ids.text('hex', options),
      () => new Snowflake('twitter', options),
    ]
    for (const call of calls) {
      try {
        call()
        assert.fail('not thrown')
      } catch (error) {
        assert.equal(error, thrown)
      }
    }
    await assert.rejects(async () => { throw await ids.nextAsync(options).catch(error => ({ error })) }, ({ error }) => error === thrown)
    const slow = await Snowflake.open(SLOW, { node: 8 })
    const control = new AbortController()
    const waiting = slow.batchAsync(1000, { signal: control.signal }).catch(error => ({ error }))
    control.abort(thrown)
    const { error } = await waiting
    assert.equal(error, thrown === undefined ? control.signal.reason : thrown)
    slow.close()
  }
})

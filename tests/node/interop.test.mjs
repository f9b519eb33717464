// IDs of other systems: MongoDB's ObjectId and UUIDs.
import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import { test } from 'node:test'
import { Worker } from 'node:worker_threads'
import { parseUuid, uuid4, uuid7, uuidTime } from 'frazil/uuid'
import { decodeObjectId, maxObjectId, minObjectId, objectId } from 'frazil/objectid'
import { isUuid, uuid7Max, uuid7Min, uuidBytes, uuidFromBytes, uuidVersion } from 'frazil/uuid'
import { refused, runChild, vectors } from './helper.mjs'

const interop = vectors('interop')
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-([0-9a-f])[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/
const NOT_STRINGS = [undefined, null, 7, 7n, true, [], {}, Symbol('s'), () => 1, new Date(0), new String('1'), new Uint8Array(12)]

/** Returns what this thread and three workers make at once with a function of the package, each thread's values in order. */
async function byThreads(name, make) {
  const count = 5000
  const program = `
    const { parentPort, workerData } = require('node:worker_threads')
    const { ${name}: make } = require(workerData)
    parentPort.postMessage(Array.from({ length: ${count} }, make))`
  const worker = () =>
    new Promise((resolve, reject) => {
      const thread = new Worker(program, { eval: true, workerData: createRequire(import.meta.url).resolve(name === 'objectId' ? 'frazil/objectid' : 'frazil/uuid') })
      thread.once('message', resolve)
      thread.once('error', reject)
    })
  const workers = Array.from({ length: 3 }, worker)
  const here = Array.from({ length: count }, () => make())
  const made = [here, ...(await Promise.all(workers))]
  assert.equal(new Set(made.flat()).size, 4 * count)
  return made
}

test('object_id', async () => {
  assert.ok(interop.object_ids.length > 0)
  for (const { text, unix_ms, ...parts } of interop.object_ids) {
    const { time, id, ...decoded } = decodeObjectId(text)
    assert.deepEqual([id, time.getTime(), decoded], [text, unix_ms, parts])
    assert.equal(decodeObjectId(text.toUpperCase()).id, text)
  }
  for (const { unix_ms, min, max } of interop.object_id_bounds) {
    for (const time of [unix_ms, new Date(unix_ms)]) {
      assert.deepEqual([minObjectId(time), maxObjectId(time)], [min, max])
    }
  }
  const before = Math.floor(Date.now() / 1000) * 1000
  const made = (await byThreads('objectId', objectId)).flat()
  for (const text of made) {
    assert.match(text, /^[0-9a-f]{24}$/)
  }
  const decoded = made.map(decodeObjectId)
  assert.equal(new Set(decoded.map(parts => parts.random)).size, 1)
  assert.equal(new Set(decoded.map(parts => parts.counter)).size, made.length)
  assert.ok(decoded.every(({ time }) => before <= time && time <= Date.now()))
})

test('object_id_bad_input', () => {
  for (const bad of [...interop.object_ids_invalid, '\ud800', 'f'.repeat(1 << 20)]) {
    refused('ID_INVALID', () => decodeObjectId(bad))
  }
  for (const bad of NOT_STRINGS) {
    refused('WRONG_TYPE', () => decodeObjectId(bad), 'text')
  }
  for (const bound of [minObjectId, maxObjectId]) {
    for (const { unix_ms, error } of interop.object_id_out_of_bounds) {
      refused(error, () => bound(unix_ms))
      refused(error, () => bound(new Date(unix_ms)))
    }
    for (const bad of [NaN, Infinity, 0.5, 2 ** 53, new Date(NaN)]) {
      refused('OUT_OF_RANGE', () => bound(bad), 'time')
    }
    for (const bad of [...NOT_STRINGS.filter(value => typeof value !== 'number' && !(value instanceof Date)), '2025-01-01']) {
      refused('WRONG_TYPE', () => bound(bad), 'time')
    }
  }
})

test('uuid', async () => {
  assert.ok(interop.uuids.length > 0)
  for (const { texts, canonical, version, unix_ms } of interop.uuids) {
    for (const text of texts) {
      assert.equal(parseUuid(text), canonical)
      assert.equal(parseInt(canonical[14], 16), version)
      if (unix_ms === null) {
        refused('ID_INVALID', () => uuidTime(text), canonical)
      } else {
        assert.equal(uuidTime(text).getTime(), unix_ms, text)
      }
    }
  }
  const before = Date.now()
  for (const each of await byThreads('uuid7', uuid7)) {
    for (const [at, text] of each.entries()) {
      assert.equal(UUID.exec(text)?.[1], '7', text)
      assert.ok(at === 0 || each[at - 1] < text, `${each[at - 1]} is followed by ${text}`)
      assert.ok(before <= uuidTime(text) && uuidTime(text) <= Date.now())
    }
  }
  for (const text of (await byThreads('uuid4', uuid4)).flat()) {
    assert.equal(UUID.exec(text)?.[1], '4', text)
  }
})

test('uuid_bad_input', () => {
  for (const call of [parseUuid, uuidTime]) {
    for (const bad of [...interop.uuids_invalid, '\ud800', 'f'.repeat(1 << 20)]) {
      refused('ID_INVALID', () => call(bad))
    }
    for (const bad of NOT_STRINGS) {
      refused('WRONG_TYPE', () => call(bad), 'text')
    }
  }
  refused('ID_INVALID', () => uuidTime(uuid4()), 'no time')
})

test('interop_after_fork', async () => {
  // Node cannot fork: a second process.
  const program = `
    import { uuid7 } from 'frazil/uuid'
    import { objectId } from 'frazil/objectid'
    console.log(objectId(), uuid7())`
  const children = (await Promise.all([runChild(program), runChild(program)])).map(printed => printed.split(' '))
  const made = [[objectId(), uuid7()], ...children]
  assert.equal(new Set(made.map(([id]) => decodeObjectId(id).random)).size, 3)
  assert.equal(new Set(made.map(([, uuid]) => uuid.slice(-16))).size, 3)
})

test('what is a UUID, its version and its bytes', () => {
  for (const { texts, canonical, version } of interop.uuids) {
    for (const text of texts) {
      assert.equal(isUuid(text), true)
      assert.equal(uuidVersion(text), version)
      const bytes = uuidBytes(text)
      assert.ok(bytes instanceof Uint8Array && !Buffer.isBuffer(bytes))
      assert.equal(Buffer.from(bytes).toString('hex'), canonical.replaceAll('-', ''))
      assert.deepEqual([uuidFromBytes(bytes), uuidFromBytes(Buffer.from(bytes))], [canonical, canonical])
      // The bytes have their own memory, and are not part of a shared pool.
      assert.equal(bytes.buffer.byteLength, 16)
    }
  }
  const [nil, max] = ['0', 'f'].map(digit => digit.repeat(32))
  assert.deepEqual([nil, max].map(uuidVersion), [0, 15])
  for (const bad of [...interop.uuids_invalid, ...NOT_STRINGS, '\ud800', 'f'.repeat(1 << 20)]) {
    assert.equal(isUuid(bad), false)
  }
  for (const bad of [...NOT_STRINGS, 'text', new Uint8Array(15), new Uint8Array(17), new Uint8Array(0), new ArrayBuffer(16), new Uint16Array(16)]) {
    refused('WRONG_TYPE', () => uuidFromBytes(bad), 'bytes', '16')
  }
  for (const call of [uuidVersion, uuidBytes]) {
    refused('ID_INVALID', () => call('x'))
    refused('WRONG_TYPE', () => call(7), 'text')
  }
})

test('version 7 UUIDs of an instant, and their bounds', () => {
  const last = 2 ** 48 - 1
  for (const instant of [0, 1, 1645557742000, Date.now(), last]) {
    const [low, high] = [uuid7Min(instant), uuid7Max(instant)]
    const made = Array.from({ length: 50 }, () => uuid7(new Date(instant)))
    assert.equal(new Set(made).size, 50)
    for (const text of [low, high, ...made, uuid7(instant)]) {
      assert.match(text, UUID)
      assert.ok(low <= text && text <= high)
      assert.equal(parseInt(text.slice(0, 8) + text.slice(9, 13), 16), instant)
    }
    assert.equal(instant === 0 || uuid7Max(instant - 1) < low, true)
  }
  assert.equal(uuid7Min(1645557742000), '017f22e2-79b0-7000-8000-000000000000')
  assert.equal(uuid7Max(1645557742000), '017f22e2-79b0-7fff-bfff-ffffffffffff')
  const before = uuid7()
  uuid7(Date.now() + 1e9)
  assert.ok(before < uuid7() && uuidTime(uuid7()) <= Date.now(), 'an instant\'s UUID does not move the clock\'s')
  for (const call of [uuid7, uuid7Min, uuid7Max]) {
    refused('BEFORE_EPOCH', () => call(-1))
    refused('LAYOUT_EXPIRED', () => call(last + 1))
    for (const bad of [NaN, 0.5, new Date(NaN)]) {
      refused('OUT_OF_RANGE', () => call(bad), 'time')
    }
    for (const bad of [null, '2025-01-01', {}, 7n, true]) {
      refused('WRONG_TYPE', () => call(bad), 'time')
    }
  }
})

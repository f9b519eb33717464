// Answers that wait for the event loop while the machine is copied. No two copies may get the same ID.
import assert from 'node:assert/strict'
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { removeStores } from './folders.mjs'
import { runChild } from './helper.mjs'

const folder = mkdtempSync(join(tmpdir(), 'frazil-copies-'))
after(() => removeStores(folder))

const COPIED = 'COPIED: this call was answered before the machine was copied, and each copy has the answer: make the call again'

/** The outcomes of calls whose answers came while the loop was busy, before restored(). */
const said = {}

before(async () => {
  Object.assign(said, JSON.parse(await runChild(`
    import { spawn } from 'node:child_process'
    import { once } from 'node:events'
    import { Buffered, Segment, Snowflake, Tickets, restored } from 'frazil'
    const folder = ${JSON.stringify(folder)}
    const layout = 'layout="time:31@250ms node:16 sequence:1 epoch:2025-01-01" exhausted=wait:60s'
    let turn = 0
    const ids = () => Snowflake.open(layout, { store: 'memory', namespace: 'copies-' + turn++ })
    const usedUp = source => {
      try {
        for (;;) source.next({ maxWaitMs: 0 })
      } catch (error) {
        if (error.code !== 'WOULD_BLOCK') throw error
      }
      return source
    }
    // Opens on folders whose locks another process then holds for a second.
    const held = async (type, tag, folders) => {
      const source = await type.open(tag, { store: folders.map(name => 'file:' + folder + '/' + name).join(' '), wait: '60s' })
      // After this call, the folders exist.
      await source.nextAsync()
      for (const name of folders) {
        const path = folder + '/' + name + '/default~' + tag + '/.lock'
        const lock = spawn('flock', [path, 'sh', '-c', 'echo locked; sleep 1'], { stdio: ['ignore', 'pipe', 'ignore'] })
        await once(lock.stdout, 'data')
      }
      return usedUp(source)
    }
    const ring = await Buffered.open(layout + ' empty=wait:60s', { store: 'memory', namespace: 'copies-ring', size: 2 })
    const sources = { segment: await held(Segment, 'orders', ['a']), tickets: await held(Tickets, 'photos', ['b', 'c']) }
    const made = []
    for (let n = 0; n < 6; n++) made.push(await ids())
    // Ten IDs take 5 ticks, so these calls always wait.
    const calls = {
      nextAsync: () => usedUp(made[0]).nextAsync(),
      nextBigIntAsync: () => usedUp(made[1]).nextBigIntAsync(),
      batchAsync: () => made[2].batchAsync(10),
      batchBigIntAsync: () => made[3].batchBigIntAsync(10),
      ring: () => usedUp(ring).nextAsync(),
      segment: () => sources.segment.nextAsync(),
      tickets: () => sources.tickets.nextAsync(),
      open: () => Snowflake.open('standard', { store: 'file:' + folder, namespace: 'opened' }),
      'open of a ring': () => Buffered.open(layout + ' node=7 empty=wait:60s', { size: 16 }),
      releaseNodeAsync: () => made[4].releaseNodeAsync(),
      closeAsync: () => made[5].closeAsync(),
    }
    const promises = Object.entries(calls).map(([name, call]) => [name, call().then(value => typeof value, error => error.code + ': ' + error.message)])
    // The loop is busy while the answers come.
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5000)
    restored()
    console.log(JSON.stringify(Object.fromEntries(await Promise.all(promises.map(async ([name, said]) => [name, await said])))))
    process.exit()`)))
})

for (const name of ['nextAsync', 'nextBigIntAsync', 'batchAsync', 'batchBigIntAsync', 'ring', 'segment', 'tickets', 'open', 'open of a ring']) {
  test(`the answer of ${name} that waits for the loop is COPIED`, () => assert.equal(said[name], COPIED))
}

for (const name of ['releaseNodeAsync', 'closeAsync']) {
  test(`${name} that waits for the loop is done, and not COPIED`, () => assert.equal(said[name], 'undefined'))
}

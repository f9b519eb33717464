// Counters, diagnostics channels, and the process's warnings.
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { Buffered, Segment, Snowflake, metrics, stats } from 'frazil'
import { runChild } from './helper.mjs'

describe('stats', () => {
  test('what is issued is counted', async () => {
    const ids = await Snowflake.open('standard', { store: 'memory', namespace: 'js-counted' })
    for (let n = 0; n < 100; n++) ids.next()
    ids.batch(1000)
    ids.fill(new BigInt64Array(500))
    const shown = ids.stats()
    assert.deepEqual([shown.kind, shown.spec, shown.issued, shown.refused], ['snowflake', ids.spec, 1600, 0])
    assert.deepEqual([shown.leaseNode, shown.leasesLost, shown.rangeLeft], [ids.node, 0, undefined])
    assert.ok(shown.leaseSecondsLeft > 0 && Object.isFrozen(shown))
    assert.equal(stats().find(({ spec }) => spec === ids.spec).issued, 1600)
    ids.close()
    assert.equal(ids.stats().issued, 1600)
  })

  test('segments and rings are counted', async () => {
    const orders = await Segment.open('js-orders', { store: 'memory', step: 100 })
    orders.batch(30)
    assert.deepEqual([orders.stats().kind, orders.stats().issued, orders.stats().rangeLeft], ['segment', 30, 70])
    const ring = await Buffered.open('standard', { node: 905, size: 1000 })
    ring.batch(10)
    assert.deepEqual([ring.stats().kind, ring.stats().issued, ring.stats().rangeStep], ['buffered', 10, undefined])
  })

  test('the table names every value', async () => {
    const shown = (await Snowflake.open('standard', { store: 'memory', namespace: 'js-table' })).stats()
    const { kind, spec, ...values } = shown
    assert.deepEqual(Object.keys(values).sort(), metrics.map(({ field }) => field).sort())
    assert.ok(metrics.every(({ prometheus, help, isCounter }) => help && prometheus.endsWith('_total') === isCounter))
  })
})

describe('events', { concurrency: true }, () => {
  const hears = `
    import { channel } from 'node:diagnostics_channel'
    import { setTimeout as sleep } from 'node:timers/promises'
    import { Snowflake } from 'frazil'
    const heard = []
    for (const name of ['lease.taken', 'clock.rollback', 'layout.ending']) {
      channel('frazil:' + name).subscribe(event => heard.push(event))
    }
    const warned = []
    process.on('warning', ({ name, code }) => warned.push(name + ' ' + code))
    const until = async done => { for (const end = Date.now() + 60000; !done(); await sleep(5)) if (Date.now() > end) throw new Error('no event') }`

  test('channels get every event, and the process emits warnings', async () => {
    const output = await runChild(`${hears}
      const leased = await Snowflake.open('standard', { store: 'memory', namespace: 'events' })
      await until(() => heard.length === 1)
      const ids = new Snowflake('standard', { node: 1, clock: 'manual', rollback: 'error', detached: true })
      ids.setTime(new Date('2030-01-01'))
      ids.next()
      ids.setTime(new Date('2029-12-31T23:59:57Z'))
      for (let n = 0; n < 5; n++) try { ids.next() } catch {}
      ids.setTime(new Date('2094-01-01'))
      ids.next()
      await until(() => heard.length === 3 && warned.length === 2)
      console.log(JSON.stringify([heard.map(({ name, level }) => name + ' ' + level), heard[0].fields.namespace, heard[1].fields, warned]))`)
    assert.deepEqual(JSON.parse(output), [
      ['lease.taken info', 'clock.rollback warning', 'layout.ending warning'], 'events', { node: '1', back_ms: '3000', rollback: 'error' },
      ['FrazilWarning FRAZIL_CLOCK_ROLLBACK', 'FrazilWarning FRAZIL_LAYOUT_ENDING'],
    ])
  })

  test('a subscriber may throw: the others and the process still get the event', async () => {
    const output = await runChild(`${hears}
      const caught = []
      process.on('uncaughtException', ({ message }) => caught.push(message))
      channel('frazil:clock.rollback').subscribe(() => { throw new Error('a subscriber') })
      const goBack = node => {
        const ids = new Snowflake('standard', { node, clock: 'manual', rollback: 'error', detached: true })
        ids.setTime(new Date('2030-01-01'))
        ids.next()
        ids.setTime(new Date('2029-12-31T23:59:57Z'))
        try { ids.next() } catch {}
      }
      goBack(1)
      await until(() => heard.length === 1 && caught.length === 1 && warned.length === 1)
      // Hardened programs remove this function, or make it throw.
      process.getBuiltinModule = () => { throw new Error('not here') }
      goBack(2)
      await until(() => warned.length === 2)
      console.log(JSON.stringify([heard.map(({ fields }) => fields.node), caught, warned]))`)
    assert.deepEqual(JSON.parse(output), [['1'], ['a subscriber'], Array(2).fill('FrazilWarning FRAZIL_CLOCK_ROLLBACK')])
  })

  test('an idle generator emits nothing, and does not keep the process alive', async () => {
    const output = await runChild(`
      import { Snowflake } from 'frazil'
      process.on('warning', warning => console.log(warning.code))
      const ids = await Snowflake.open('standard', { store: 'memory', namespace: 'rests' })
      for (let n = 0; n < 1000; n++) ids.next()
      console.log(ids.stats().issued)`)
    assert.equal(output, '1000')
  })
})

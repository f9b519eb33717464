// The data files that every language's suite reads.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as frazil from 'frazil'
import * as lite from 'frazil/lite'
import { refused, vectors } from './helper.mjs'
import { cases } from './layout_cases.mjs'

const { Snowflake, errors } = frazil

test('known_ids', () => cases.known_ids(frazil, vectors))
test('texts', () => cases.texts(frazil, vectors))
test('layouts', () => cases.layouts(frazil, vectors))

test('specs', async () => {
  const { canonical, invalid } = vectors('specs')
  assert.ok(canonical.length > 0 && invalid.length > 0)
  for (const row of canonical) {
    const ids = await Snowflake.open(row.spec)
    assert.equal(ids.spec, row.canonical)
  }
  for (const { spec, error, says } of invalid) {
    refused(error, () => new Snowflake(spec), ...says)
  }
})

test('mistakes', () => {
  const ids = new Snowflake('standard node=1', { detached: true, maxWaitMs: 1000 })
  const calls = {
    decode: value => ids.layout.decode(value),
    batch: value => ids.batch(value),
    sequence: value => ids.layout.compose({ time: 1735689600000, node: 1, sequence: value }),
    text: value => ids.text(value),
  }
  const { mistakes } = vectors('mistakes')
  assert.ok(mistakes.length > 0)
  for (const { spec, option, call, value, error, says } of mistakes) {
    refused(error, () => option ? new Snowflake(spec, { [option]: value }) : calls[call](value), ...says)
  }
})

function walk(ids, steps, name) {
  for (const [at, [step, ...values]] of steps.entries()) {
    const where = `${name}, step ${at}`
    if (step === 'set_time') {
      ids.setTime(values[0])
    } else if (step === 'next') {
      assert.equal(ids.next(), values[0], where)
    } else if (step === 'error') {
      refused(values[0], () => ids.next())
    } else if (step === 'batch') {
      const batch = ids.batch(values[0])
      assert.deepEqual([batch.length, batch[0], batch.at(-1)], values, where)
    } else if (step === 'credit') {
      assert.equal(ids.credit(), values[0], where)
    } else {
      assert.fail(`an unknown step: ${step}`)
    }
  }
}

test('replays', () => {
  const { replays } = vectors('replays')
  assert.ok(replays.length > 0)
  for (const { name, spec, steps } of replays) {
    walk(new Snowflake(spec), steps, name)
  }
})

test('takeover', () => {
  const { takeovers } = vectors('takeover')
  assert.ok(takeovers.length > 0)
  for (const { system, spec, layout, last, unix_ms, fields, steps } of takeovers) {
    const opened = new Snowflake(spec, { after: last })
    assert.equal(`${opened.layout}`, layout, system)
    const { id, time, tick, looksRounded, ...parts } = opened.layout.decode(last)
    assert.equal(time.getTime(), unix_ms, system)
    assert.deepEqual(parts, fields, system)
    walk(opened, steps, system)

    const observing = new Snowflake(spec)
    observing.setTime(time)
    observing.observe(last)
    walk(observing, steps, system)
  }
})

test('error_table', () => {
  const expected = vectors('errors').errors.map(({ code, name, meaning }) => ({ code: name, number: code, meaning }))
  assert.deepEqual(errors, expected)
  assert.ok(Object.isFrozen(errors) && errors.every(Object.isFrozen))
})

test('the text of an ID is decimal where no format is named', () => {
  for (const { parseId } of [frazil, lite]) {
    assert.equal(parseId('0000000000000000042'), '42')
    assert.equal(parseId('42', undefined), '42')
    refused('ID_INVALID', () => frazil.parseId('2a'))
    assert.throws(() => parseId('2a'), { code: 'ID_INVALID' })
  }
})

test('the fields of parts, alone', () => {
  for (const { Layout } of [frazil, lite]) {
    const parts = new Layout('twitter').decode('1541815603606036480')
    assert.deepEqual(parts.fields, { datacenter: 11, worker: 26 })
    assert.deepEqual([parts.datacenter, parts.worker], [11, 26])
    assert.ok(!Object.keys(parts).includes('fields') && !JSON.stringify(parts).includes('fields'))
  }
})

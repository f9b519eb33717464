// The data files that every language's suite reads.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Layout, Snowflake, errors, formatId, parseId } from 'frazil'
import { refused, vectors } from './helper.mjs'

const FORMATS = ['decimal', 'base62', 'base32', 'hex']

test('known_ids', () => {
  const known = vectors('known_ids').vectors
  assert.ok(known.length > 0)
  for (const { layout: text, id, unix_ms, fields } of known) {
    const layout = new Layout(text)
    const parts = layout.decode(id)
    assert.equal(parts.id, id)
    if (unix_ms !== undefined) {
      assert.equal(parts.time.getTime(), unix_ms, id)
    }
    for (const [name, value] of Object.entries(fields)) {
      assert.equal(parts[name], value, `${name} of ${id}`)
    }
    assert.deepEqual(layout.decode(BigInt(id)), parts)
    const { id: _, tick, looksRounded, ...composition } = parts
    assert.equal(layout.compose(composition), id)
    assert.equal(layout.compose({ ...composition, time: composition.time.getTime() }), id)
  }
})

test('texts', () => {
  const { valid, invalid } = vectors('texts')
  assert.ok(valid.length > 0 && invalid.length > 0)
  for (const row of valid) {
    for (const format of FORMATS) {
      assert.equal(formatId(row.id, format), row[format])
      assert.equal(formatId(BigInt(row.id), format), row[format])
      assert.equal(parseId(row[format], format), row.id)
    }
    assert.equal(parseId(row.id, 'decimal'), row.id)
    if (Number.isSafeInteger(Number(row.id))) {
      assert.equal(formatId(Number(row.id), 'hex'), row.hex)
    }
  }
  for (const { format, text } of invalid) {
    refused('ID_INVALID', () => parseId(text, format))
  }
})

test('layouts', () => {
  const { valid, invalid } = vectors('layouts')
  assert.ok(valid.length > 0 && invalid.length > 0)
  for (const row of valid) {
    const layout = new Layout(row.text)
    assert.equal(`${layout}`, row.canonical)
    assert.equal(layout.timeBits, row.time_bits)
    assert.equal(layout.tickMs, row.tick_ms)
    assert.equal(layout.epoch.getTime(), row.epoch_ms)
    assert.deepEqual(Object.entries(layout.fields), row.fields)
    assert.equal(layout.sequenceBits, row.sequence_bits)
    assert.equal(layout.nodes, BigInt(row.nodes))
    assert.equal(layout.idsPerSecond, row.ids_per_second)
    assert.equal(layout.expiresAt?.getTime() ?? null, row.expires_at_ms)
    assert.ok(layout.equals(new Layout(row.canonical)))
  }
  assert.ok(!new Layout('twitter').equals(new Layout('leaf')))
  for (const { text, error, says } of invalid) {
    refused(error, () => new Layout(text), ...says)
  }
})

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

    const told = new Snowflake(spec)
    told.setTime(time)
    told.observe(last)
    walk(told, steps, system)
  }
})

test('error_table', () => {
  const expected = vectors('errors').errors.map(({ code, name, meaning }) => ({ code: name, number: code, meaning }))
  assert.deepEqual(errors, expected)
  assert.ok(Object.isFrozen(errors) && errors.every(Object.isFrozen))
})

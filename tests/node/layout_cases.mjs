// The vectors that need no generator, for the addon, for frazil/lite and for browsers. So this file uses nothing of Node.

const FORMATS = ['decimal', 'base62', 'base32', 'hex', 'check']

/** Returns a text that is equal only for equal values, also of different realms. */
export const show = value => JSON.stringify(value, (_, inner) => (typeof inner === 'bigint' ? `${inner}n` : inner))

function ok(truth, about) {
  if (!truth) {
    throw new Error(about)
  }
}

function equal(actual, expected, about = '') {
  ok(show(actual) === show(expected), `${about}: ${show(actual)} is not ${show(expected)}`)
}

function refused({ FrazilError }, errors, code, call, says = []) {
  let result
  try {
    result = call()
  } catch (error) {
    ok(error instanceof FrazilError, error.stack)
    equal([error.name, error.code, error.number], ['FrazilError', code, errors.find(row => row.name === code).code], error.message)
    return says.forEach(part => ok(error.message.includes(part), `"${error.message}" does not say "${part}"`))
  }
  ok(false, `${call} is not refused with ${code} but gives ${show(result)}`)
}

/** Each case by its name in cases.json; `vectors` gives a file's content. */
export const cases = {
  known_ids({ Layout }, vectors) {
    const known = vectors('known_ids').vectors
    ok(known.length > 0, 'there are known IDs')
    for (const { layout: text, id, unix_ms, fields } of known) {
      const layout = new Layout(text)
      const parts = layout.decode(id)
      equal(parts.id, id)
      if (unix_ms !== undefined) {
        equal(parts.time.getTime(), unix_ms, id)
      }
      for (const [name, value] of Object.entries(fields)) {
        equal(parts[name], value, `${name} of ${id}`)
      }
      equal(layout.decode(BigInt(id)), parts)
      const node = Object.entries(layout.fieldBits).reduce((node, [name, bits]) => (node << BigInt(bits)) | BigInt(parts.fields[name]), 0n)
      equal(BigInt(parts.node), node, `the node of ${id}`)
      const { id: _, tick, looksRounded, ...composition } = parts
      equal(layout.compose(composition), id)
      equal(layout.compose({ ...composition, time: composition.time.getTime() }), id)
    }
    const pair = new Layout('time:41@1ms region:2 node:8 sequence:12 epoch:2025-01-01')
    equal(pair.decode(pair.compose({ time: 1735689600000, region: 1, node: 5, sequence: 0 })).node, 5, 'a field of that name')
  },

  texts(frazil, vectors) {
    const { formatId, parseId } = frazil
    const { valid, invalid, spelled, refused: wrong } = vectors('texts')
    ok([valid, invalid, spelled, wrong].every(rows => rows.length > 0), 'there are texts')
    for (const row of valid) {
      for (const format of FORMATS) {
        equal(formatId(row.id, format), row[format])
        equal(formatId(BigInt(row.id), format), row[format])
        equal(parseId(row[format], format), row.id)
      }
      equal(parseId(row.id, 'decimal'), row.id)
      if (Number.isSafeInteger(Number(row.id))) {
        equal(formatId(Number(row.id), 'hex'), row.hex)
      }
    }
    for (const { format, text } of invalid) {
      refused(frazil, vectors('errors').errors, 'ID_INVALID', () => parseId(text, format))
    }
    for (const { format, prefix, text, id } of spelled) {
      equal(parseId(text, format, prefix), id, text)
    }
    for (const { format, prefix, text, says } of wrong) {
      refused(frazil, vectors('errors').errors, 'ID_INVALID', () => parseId(text, format, prefix), [says])
    }
  },

  layouts(frazil, vectors) {
    const { Layout } = frazil
    const { valid, invalid } = vectors('layouts')
    ok(valid.length > 0 && invalid.length > 0, 'there are layouts')
    for (const row of valid) {
      const layout = new Layout(row.text)
      equal(`${layout}`, row.canonical)
      equal(layout.timeBits, row.time_bits)
      equal(layout.tickMs, row.tick_ms)
      equal(layout.epoch.getTime(), row.epoch_ms)
      equal(Object.entries(layout.fieldBits), row.fields)
      equal(layout.sequenceBits, row.sequence_bits)
      equal(layout.nodes, BigInt(row.nodes))
      equal(layout.idsPerSecond, row.ids_per_second)
      equal(layout.expiresAt?.getTime() ?? null, row.expires_at_ms)
      ok(layout.equals(new Layout(row.canonical)), row.text)
    }
    ok(!new Layout('twitter').equals(new Layout('leaf')), 'layouts differ')
    for (const { text, error, says } of invalid) {
      refused(frazil, vectors('errors').errors, error, () => new Layout(text), says)
    }
  },
}

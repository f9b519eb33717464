'use strict'

const { FrazilError, Snowflake } = require('../index.js')
const { optionsOf } = require('./options.js')

/**
 * Checks the options of an adapter: a spec line, or an object of `spec`, `options`, `open` and the adapter's own options. Other keys are
 * refused, because a key of the spec line there would be ignored.
 */
function readOptions(given, others) {
  if (typeof given === 'string') {
    return { spec: given }
  }
  const known = ['spec', 'options', 'open', ...others].map(name => [name, undefined])
  return optionsOf(given, Object.fromEntries(known), '; keys of the spec line go into spec, or into options')
}

/** Opens the generator of the options. */
async function openIds({ spec, options, open }) {
  if (open === undefined) {
    return Snowflake.open(spec, options)
  }
  if (spec !== undefined || options !== undefined) {
    throw new FrazilError('SPEC', 'open cannot be used with spec or options: give either open, or spec and options')
  }
  const ids = await open()
  if (typeof Object(ids).closeAsync !== 'function') {
    throw new FrazilError('WRONG_TYPE', 'open did not return a generator: it must be, for example, () => Segment.open(...)')
  }
  return ids
}

module.exports = { openIds, readOptions }

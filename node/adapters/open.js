'use strict'

const { FrazilError, Snowflake } = require('../index.js')
const { optionsOf } = require('./options.js')

/**
 * What an adapter is given: a spec line, or an object of `spec`, `options`, `open` and of what the adapter itself takes. A key of the spec
 * line beside them is refused; it would be ignored.
 */
function readOptions(given, others) {
  if (typeof given === 'string') {
    return { spec: given }
  }
  const known = ['spec', 'options', 'open', ...others].map(name => [name, undefined])
  return optionsOf(given, Object.fromEntries(known), '; keys of the spec line go into spec, or into options')
}

/** Opens what the options say. */
async function openIds({ spec, options, open }) {
  if (open === undefined) {
    return Snowflake.open(spec, options)
  }
  if (spec !== undefined || options !== undefined) {
    throw new FrazilError('SPEC', 'give either open, or spec and options: open says it all')
  }
  const ids = await open()
  if (typeof Object(ids).closeAsync !== 'function') {
    throw new FrazilError('WRONG_TYPE', 'open gave no generator: it must be, for example, () => Segment.open(...)')
  }
  return ids
}

module.exports = { openIds, readOptions }

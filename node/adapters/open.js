'use strict'

const { FrazilError, Snowflake } = require('../index.js')

const OPTIONS = ['spec', 'options', 'open']

/**
 * What an adapter is given: a spec line, or an object of `spec`, `options`, `open` and of what the adapter itself takes. A key of the spec
 * line beside them is refused; it would be ignored.
 */
function readOptions(given, others) {
  if (typeof given === 'string') {
    return { spec: given }
  }
  if (given !== undefined && (typeof given !== 'object' || given === null)) {
    const what = given === null ? 'null' : `a ${typeof given}`
    throw new FrazilError('WRONG_TYPE', `the options are ${what}: they must be a spec line, or an object with: ${OPTIONS.join(', ')}`)
  }
  const names = [...OPTIONS, ...others]
  for (const key of Object.keys({ ...given })) {
    if (!names.includes(key)) {
      const mend = 'keys of the spec line go into spec, or into options'
      throw new FrazilError('UNKNOWN_KEY', `the option ${JSON.stringify(key)} is none of: ${names.join(', ')}; ${mend}`)
    }
  }
  return { ...given }
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

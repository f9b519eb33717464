'use strict'
// What adapters are given as options.

const { FrazilError } = require('../index.js')

// The options, of which there are no others than these: { name: a list of the values that are allowed, or undefined for any }. Of one that is
// not among them the error tells the fix, too.
function optionsOf(given, known, fix = '') {
  if (given !== undefined && Object(given) !== given) {
    throw new FrazilError('WRONG_TYPE', `options is ${given === null ? 'null' : `a ${typeof given}`}: it must be an object`)
  }
  const names = Object.keys(known)
  for (const [name, value] of Object.entries(given || {})) {
    if (!names.includes(name)) {
      throw new FrazilError('UNKNOWN_KEY', `option ${JSON.stringify(name)} is none of: ${names.join(', ')}${fix}`)
    }
    if (value !== undefined && known[name] && !known[name].includes(value)) {
      const allowed = known[name].map(value => `'${value}'`).join(', ')
      throw new FrazilError('OUT_OF_RANGE', `${name}=${String(value)} is none of: ${allowed}`)
    }
  }
  return { ...given }
}

module.exports = { optionsOf }

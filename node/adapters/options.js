'use strict'
// Checks the options of adapters.

const { FrazilError } = require('../index.js')

// Checks options against { name: a list of the allowed values, or undefined for any }. The error for any other name has the fix.
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

'use strict'
// Converts IDs for a database and back, exactly or not at all.

const { FrazilError, formatId } = require('../index.js')

// The ID that the program passes, as a BigInt.
function toBigInt(id) {
  return BigInt(formatId(id, 'decimal'))
}

// The ID that a driver has read, as decimal text. `fix` is the setting with which the driver returns exact 64-bit integers.
function readText(value, fix) {
  if (typeof value === 'number' && !Number.isSafeInteger(value)) {
    throw new FrazilError('ID_INVALID', `The database's driver gave the ID as the number ${value}, which JavaScript has rounded: ${fix}`)
  }
  return String(value)
}

// Refuses a default such as `ids.next()`, which was called only once. A smaller constant may be the ID of a row that others refer to.
function refuseMintedDefault(constant, instead) {
  if (['bigint', 'number', 'string'].includes(typeof constant) && toBigInt(constant) > 2n ** 31n) {
    throw new FrazilError('SPEC', `the default ${constant} is one ID for all rows: use ${instead} instead`)
  }
}

module.exports = { readText, refuseMintedDefault, toBigInt }

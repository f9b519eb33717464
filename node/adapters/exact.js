'use strict'
// IDs on their way to a database and back: exactly, or not at all.

const { FrazilError, formatId } = require('../index.js')

// The ID that a user has written, as a BigInt.
function toBigInt(id) {
  return BigInt(formatId(id, 'decimal'))
}

// The ID that a driver has read, as decimal text. `fix` says how the driver is told to give 64-bit integers exactly.
function readText(value, fix) {
  if (typeof value === 'number' && !Number.isSafeInteger(value)) {
    throw new FrazilError('ID_INVALID', `The database's driver gave the ID as the number ${value}, which JavaScript has rounded: ${fix}`)
  }
  return String(value)
}

// A default such as `ids.next()`, which was called once. A smaller constant may be the ID of a row that others refer to.
function refuseMintedDefault(constant, instead) {
  if (['bigint', 'number', 'string'].includes(typeof constant) && toBigInt(constant) > 2n ** 31n) {
    throw new FrazilError('SPEC', `the default ${constant} is one ID for all rows: leave it out, and write ${instead}`)
  }
}

module.exports = { readText, refuseMintedDefault, toBigInt }

'use strict'
// IDs on their way to a database and back: exactly, or not at all.

const { FrazilError, formatId } = require('../index.js')

// The ID that a user has written, as a BigInt.
function toBigInt(id) {
  return BigInt(formatId(id, 'decimal'))
}

// The ID that a driver has read, as decimal text. `mend` says how the driver is told to give 64-bit integers exactly.
function readText(value, mend) {
  if (typeof value === 'number' && !Number.isSafeInteger(value)) {
    throw new FrazilError('ID_INVALID', `The database's driver gave the ID as the number ${value}, which JavaScript has rounded: ${mend}`)
  }
  return String(value)
}

module.exports = { readText, toBigInt }

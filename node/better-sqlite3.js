'use strict'

function exactIntegers(database) {
  const { prepare } = database
  database.prepare = function prepareExact(...given) {
    return exactStatement(prepare.apply(this, given))
  }
  return database
}

// Reads BigInts, and converts those that fit a number, so that the program's other columns stay numbers.
function exactStatement(statement) {
  const { all, get, iterate, run } = statement.safeIntegers()
  return Object.assign(statement, {
    all: (...given) => all.apply(statement, given).map(exactRow),
    get: (...given) => exactRow(get.apply(statement, given)),
    run: (...given) => exactRow(run.apply(statement, given)),
    * iterate(...given) {
      for (const row of iterate.apply(statement, given)) {
        yield exactRow(row)
      }
    },
  })
}

// An object, an array in raw mode, or a single value with pluck().
function exactRow(row) {
  if (typeof row === 'bigint') {
    return exactInteger(row)
  }
  for (const [name, value] of Object.entries(row && !Buffer.isBuffer(row) ? row : {})) {
    if (typeof value === 'bigint') {
      row[name] = exactInteger(value)
    } else if (value && value.constructor === Object) {
      exactRow(value)
    }
  }
  return row
}

function exactInteger(integer) {
  const number = Number(integer)
  return Number.isSafeInteger(number) ? number : String(integer)
}

module.exports = { exactIntegers }

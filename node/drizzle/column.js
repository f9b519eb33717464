'use strict'
// The column builder of all dialects, on top of a dialect's `customType`, which its module passes in.

const { readText, refuseMintedDefault, toBigInt } = require('../adapters/exact.js')
const { optionsOf } = require('../adapters/options.js')
const { Source } = require('../adapters/source.js')

const DIALECTS = {
  pg: {
    fix: 'what `with` loads comes as JSON: let the driver parse JSON by parseJson of frazil/json, and int8 as text',
    write: id => String(toBigInt(id)),
  },
  mysql: {
    fix: 'mysql2 needs { supportBigNumbers: true, bigNumberStrings: true }, and Node 22 for what `with` loads',
    // Databases may compare text as floating-point numbers.
    write: toBigInt,
  },
  sqlite: {
    fix: '`with` loads rows as JSON: load the ID as text, through `extras`; in your own expressions use `cast(... as text)`',
    write: id => String(toBigInt(id)),
    // Drizzle selects `cast(... as text)` only for this type. Drivers of SQLite return rounded numbers for 64-bit integers.
    columnType: 'SQLiteNumericBigInt',
  },
}

function snowflakeOf(customType, dialect) {
  const { fix, write, columnType } = DIALECTS[dialect]

  return function snowflake(nameOrOptions, options) {
    const named = typeof nameOrOptions === 'string'
    const { ids, mode } = optionsOf(named ? options : nameOrOptions, { ids: undefined, mode: ['string', 'bigint'] })
    const value = mode === 'bigint' ? BigInt : text => text
    const fromDriver = given => value(readText(given, fix))
    const builder = customType({ dataType: () => 'bigint', toDriver: write, fromDriver })(named ? nameOrOptions : undefined)
    if (columnType) {
      builder.config.columnType = columnType
    }
    if (ids !== undefined) {
      const source = new Source(ids)
      builder.$defaultFn(() => value(source.next()))
    }
    const setDefault = builder.default
    builder.default = function refuseMinted(constant) {
      refuseMintedDefault(constant, 'snowflake({ ids })')
      return setDefault.call(builder, constant)
    }
    return builder
  }
}

module.exports = { snowflakeOf }

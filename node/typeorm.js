'use strict'

const { FrazilError } = require('./index.js')
const { readText, refuseMintedDefault, toBigInt } = require('./adapters/exact.js')
const { framework } = require('./adapters/framework.js')
const { Source } = require('./adapters/source.js')

const { Column, EventSubscriber, PrimaryColumn } = framework('frazil/typeorm', 'typeorm', () => require('typeorm'))

const FIX = 'MySQL and MariaDB need supportBigNumbers, which TypeORM sets; better-sqlite3 needs ' +
  '{ prepareDatabase: exactIntegers } in the DataSource, of frazil/better-sqlite3'

const isAbsent = value => value === null || value === undefined

// The transformer that marks columns of IDs. TypeORM keeps the metadata of all copies of this file together.
const transformer = {
  [Symbol.for('frazil.typeorm')]: true,

  to(id) {
    return isAbsent(id) ? id : String(toBigInt(id))
  },

  from(value) {
    return isAbsent(value) ? value : readText(value, FIX)
  },
}

const snowflakeColumn = Object.freeze({ type: 'bigint', transformer })

function PrimarySnowflakeColumn(options) {
  refuseMintedDefault(Object(options).default, 'subscribers: [snowflakeSubscriber(ids)] in the DataSource')
  return PrimaryColumn({ ...options, ...snowflakeColumn })
}

function SnowflakeColumn(options) {
  refuseMintedDefault(Object(options).default, 'entity.column = ids.next()')
  return Column({ ...options, ...snowflakeColumn })
}

// Returns whether a column is a key of IDs, and not a foreign key.
function isKey({ isPrimary, relationMetadata, transformer }) {
  return isPrimary && !relationMetadata && Object(transformer)[Symbol.for('frazil.typeorm')] === true
}

// Returns whether the driver of a data source returns rounded numbers for large integers.
function rounds({ databaseConnection, options }) {
  switch (options.type) {
    case 'better-sqlite3':
      return typeof databaseConnection.prepare('SELECT 9007199254740993 AS id').get().id === 'number'
    case 'mysql':
    case 'mariadb':
      return options.supportBigNumbers === false
    default:
      return false
  }
}

function snowflakeSubscriber(ids) {
  const source = new Source(ids)
  const exact = new WeakSet()

  class SnowflakeSubscriber {
    // Checks before the first query of each data source. With `relations` or `take`, TypeORM selects keys first, and then their rows. For
    // rounded keys it finds none, so no column of IDs would be read and checked.
    beforeQuery({ connection, dataSource = connection }) {
      const { driver } = dataSource
      if (!exact.has(driver)) {
        if (rounds(driver)) {
          throw new FrazilError('ID_INVALID', `the ${driver.options.type} driver of the DataSource returns IDs as numbers, which JavaScript rounds: ${FIX}`)
        }
        exact.add(driver)
      }
    }

    async beforeInsert({ entity, metadata }) {
      for (const column of metadata.primaryColumns.filter(isKey)) {
        // TypeORM takes an entity with a null key for a new one.
        if (isAbsent(column.getEntityValue(entity))) {
          column.setEntityValue(entity, await source.nextAsync())
        }
      }
    }
  }
  EventSubscriber()(SnowflakeSubscriber)
  return SnowflakeSubscriber
}

module.exports = { PrimarySnowflakeColumn, SnowflakeColumn, snowflakeColumn, snowflakeSubscriber }

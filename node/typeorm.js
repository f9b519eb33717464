'use strict'

const { FrazilError } = require('./index.js')
const { readText, refuseMintedDefault, toBigInt } = require('./adapters/exact.js')
const { framework } = require('./adapters/framework.js')
const { Source } = require('./adapters/source.js')

const { Column, EventSubscriber, PrimaryColumn } = framework('frazil/typeorm', 'typeorm', () => require('typeorm'))

const MEND = 'MySQL and MariaDB need supportBigNumbers, which TypeORM sets; better-sqlite3 needs ' +
  '{ prepareDatabase: exactIntegers } in the DataSource, of frazil/better-sqlite3'

const isAbsent = value => value === null || value === undefined

// A column with this transformer is one of IDs. TypeORM has the metadata of all copies of this file in one place.
const transformer = {
  [Symbol.for('frazil.typeorm')]: true,

  to(id) {
    return isAbsent(id) ? id : String(toBigInt(id))
  },

  from(value) {
    return isAbsent(value) ? value : readText(value, MEND)
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

// A key of IDs that refers to nothing.
function isKey({ isPrimary, relationMetadata, transformer }) {
  return isPrimary && !relationMetadata && Object(transformer)[Symbol.for('frazil.typeorm')] === true
}

// Whether a data source's driver gives large integers as rounded numbers.
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
    // Before the first query of each data source. With `relations` or `take` TypeORM asks for keys first, and then for the rows of these keys:
    // of rounded ones there are none, so that no column of IDs is read.
    beforeQuery({ connection, dataSource = connection }) {
      const { driver } = dataSource
      if (!exact.has(driver)) {
        if (rounds(driver)) {
          throw new FrazilError('ID_INVALID', `the ${driver.options.type} driver of the DataSource gives IDs as numbers, which JavaScript rounds: ${MEND}`)
        }
        exact.add(driver)
      }
    }

    async beforeInsert({ entity, metadata }) {
      for (const column of metadata.primaryColumns.filter(isKey)) {
        // A null is no key either: TypeORM takes the entity for a new one.
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

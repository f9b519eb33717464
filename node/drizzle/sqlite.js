'use strict'

const { framework } = require('../adapters/framework.js')
const { snowflakeOf } = require('./column.js')

const { customType } = framework('frazil/drizzle/sqlite', 'drizzle-orm', () => require('drizzle-orm/sqlite-core'))

module.exports = { snowflake: snowflakeOf(customType, 'sqlite') }

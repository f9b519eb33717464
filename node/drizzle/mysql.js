'use strict'

const { framework } = require('../adapters/framework.js')
const { snowflakeOf } = require('./column.js')

const { customType } = framework('frazil/drizzle/mysql', 'drizzle-orm', () => require('drizzle-orm/mysql-core'))

module.exports = { snowflake: snowflakeOf(customType, 'mysql') }

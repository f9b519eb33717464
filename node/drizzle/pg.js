'use strict'

const { framework } = require('../adapters/framework.js')
const { snowflakeOf } = require('./column.js')

const { customType } = framework('frazil/drizzle/pg', 'drizzle-orm', () => require('drizzle-orm/pg-core'))

module.exports = { snowflake: snowflakeOf(customType, 'pg') }

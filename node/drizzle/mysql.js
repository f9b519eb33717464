'use strict'

const peer = require('../adapters/peer.js')
const { snowflakeOf } = require('./column.js')

const { customType } = peer('frazil/drizzle/mysql', 'drizzle-orm/mysql-core', 'drizzle-orm 0.41 or later', () => require('drizzle-orm/mysql-core'))

module.exports = { snowflake: snowflakeOf(customType, 'mysql') }

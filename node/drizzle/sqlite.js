'use strict'

const peer = require('../adapters/peer.js')
const { snowflakeOf } = require('./column.js')

const { customType } = peer('frazil/drizzle/sqlite', 'drizzle-orm/sqlite-core', 'drizzle-orm 0.41 or later', () => require('drizzle-orm/sqlite-core'))

module.exports = { snowflake: snowflakeOf(customType, 'sqlite') }

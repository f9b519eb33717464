'use strict'

const peer = require('../adapters/peer.js')
const { snowflakeOf } = require('./column.js')

const { customType } = peer('frazil/drizzle/pg', 'drizzle-orm/pg-core', 'drizzle-orm 0.41 or later', () => require('drizzle-orm/pg-core'))

module.exports = { snowflake: snowflakeOf(customType, 'pg') }

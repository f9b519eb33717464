import drizzle = require('drizzle-orm/pg-core')
import column = require('frazil/drizzle/pg')
import frazil = require('frazil')

const ids = new frazil.Snowflake('twitter', { datacenter: 1, worker: 7 })
const users = drizzle.pgTable('users', { id: column.snowflake('id', { ids }).primaryKey() })
const user: typeof users.$inferSelect = { id: '1' }
const made: typeof users.$inferInsert = {}
void [user, made]

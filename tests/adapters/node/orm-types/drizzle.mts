import { eq } from 'drizzle-orm'
import { drizzle } from 'drizzle-orm/node-postgres'
import { pgTable, text } from 'drizzle-orm/pg-core'
import { mysqlTable } from 'drizzle-orm/mysql-core'
import { sqliteTable } from 'drizzle-orm/sqlite-core'
import { Segment, Snowflake, type Buffered } from 'frazil'
import { snowflake, type Ids } from 'frazil/drizzle/pg'
import { snowflake as mysqlSnowflake } from 'frazil/drizzle/mysql'
import { snowflake as sqliteSnowflake } from 'frazil/drizzle/sqlite'

declare const buffered: Buffered<'standard'>
const ids = new Snowflake('twitter', { datacenter: 1, worker: 7 })
const all: Ids[] = [ids, buffered, Snowflake.open('standard'), () => ids, () => Segment.open('orders'), async () => buffered]

const users = pgTable('users', {
  id: snowflake('id', { ids }).primaryKey(),
  invitedBy: snowflake('invited_by'),
  team: snowflake().notNull(),
  big: snowflake('big', { ids, mode: 'bigint' }).notNull(),
  name: text('name').notNull(),
})
type User = typeof users.$inferSelect
type NewUser = typeof users.$inferInsert

const selected: User = { id: '1', invitedBy: null, team: '2', big: 3n, name: 'a' }
const inserted: NewUser = { team: '2', name: 'a' }
// @ts-expect-error a reference has no default
const teamless: NewUser = { name: 'a' }
// @ts-expect-error an ID is not a number
const numbered: NewUser = { id: 1, team: '2', name: 'a' }
// @ts-expect-error in the mode of strings, an ID is not a BigInt
const mixed: NewUser = { id: 1n, team: '2', name: 'a' }
// @ts-expect-error there is no such mode
snowflake('id', { mode: 'number' })
// @ts-expect-error there is no such option
snowflake('id', { generator: ids })

const db = drizzle('postgresql://localhost/app', { schema: { users } })
const [row] = await db.insert(users).values(inserted).returning({ id: users.id })
row?.id.padStart(19)
await db.select().from(users).where(eq(users.id, '1'))
// @ts-expect-error a condition takes no number
await db.select().from(users).where(eq(users.id, 1))

const m = mysqlTable('m', { id: mysqlSnowflake('id', { ids }).primaryKey(), other: mysqlSnowflake('other', { mode: 'bigint' }) })
const s = sqliteTable('s', { id: sqliteSnowflake({ ids }).primaryKey(), other: sqliteSnowflake('other', { mode: 'bigint' }) })
const empty: [typeof m.$inferInsert, typeof s.$inferInsert] = [{}, {}]
const both: [typeof m.$inferSelect, typeof s.$inferSelect] = [{ id: '1', other: 2n }, { id: '1', other: null }]
void [all, selected, teamless, numbered, mixed, empty, both]

import { relations } from 'drizzle-orm'
import { sqliteTable, integer, text } from 'drizzle-orm/sqlite-core'
import { snowflake } from 'frazil/drizzle/sqlite'
import { ids } from './ids.mjs'

export const users = sqliteTable('drizzle_users', {
  id: snowflake('id', { ids }).primaryKey(),
  name: text(),
  age: integer(),
})

export const posts = sqliteTable('drizzle_posts', {
  id: snowflake({ ids }).primaryKey(),
  authorId: snowflake('author_id').notNull().references(() => users.id),
  title: text(),
})

export const events = sqliteTable('drizzle_events', {
  id: snowflake('id', { ids, mode: 'bigint' }).primaryKey(),
  after: snowflake('after', { mode: 'bigint' }),
})

export const usersRelations = relations(users, ({ many }) => ({ posts: many(posts) }))
export const postsRelations = relations(posts, ({ one }) => ({ author: one(users, { fields: [posts.authorId], references: [users.id] }) }))

import { relations } from 'drizzle-orm'
import { pgTable, integer, text } from 'drizzle-orm/pg-core'
import { snowflake } from 'frazil/drizzle/pg'
import { ids } from './ids.mjs'

export const users = pgTable('drizzle_users', {
  id: snowflake('id', { ids }).primaryKey(),
  name: text(),
  age: integer(),
})

export const posts = pgTable('drizzle_posts', {
  id: snowflake({ ids }).primaryKey(),
  authorId: snowflake('author_id').notNull().references(() => users.id),
  title: text(),
})

export const events = pgTable('drizzle_events', {
  id: snowflake('id', { ids, mode: 'bigint' }).primaryKey(),
  after: snowflake('after', { mode: 'bigint' }),
})

export const usersRelations = relations(users, ({ many }) => ({ posts: many(posts) }))
export const postsRelations = relations(posts, ({ one }) => ({ author: one(users, { fields: [posts.authorId], references: [users.id] }) }))

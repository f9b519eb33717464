import { relations } from 'drizzle-orm'
import { pgTable, integer, text } from 'drizzle-orm/pg-core'
import { snowflake } from 'frazil/drizzle/pg'
import { ids } from './ids.mjs'

export const users = pgTable('users', {
  id: snowflake('id', { ids }).primaryKey(),
  name: text(),
  age: integer(),
})

export const posts = pgTable('posts', {
  id: snowflake({ ids }).primaryKey(),
  authorId: snowflake('author_id').notNull().references(() => users.id),
  title: text(),
})

export const events = pgTable('events', {
  id: snowflake('id', { ids, mode: 'bigint' }).primaryKey(),
  after: snowflake('after', { mode: 'bigint' }),
})

export const usersRelations = relations(users, ({ many }) => ({ posts: many(posts) }))
export const postsRelations = relations(posts, ({ one }) => ({ author: one(users, { fields: [posts.authorId], references: [users.id] }) }))

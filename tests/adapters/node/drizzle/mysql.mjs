import { relations } from 'drizzle-orm'
import { mysqlTable, int, text } from 'drizzle-orm/mysql-core'
import { snowflake } from 'frazil/drizzle/mysql'
import { ids } from './ids.mjs'

export const users = mysqlTable('drizzle_users', {
  id: snowflake('id', { ids }).primaryKey(),
  name: text(),
  age: int(),
})

export const posts = mysqlTable('drizzle_posts', {
  id: snowflake({ ids }).primaryKey(),
  authorId: snowflake('author_id').notNull().references(() => users.id),
  title: text(),
})

export const events = mysqlTable('drizzle_events', {
  id: snowflake('id', { ids, mode: 'bigint' }).primaryKey(),
  after: snowflake('after', { mode: 'bigint' }),
})

export const usersRelations = relations(users, ({ many }) => ({ posts: many(posts) }))
export const postsRelations = relations(posts, ({ one }) => ({ author: one(users, { fields: [posts.authorId], references: [users.id] }) }))

// Two tables whose keys are IDs of frazil, and a foreign key between them. `npx drizzle-kit generate` writes what changes into drizzle/.
import { index, pgTable, varchar } from 'drizzle-orm/pg-core'
import { snowflake } from 'frazil/drizzle/pg'
import { ids } from './ids.js'

export const topics = pgTable('topics', {
  id: snowflake('id', { ids: () => ids }).primaryKey(),
  title: varchar('title', { length: 100 }).notNull(),
})

export const messages = pgTable('messages', {
  id: snowflake('id', { ids: () => ids }).primaryKey(),
  topic: snowflake('topic_id').notNull().references(() => topics.id),
  author: varchar('author', { length: 100 }).notNull(),
  text: varchar('text', { length: 2000 }).notNull(),
}, table => [index('messages_topic_id').on(table.topic)])

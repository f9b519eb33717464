import { drizzle } from 'drizzle-orm/node-postgres'
import { migrate } from 'drizzle-orm/node-postgres/migrator'
import { fileURLToPath } from 'node:url'
import pg from 'pg'

/** Opens a pool of connections, which `close` ends. */
export function openDatabase() {
  const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL, max: 8 })
  // An idle connection that a restart of the database has cut is replaced; without a listener it would end the process.
  pool.on('error', error => console.error(`A connection was lost: ${error.message}`))
  return { db: drizzle(pool), close: () => pool.end() }
}

/** Creates the tables, or brings them up to date. */
export async function migrateDatabase() {
  const { db, close } = openDatabase()
  await migrate(db, { migrationsFolder: fileURLToPath(new URL('drizzle', import.meta.url)) })
  await close()
}

// Creates the tables once, before the workers start. `prisma migrate deploy` reads the same file, but downloads an engine for it.
import { readFileSync } from 'node:fs'
import { Client } from 'pg'

const client = new Client({ connectionString: process.env.DATABASE_URL })
await client.connect()
await client.query(readFileSync('prisma/migrations/1_board/migration.sql', 'utf8'))
await client.end()

// Prisma Clients for the three databases, generated as by a user, and the tables of Prisma's migrations.
import { execFileSync } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { serverUrl } from '../servers.mjs'
import { versions } from '../versions.mjs'
import { migrationOf } from './schema-engine.mjs'

const require = createRequire(import.meta.url)
const [models, lists] = ['models.prisma', 'lists.prisma'].map(file => readFileSync(new URL(file, import.meta.url), 'utf8'))

/** Returns a schema for a provider. `more` has models that not every database supports. */
function schemaOf(provider, url = '', more = provider === 'postgresql' ? lists : '') {
  const generator = 'generator client {\n  provider   = "prisma-client"\n  output     = "./client"\n  engineType = "client"\n}'
  return `${generator}\n\ndatasource db {\n  provider = "${provider}"${url}\n}\n\n${models}\n${more}`
}

/** Runs `prisma generate` with dummy engines, because it would download engines that it does not need. */
export async function generate(provider) {
  const folder = new URL(`generated/${versions}-${provider}/`, import.meta.url)
  mkdirSync(folder, { recursive: true })
  // Version 6 requires a URL, even though driver adapters do not use it.
  const url = versions === 'oldest' ? `\n  url      = "${provider === 'sqlite' ? 'file:' : `${provider}://`}unused"` : ''
  writeFileSync(new URL('schema.prisma', folder), schemaOf(provider, url))
  const command = require.resolve(versions === 'oldest' ? 'prisma-oldest/build/index.js' : 'prisma/build/index.js')
  const env = { ...process.env, PRISMA_SCHEMA_ENGINE_BINARY: '/bin/false', PRISMA_QUERY_ENGINE_LIBRARY: '/bin/false', PRISMA_HIDE_UPDATE_MESSAGE: '1' }
  execFileSync(process.execPath, [command, 'generate', '--schema', 'schema.prisma'], { cwd: folder, env, stdio: 'pipe' })
  return import(new URL('client/client.ts', folder))
}

/** The drivers. */
const adapters = {
  async postgresql() {
    const { PrismaPg } = await import('@prisma/adapter-pg')
    return new PrismaPg({ connectionString: serverUrl('POSTGRESQL') })
  },
  async mysql() {
    const { PrismaMariaDb } = await import('@prisma/adapter-mariadb')
    const { hostname: host, port, username: user, password, pathname } = new URL(serverUrl('MARIADB'))
    return new PrismaMariaDb({ host, port: Number(port), user, password, database: pathname.slice(1) })
  },
  async sqlite() {
    const { PrismaBetterSqlite3, PrismaBetterSQLite3 } = await import('@prisma/adapter-better-sqlite3')
    return new (PrismaBetterSqlite3 ?? PrismaBetterSQLite3)({ url: ':memory:' })
  },
}

/** Returns the statements that make the tables. Prisma's WebAssembly engine does not know MySQL, so PostgreSQL's are translated. */
async function tables(provider) {
  if (provider !== 'mysql') {
    return migrationOf(schemaOf(provider), await adapters[provider]())
  }
  const text = await migrationOf(schemaOf('postgresql', '', ''), await adapters.postgresql())
  return text.replace(/CREATE SCHEMA.*/, '').replaceAll('"', '`').replaceAll('TEXT', 'VARCHAR(191)').replaceAll('JSONB', 'JSON').replaceAll('SERIAL', 'INT AUTO_INCREMENT')
}

/** Opens a client on empty tables, and returns it with the statements that made them. */
export async function open(provider) {
  const { PrismaClient } = await generate(provider)
  const client = new PrismaClient({ adapter: await adapters[provider]() })
  const made = await tables(provider)
  // Reversed, because tables that refer to others come last.
  for (const [, table] of [...made.matchAll(/CREATE TABLE (\S+)/g)].reverse()) {
    await client.$executeRawUnsafe(`DROP TABLE IF EXISTS ${table}${provider === 'postgresql' ? ' CASCADE' : ''}`)
  }
  for (const statement of made.split(/;\n/).filter(text => text.replace(/--.*/g, '').trim())) {
    await client.$executeRawUnsafe(statement)
  }
  return { client, made }
}

// Writes the files that `import` and TypeScript's modules load, beside those of `require`: FILE.mjs and FILE.d.mts. Writes all files of
// Drizzle's columns. node/build.sh and node/pack.mjs run it, and Git ignores what it writes. graphql.mjs and zod.mjs are sources, because
// they load a framework in another way than their files for `require`.
import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const at = name => fileURLToPath(new URL(name, import.meta.url))

/** Writes a module whose names are those that FILE.d.ts declares. */
function writeModule(name, hasDefault) {
  const declared = readFileSync(at(`${name}.d.ts`), 'utf8').matchAll(/^export (?:abstract )?(?:class|function|const) (\w+)/gm)
  const names = [...new Set([...declared].map(match => match[1]))]
  const end = hasDefault ? 'export default all\n' : ''
  writeFileSync(at(`${name}.mjs`), `import all from './${name}.js'\n\nexport const { ${names.join(', ')} } = all\n${end}`)
}

/** Writes declarations that have the types of FILE.d.ts, not copies of them, so that a class is one class. */
function writeTypes(name, hasDefault) {
  const all = `export * from './${name}.js'\n`
  writeFileSync(at(`${name}.d.mts`), hasDefault ? `import * as all from './${name}.js'\n\n${all}export default all\n` : all)
}

for (const name of ['index', 'objectid', 'uuid']) {
  writeModule(name, true)
  writeTypes(name, true)
}
for (const name of ['fastify', 'nestjs']) {
  writeModule(name, false)
  writeTypes(name, false)
}
for (const name of ['graphql', 'zod']) {
  writeTypes(name, false)
}

// Drizzle's columns differ in their names only. Those of PostgreSQL are the source of the others.
const DIALECTS = {
  mysql: { core: 'mysql-core', builder: 'MySqlCustomColumnBuilder', table: 'mysqlTable', databases: 'MySQL and MariaDB' },
  pg: { core: 'pg-core', builder: 'PgCustomColumnBuilder', table: 'pgTable', databases: 'PostgreSQL' },
  sqlite: { core: 'sqlite-core', builder: 'SQLiteCustomColumnBuilder', table: 'sqliteTable', databases: 'SQLite' },
}
const columns = readFileSync(at('drizzle/pg.d.ts'), 'utf8')
for (const [name, words] of Object.entries(DIALECTS)) {
  let types = columns
  for (const [word, text] of Object.entries(words)) {
    types = types.replaceAll(DIALECTS.pg[word], text)
  }
  // The form for modules is a copy, because drizzle-orm declares other types for them.
  if (name !== 'pg') {
    writeFileSync(at(`drizzle/${name}.d.ts`), types)
  }
  writeFileSync(at(`drizzle/${name}.d.mts`), types)
  writeFileSync(at(`drizzle/${name}.js`), `'use strict'

const { framework } = require('../adapters/framework.js')
const { snowflakeOf } = require('./column.js')

const { customType } = framework('frazil/drizzle/${name}', 'drizzle-orm', () => require('drizzle-orm/${words.core}'))

module.exports = { snowflake: snowflakeOf(customType, '${name}') }
`)
  writeFileSync(at(`drizzle/${name}.mjs`), `import { customType } from 'drizzle-orm/${words.core}'
import column from './column.js'

export const snowflake = column.snowflakeOf(customType, '${name}')
`)
}

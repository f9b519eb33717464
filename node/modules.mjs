// Writes the files that `import` and TypeScript's modules load, beside those of `require`: FILE.mjs and FILE.d.mts. node/build.sh and
// node/pack.mjs run it; Git ignores what it writes. graphql.mjs and zod.mjs are no such files, because they load another framework.
import { copyFileSync, readFileSync, writeFileSync } from 'node:fs'
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
for (const [name, core] of Object.entries({ mysql: 'mysql-core', pg: 'pg-core', sqlite: 'sqlite-core' })) {
  writeFileSync(at(`drizzle/${name}.mjs`), `import { customType } from 'drizzle-orm/${core}'
import column from './column.js'

export const snowflake = column.snowflakeOf(customType, '${name}')
`)
  // A copy, because drizzle-orm declares other types for modules.
  copyFileSync(at(`drizzle/${name}.d.ts`), at(`drizzle/${name}.d.mts`))
}

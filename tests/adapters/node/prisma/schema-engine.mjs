// Prisma's own migrations, with its engine in WebAssembly instead of the binary that its command would download.
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { bindMigrationAwareSqlAdapterFactory } from '@prisma/driver-adapter-utils'

const engine = await import('@prisma/schema-engine-wasm/schema_engine_bg')

let loaded
async function load() {
  const file = createRequire(import.meta.url).resolve('@prisma/schema-engine-wasm/schema_engine_bg').replace(/\.js$/, '.wasm')
  globalThis.PRISMA_WASM_PANIC_REGISTRY = { set_message(message) { throw new Error(message) } }
  const { instance } = await WebAssembly.instantiate(readFileSync(file), { './schema_engine_bg.js': engine })
  engine.__wbg_set_wasm(instance.exports)
  instance.exports.__wbindgen_start()
}

/** Returns the statements by which `prisma migrate` makes the tables of a schema. */
export async function migrationOf(schema, adapter) {
  await (loaded ??= load())
  const schemaEngine = await engine.SchemaEngine.new({ datamodels: [['schema.prisma', schema]] }, () => {}, bindMigrationAwareSqlAdapterFactory(adapter))
  const { stdout } = await schemaEngine.diff({
    from: { tag: 'empty' },
    to: { tag: 'schemaDatamodel', files: [{ path: 'schema.prisma', content: schema }] },
    script: true, shadowDatabaseUrl: null, exitCode: null, filters: { externalTables: [], externalEnums: [] },
  })
  return stdout
}

// Folders as after `npm install frazil FRAMEWORK...`.
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'

export const here = fileURLToPath(new URL('.', import.meta.url))
const source = join(here, '../../../node')

/**
 * Makes such a folder, which is removed at the end. Frameworks are links. frazil is a copy of its package, because from a link its adapters
 * would find other frameworks. `frameworks` maps a name to a folder of node_modules: `install({ zod: 'zod-oldest' })`.
 */
export function install(frameworks = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'frazil-adapters-'))
  process.on('exit', () => rmSync(folder, { recursive: true, force: true }))
  const modules = join(folder, 'node_modules')
  const { files } = JSON.parse(readFileSync(join(source, 'package.json'), 'utf8'))
  for (const file of ['package.json', ...files].filter(file => file !== 'frazil.node')) {
    cpSync(join(source, file), join(modules, 'frazil', file), { recursive: true })
  }
  symlinkSync(join(source, 'frazil.node'), join(modules, 'frazil/frazil.node'))
  for (const [name, at] of Object.entries(frameworks)) {
    mkdirSync(dirname(join(modules, name)), { recursive: true })
    symlinkSync(join(here, 'node_modules', at), join(modules, name))
  }
  const require = createRequire(join(folder, 'program.cjs'))
  return {
    folder,
    require,
    /** Returns the modules with these names, as a program would import them, in the same order. */
    async import(...names) {
      const file = join(folder, `import-${names.join('-').replace(/\W/g, '_')}.mjs`)
      writeFileSync(file, names.map((name, at) => `export * as module${at} from '${name}'\n`).join(''))
      const imported = await import(pathToFileURL(file))
      return names.map((_, at) => imported[`module${at}`])
    },
  }
}

/** Installs NAME and NAME-oldest, for tests of both: `[[version, installed], ...]`. */
export function bothVersions(name, others = {}) {
  return [name, `${name}-oldest`].map(at => {
    const { version } = JSON.parse(readFileSync(join(here, 'node_modules', at, 'package.json'), 'utf8'))
    return [`${name} ${version}`, install({ ...others, [name]: at })]
  })
}

// Runs a suite with a framework's current version, and again in another process with the oldest supported version. There, NAME means
// NAME-oldest of package.json, for the tests and for frazil.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { createRequire, registerHooks } from 'node:module'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'

const require = createRequire(import.meta.url)
const { dependencies } = JSON.parse(readFileSync(new URL('package.json', import.meta.url), 'utf8'))
const frazil = new URL('../../../node/', import.meta.url).href

/** The versions that this process tests: 'current' or 'oldest'. */
export const versions = process.env.FRAZIL_TEST_FRAMEWORKS ?? 'current'

function aged(specifier) {
  const [name] = /^(@[^/]+\/)?[^/]+/.exec(specifier)
  return versions === 'oldest' && `${name}-oldest` in dependencies ? `${name}-oldest${specifier.slice(name.length)}` : specifier
}

registerHooks({
  resolve(specifier, context, next) {
    const { parentURL } = context
    if (!parentURL || /^(\.|\/|file:|node:)/.test(specifier) || parentURL.includes('/node_modules/')) {
      return next(specifier, context)
    }
    const wanted = aged(specifier)
    // frazil is a link, so the frameworks that it imports are not beside it.
    if (parentURL.startsWith(frazil)) {
      return context.conditions.includes('require') ? next(require.resolve(wanted), context) : next(wanted, { ...context, parentURL: import.meta.url })
    }
    return next(wanted, context)
  },
})

/** Declares a run of a test file with the oldest versions, beside the file's own tests. `more` returns more environment variables. */
export function alsoWithTheOldest(file, more = () => ({})) {
  if (versions === 'current') {
    test(`with the oldest versions`, () => {
      const environment = { ...process.env, ...more(), FRAZIL_TEST_FRAMEWORKS: 'oldest', NODE_TEST_CONTEXT: undefined }
      const { status, stdout } = spawnSync(process.execPath, ['--test', fileURLToPath(file)], { env: environment, encoding: 'utf8' })
      assert.equal(status, 0, stdout)
    })
  }
}

// frazil in Bun and in Deno after `npm install frazil`, with modules and CommonJS.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { createRequire } from 'node:module'
import { cpSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { here, install } from './installed.mjs'

const { arch, platform } = process
const require = createRequire(import.meta.url)

/** Returns the path of a package's program, so that nothing is downloaded. */
const binary = (name, file) => join(dirname(require.resolve(`${name}/package.json`)), file)
const bun = binary(`@oven/bun-${platform}-${arch === 'arm64' ? 'aarch64' : arch}`, 'bin/bun')
const deno = binary(`@deno/${platform}-${arch}${platform === 'linux' ? '-glibc' : ''}`, 'deno')

const { folder } = install()
const addon = join(folder, 'node_modules/frazil/frazil.node')
const linked = join(here, '../../../node/frazil.node')
// The addon is copied, as npm would install it.
rmSync(addon)
cpSync(linked, addon)
cpSync(join(here, 'runtimes'), folder, { recursive: true })
mkdirSync(join(folder, 'home'))
writeFileSync(join(folder, 'package.json'), '{ "private": true }')

function run(program, ...options) {
  const env = { PATH: process.env.PATH, HOME: join(folder, 'home'), NO_COLOR: '1', FRAZIL_HOME: join(folder, 'store'), BUN_INSTALL_CACHE_DIR: join(folder, 'home') }
  return spawnSync(program, options, { cwd: folder, env, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] })
}

const RUNTIMES = { Node: [process.execPath], Bun: [bun], Deno: [deno, 'run', '--no-prompt', '--allow-ffi'] }

for (const [name, command] of Object.entries(RUNTIMES)) {
  for (const file of ['program.mjs', 'program.cjs']) {
    test(`${name} runs ${file}`, () => {
      // `require` reads files, so Deno needs the permission.
      const { status, stdout, stderr } = run(...command, ...(name === 'Deno' ? ['--allow-read'] : []), file)
      assert.equal(status, 0, stderr)
      assert.deepEqual(JSON.parse(stdout), { runtime: name, unique: 11_013, ascending: true, node: true, code: 'OUT_OF_RANGE', ours: true, schema: '7', closed: 'CLOSED', worker: true, waited: true, cancelled: 'TimeoutError' })
    })
  }
}

test('Deno runs a module with --allow-ffi alone', () => {
  const { status, stdout, stderr } = run(deno, 'run', '--no-prompt', '--allow-ffi', 'small.mjs')
  assert.equal(status, 0, stderr)
  assert.match(stdout, /^\d{18,19}\n$/)
})

test('Deno without the permission: the error names it, and the command', () => {
  const small = join(folder, 'small.mjs')
  const refused = (says, ...options) => {
    const { status, stderr } = run(deno, 'run', '--no-prompt', ...options, 'small.mjs')
    assert.notEqual(status, 0)
    assert.ok(stderr.includes(`deno run ${says} ${small}\n`), stderr)
    assert.match(stderr, /--allow-env.*--allow-read/)
    assert.doesNotMatch(stderr, /not installed|npm install/)
  }
  refused('--allow-ffi')
  refused('--allow-ffi', '--allow-read', '--allow-env')
  // The package is a link now, so its addon is elsewhere.
  rmSync(addon)
  symlinkSync(linked, addon)
  refused('--allow-ffi --allow-read')
  refused('--allow-ffi --allow-read', '--allow-ffi')
  assert.equal(run(deno, 'run', '--no-prompt', '--allow-ffi', '--allow-read', 'small.mjs').status, 0)
})

// What users install: the types, the two entries, the packed package.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { copyFileSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'
import * as frazil from 'frazil'
import { here, vectors } from './helper.mjs'

const run = promisify(execFile)
const require = createRequire(import.meta.url)
const root = join(here, '../../node')
const declarations = readFileSync(join(root, 'index.d.ts'), 'utf8')

/** The names that a class of index.d.ts declares, and whether they are static. */
function declaredMembers(name) {
  const body = new RegExp(`^export class ${name} [^]*?^}`, 'm').exec(declarations)[0]
  const members = [...body.matchAll(/^  (static |get |readonly |private )?(\[Symbol\.\w+\]|\w+)[(:]/gm)]
  return members.map(([, prefix = '', member]) => (prefix === 'static ' ? `static ${member}` : member))
}

/** The names that a class really has, with those that an object of it owns. */
function realMembers(type, object) {
  const symbols = new Map([[Symbol.iterator, '[Symbol.iterator]'], [Symbol.dispose, '[Symbol.dispose]']])
  const names = owner => Reflect.ownKeys(owner).map(key => symbols.get(key) ?? key)
  const statics = names(type).filter(name => !['length', 'name', 'prototype'].includes(name))
  return [...names(type.prototype), ...names(object), ...statics.map(name => `static ${name}`)]
}

test('both entries export the same names, which are those of the declarations', () => {
  const exported = [...declarations.matchAll(/^export (?:class|function|const) (\w+)/gm)].map(match => match[1])
  assert.deepEqual(Object.keys(frazil).sort(), exported.sort())
  assert.deepEqual(Object.keys(require('frazil')).sort(), exported)
  for (const name of exported) {
    assert.equal(frazil[name], require('frazil')[name])
  }
})

test('the declarations and the classes have the same members', () => {
  const ids = new frazil.Snowflake('twitter datacenter=8 worker=1')
  const real = realMembers(frazil.Snowflake, ids)
  // Before 18.18 Node has no Symbol.dispose.
  const declared = declaredMembers('Snowflake').filter(name => Symbol.dispose || name !== '[Symbol.dispose]')
  assert.deepEqual(declared.sort(), real.sort())
  assert.deepEqual(declaredMembers('Layout').sort(), realMembers(frazil.Layout, ids.layout).sort())
  const error = (() => { try { ids.batch(-1) } catch (error) { return error } })()
  const inherited = ['message', 'name', 'stack']
  const own = realMembers(frazil.FrazilError, error).filter(name => !inherited.includes(name))
  assert.deepEqual(declaredMembers('FrazilError').sort(), own.sort())
  assert.deepEqual(Object.keys(ids), [])
})

test('the declared codes and parts are the real ones', () => {
  const codes = [...declarations.matchAll(/^  \| '(\w+)'$/gm)].map(match => match[1])
  assert.deepEqual(codes, vectors('errors').errors.map(row => row.name))
  const body = /^export interface Parts [^]*?^}/m.exec(declarations)[0]
  const declared = [...body.matchAll(/^  readonly (\w+):/gm)].map(match => match[1])
  const parts = Object.keys(new frazil.Layout('twitter').decode(0))
  assert.deepEqual(parts.filter(name => !['datacenter', 'worker'].includes(name)).sort(), declared.sort())
})

test('the types hold in strict TypeScript, from ESM and CommonJS', async () => {
  const tsc = join(here, 'node_modules/typescript/bin/tsc')
  await run(process.execPath, [tsc, '--project', join(here, 'types')]).catch(error => assert.fail(error.stdout))
})

test('the packed package works in an empty folder', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'frazil-pack-'))
  const npm = (cwd, ...given) => run('npm', [...given, '--loglevel=error'], { cwd, shell: process.platform === 'win32' })
  try {
    await npm(root, 'pack', '--pack-destination', folder)
    const [tarball, ...rest] = readdirSync(folder)
    assert.deepEqual(rest, [])
    writeFileSync(join(folder, 'package.json'), '{ "private": true }')
    await npm(folder, 'install', '--offline', '--no-audit', '--no-fund', `./${tarball}`)
    const installed = readdirSync(join(folder, 'node_modules/frazil')).sort()
    const expected = [...JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')).files, 'README.md', 'package.json']
    assert.deepEqual(installed, expected.sort())
    for (const smoke of ['smoke.cjs', 'smoke.mjs']) {
      copyFileSync(join(here, 'pack', smoke), join(folder, smoke))
      const { stdout } = await run(process.execPath, [smoke], { cwd: folder })
      assert.equal(stdout.trim(), Object.keys(frazil).sort().join())
    }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
})

test('the example of the README runs', async () => {
  const readme = readFileSync(join(root, 'README.md'), 'utf8')
  const [, example] = /```js\n([^]*?)```/.exec(readme)
  const check = `require('node:assert').ok(worker === 7 && many.length === 1000 && buffer[999] > 0n && time <= new Date())`
  await run(process.execPath, ['-e', example + check], { cwd: here })
})

test('the version is one', () => {
  const { version } = require('frazil/package.json')
  assert.equal(frazil.version, version)
  const [, workspace] = /^version = "(.*)"$/m.exec(readFileSync(join(root, '../Cargo.toml'), 'utf8'))
  assert.equal(version, workspace)
})

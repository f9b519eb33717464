// The parts of the npm package: the types, the two entries, the command. tests/package installs the package.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { inspect, promisify } from 'node:util'
import * as frazil from 'frazil'
import { here, vectors } from './helper.mjs'

const run = promisify(execFile)
const require = createRequire(import.meta.url)
const root = join(here, '../../node')
const declarations = readFileSync(join(root, 'index.d.ts'), 'utf8')

/** Returns the names that a class of index.d.ts declares, with `static` before static ones. */
function declaredMembers(name) {
  const body = new RegExp(`^export (?:abstract )?class ${name}[ <][^]*?^}`, 'm').exec(declarations)[0]
  const members = [...body.matchAll(/^  (static |get |readonly |private |protected )?(\[Symbol\.\w+\]|\w+)[?(:<]/gm)]
  return [...new Set(members.map(([, prefix = '', member]) => (prefix === 'static ' ? `static ${member}` : member)))]
}

/** Returns the names of a class and of an object of it, without the symbols that only other programs look for. */
function realMembers(type, object) {
  const hidden = [inspect.custom, Symbol.hasInstance, Symbol.for('frazil.FrazilError')]
  const symbols = new Map(['iterator', 'dispose', 'asyncDispose'].map(name => [Symbol[name], `[Symbol.${name}]`]))
  const names = owner => Reflect.ownKeys(owner).filter(key => !hidden.includes(key)).map(key => symbols.get(key) ?? key)
  const statics = names(type).filter(name => !['length', 'name', 'prototype'].includes(name))
  return [...new Set([...names(type.prototype), ...names(object), ...statics.map(name => `static ${name}`)])]
}

test('both entries export the same names, which are those of the declarations', () => {
  const exported = [...declarations.matchAll(/^export (?:abstract )?(?:class|function|const) (\w+)/gm)].map(match => match[1])
  assert.deepEqual(Object.keys(frazil).filter(name => name !== 'default').sort(), exported.sort())
  assert.deepEqual(Object.keys(require('frazil')).sort(), exported)
  for (const name of exported) {
    assert.equal(frazil[name], require('frazil')[name])
  }
  assert.equal(frazil.default, require('frazil'), 'import frazil from ...')
})

test('the declarations and the classes have the same members', () => {
  const ids = new frazil.Snowflake('twitter datacenter=8 worker=1')
  const real = realMembers(frazil.Snowflake, ids)
  // Node before 18.18 does not have these symbols.
  const declared = declaredMembers('Snowflake').filter(name => Symbol.dispose || !/ispose]$/.test(name))
  assert.deepEqual(declared.sort(), real.sort())
  assert.deepEqual(declaredMembers('Layout').sort(), realMembers(frazil.Layout, ids.layout).sort())
  const error = new frazil.FrazilError('WOULD_BLOCK', 'busy', { retryAfterMs: 1, written: 0 })
  const inherited = ['message', 'name', 'stack']
  const own = realMembers(frazil.FrazilError, error).filter(name => !inherited.includes(name))
  assert.deepEqual(declaredMembers('FrazilError').sort(), own.sort())
  assert.deepEqual(Object.keys(ids), [])
})

test('the declarations and the classes of numbers have the same members', () => {
  const stores = ['redis://127.0.0.1:1/0', 'redis://127.0.0.1:2/0']
  const own = new frazil.Tickets('photos', { store: stores })
  for (const name of ['Segment', 'Tickets', 'Buffered']) {
    assert.equal(Object.getPrototypeOf(frazil[name]), frazil.Numbers)
    const declared = ['Numbers', name].flatMap(declaredMembers).filter(name => Symbol.dispose || !/ispose]$/.test(name))
    const real = [frazil.Numbers, frazil[name]].flatMap(type => realMembers(type, own))
    assert.deepEqual([...new Set(declared)].sort(), [...new Set(real)].sort())
  }
})

test('the declared lease is the real one', async () => {
  const body = /^export interface Lease [^]*?^}/m.exec(declarations)[0]
  const declared = [...body.matchAll(/^  readonly (\w+):/gm)].map(match => match[1])
  const ids = await frazil.Snowflake.open('standard store=memory namespace=package')
  assert.deepEqual(Object.keys(ids.lease), declared)
})

test('the declared codes and parts are the real ones', () => {
  const codes = [...declarations.matchAll(/^  \| '(\w+)'$/gm)].map(match => match[1])
  assert.deepEqual(codes, vectors('errors').errors.map(row => row.name))
  const body = /^export type Parts<[^]*?^}/m.exec(declarations)[0]
  const declared = [...body.matchAll(/^  readonly (\w+):/gm)].map(match => match[1])
  const parts = Object.getOwnPropertyNames(new frazil.Layout('twitter').decode(0))
  assert.deepEqual(parts.filter(name => !['datacenter', 'worker'].includes(name)).sort(), declared.sort())
})

test('the declared presets have the fields of the real ones', () => {
  const body = /^export interface PresetFields [^]*?^}/m.exec(declarations)[0]
  const declared = [...body.matchAll(/^  (\w+): (.*)$/gm)].map(([, name, fields]) => [name, fields.split(' | ').map(field => field.slice(1, -1))])
  const presets = vectors('layouts').valid.map(({ text }) => text).filter(text => /^\w+$/.test(text))
  assert.deepEqual(declared.map(([name]) => name).sort(), presets.sort())
  for (const [name, fields] of declared) {
    assert.deepEqual(fields, Object.keys(new frazil.Layout(name).fieldBits), name)
  }
})

test('the types hold in strict TypeScript, from ESM and CommonJS', async () => {
  const tsc = join(here, 'node_modules/typescript/bin/tsc')
  const [, example] = /```ts\n([^]*?)```/.exec(readFileSync(join(root, 'README.md'), 'utf8'))
  const copy = join(here, 'types/readme.mts')
  writeFileSync(copy, example)
  try {
    await run(process.execPath, [tsc, '--project', join(here, 'types')]).catch(error => assert.fail(error.stdout))
  } finally {
    rmSync(copy)
  }
})

test('the command lists node numbers, and reports wrong arguments', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'frazil-command-'))
  const command = join(root, require('frazil/package.json').bin.frazil)
  const frazil = (...given) => run(process.execPath, [command, ...given], { cwd: folder })
  try {
    const store = `file:${folder}/store`
    const hold = `require(${JSON.stringify(root)}).Snowflake.open('game', { server: 4711, store: '${store}' }).then(ids => ids.close())`
    await run(process.execPath, ['-e', hold], { cwd: folder })
    const { stdout, stderr } = await frazil('nodes', store)
    assert.equal(stderr, '')
    assert.match(stdout, /\n4711  server=4711  (free|held) .*\n\n[^]* of 1048576 node numbers held, .* 1048575 never used\n$/)
    const { slots } = JSON.parse((await frazil('nodes', '--json', store)).stdout)
    assert.deepEqual(slots.map(slot => slot.node), [4711])
    await assert.rejects(frazil('nodes', 'nowhere'), error => error.code === 1 && error.stderr.startsWith('error[SPEC]: '))
    await assert.rejects(frazil('nodes'), error => error.code === 2 && error.stderr.startsWith('error: '))
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
})

test('the example of the README runs', async () => {
  const readme = readFileSync(join(root, 'README.md'), 'utf8')
  const [, example] = /```js\n([^]*?)```/.exec(readme)
  const check = `process.exit(node < 1024 && many.length === 1000 && buffer[999] > 0n && time <= new Date() ? 0 : 1)`
  const home = mkdtempSync(join(tmpdir(), 'frazil-readme-'))
  try {
    const env = { ...process.env, FRAZIL_HOME: home }
    await run(process.execPath, ['--input-type=module', '-e', example + check], { cwd: here, env })
  } finally {
    rmSync(home, { recursive: true, force: true })
  }
})

test('the version is one', () => {
  const { version } = require('frazil/package.json')
  assert.equal(frazil.version, version)
  const [, workspace] = /^version = "(.*)"$/m.exec(readFileSync(join(root, '../Cargo.toml'), 'utf8'))
  assert.equal(version, workspace)
})

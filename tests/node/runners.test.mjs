// Real test runners with an installed package. Each runner loads the package again for each file, in another realm.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { promisify } from 'node:util'
import { here } from './helper.mjs'

const FILES = 25
const TESTS = 6
const MEGABYTE = 1 << 20

const body = readFileSync(join(here, 'runners/body.js'), 'utf8')
const folders = []
after(() => folders.forEach(folder => rmSync(folder, { recursive: true, force: true })))

/** Makes a project with the package installed, and FILES test files. */
function project(ending, head) {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'frazil-runners-')))
  folders.push(folder)
  const installed = join(folder, 'node_modules/frazil')
  mkdirSync(installed, { recursive: true })
  const source = process.env.FRAZIL_TEST_PACKAGE ?? join(here, '../../node')
  for (const name of ['index.js', 'index.mjs', 'native.js', 'package.json']) {
    copyFileSync(join(source, name), join(installed, name))
  }
  symlinkSync(join(source, 'frazil.node'), join(installed, 'frazil.node'))
  writeFileSync(join(folder, 'package.json'), '{}')
  for (let nth = 0; nth < FILES; nth++) {
    writeFileSync(join(folder, `ids${nth}.test.${ending}`), `${head}\n${body}`)
  }
  return folder
}

/** Runs a test runner in a project's folder. Returns its reporter's lines, one for each file. */
async function runs(folder, ...command) {
  const { NODE_OPTIONS, FRAZIL, ...env } = process.env
  const options = { cwd: folder, env: { ...env, CI: 'true' }, maxBuffer: 1 << 26 }
  const { stdout } = await promisify(execFile)(process.execPath, ['--expose-gc', ...command], options).catch(error => error)
  const files = stdout.split('\n').filter(line => line.startsWith('{"heap"')).map(line => JSON.parse(line))
  assert.equal(files.length, FILES, stdout)
  for (const { passed, failure } of files) {
    assert.equal(failure, null)
    assert.equal(passed, TESTS)
  }
  return files.map(({ heap }) => heap / MEGABYTE)
}

/** Asserts that the heap does not grow from file to file. A leaked context would leave at least 2 MB. */
function assertFlat(heaps) {
  const lowest = part => Math.min(...part)
  const growth = lowest(heaps.slice(-8)) - lowest(heaps.slice(1, 9))
  assert.ok(growth < 0.5 * FILES, `${growth} MB more: ${heaps.map(Math.round)}`)
}

test('Jest: the heap is flat over many files, and everything is of the file\'s own realm', async () => {
  const folder = project('cjs', `const frazil = require('frazil')
const reset = () => { jest.resetModules(); return require('frazil') }
const spyOn = jest.spyOn`)
  const config = { testEnvironment: 'node', testMatch: ['**/*.test.cjs'], reporters: [join(here, 'runners/jest-reporter.cjs')] }
  const jest = join(here, 'node_modules/jest/bin/jest.js')
  assertFlat(await runs(folder, jest, '--runInBand', '--no-cache', '--logHeapUsage', '--config', JSON.stringify(config)))
})

for (const pool of ['vmThreads', 'threads']) {
  test(`Vitest, in the pool ${pool}`, async () => {
    const folder = project('mjs', `import * as frazil from 'frazil'
import { expect, test, vi } from 'vitest'
const reset = () => { vi.resetModules(); return import('frazil') }
const spyOn = vi.spyOn`)
    // The test files import this package.
    symlinkSync(join(here, 'node_modules/vitest'), join(folder, 'node_modules/vitest'))
    const vitest = join(here, 'node_modules/vitest/vitest.mjs')
    const heaps = await runs(folder, vitest, 'run', `--pool=${pool}`, '--maxWorkers=1', '--logHeapUsage',
      `--reporter=${join(here, 'runners/vitest-reporter.mjs')}`)
    assertFlat(heaps)
  })
}

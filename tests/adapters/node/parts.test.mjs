import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import Database from 'better-sqlite3'
import { exactIntegers } from 'frazil/better-sqlite3'
import { jsonReplacer, parseJson } from 'frazil/json'

const ID = '1801439850948198401'
const SAFE = Number.MAX_SAFE_INTEGER

test('parseJson keeps integers beyond 2^53 - 1 as text, and all else as JSON.parse has it', () => {
  for (const [text, expected] of [
    [`{"id":${ID},"n":7}`, { id: ID, n: 7 }],
    [`[${ID},-${ID}, ${SAFE},${SAFE + 1},-${SAFE}]`, [ID, `-${ID}`, SAFE, String(SAFE + 1), -SAFE]],
    [ID, ID],
    [`"${ID}"`, ID],
    [`{"${ID}":"a \\"${ID}\\" \\\\","b":${ID}}`, { [ID]: `a "${ID}" \\`, b: ID }],
    [`[1.${ID},${ID}.5,1e300,${ID}e2,-0.${ID}]`, JSON.parse(`[1.${ID},${ID}.5,1e300,${ID}e2,-0.${ID}]`)],
    [`{"a":{"b":[null,true,${ID}${ID}]}}`, { a: { b: [null, true, `${ID}${ID}`] } }],
    ['{"__proto__":1}', JSON.parse('{"__proto__":1}')],
  ]) {
    assert.deepEqual(parseJson(text), expected, text)
  }
  for (const text of [`{"a":${ID}`, `[0${ID}]`, `{a:${ID}}`, '', `[${ID}x]`, `"${ID}`, `{${ID} :1}`, `[-0${ID}]`, `[+${ID}]`]) {
    assert.throws(() => parseJson(text), SyntaxError, text)
  }
})

test('parseJson takes linear time, also for text that is not JSON', () => {
  assert.throws(() => parseJson(`[${ID},"${'\\"'.repeat(1_000_000)}`), SyntaxError)
})

test('jsonReplacer writes BigInts as text', () => {
  const rows = [{ id: BigInt(ID), at: new Date(0), name: 'a', list: [1n, { n: 2 }] }]
  assert.equal(JSON.stringify(rows, jsonReplacer), `[{"id":"${ID}","at":"1970-01-01T00:00:00.000Z","name":"a","list":["1",{"n":2}]}]`)
})

test('exactIntegers: large ones are text, all others as they were, in every way to read', () => {
  const database = exactIntegers(new Database(':memory:'))
  const made = database.prepare('create table t (id integer primary key, n integer, x real, b blob, s text)').run()
  assert.deepEqual(made, { changes: 0, lastInsertRowid: 0 })
  const insert = database.prepare('insert into t values (?, ?, ?, ?, ?)')
  const blob = Buffer.from([1, 2])
  assert.deepEqual(insert.run(BigInt(ID), 7, 1.5, blob, 'a'), { changes: 1, lastInsertRowid: ID })
  insert.run(SAFE, null, 2 ** 70, null, null)
  const rows = [{ id: SAFE, n: null, x: 2 ** 70, b: null, s: null }, { id: ID, n: 7, x: 1.5, b: blob, s: 'a' }]
  const all = 'select * from t order by id'
  assert.deepEqual(database.prepare(all).all(), rows)
  assert.deepEqual([...database.prepare(all).iterate()], rows)
  assert.deepEqual(database.prepare('select * from t where id = ?').get(ID), rows[1])
  assert.equal(database.prepare('select * from t where id = 5').get(), undefined)
  assert.deepEqual(database.prepare(all).raw().all(), rows.map(Object.values))
  assert.deepEqual(database.prepare('select id from t order by id').pluck().all(), [SAFE, ID])
  assert.equal(database.prepare('select id from t order by id').pluck().get(), SAFE)
  assert.deepEqual(database.prepare('select b from t where id > 5 order by id').pluck().all(), [null, blob])
  assert.deepEqual(database.prepare(all).expand().all()[1], { t: rows[1] })
  assert.equal(database.transaction(() => insert.run(5, 5, 5, null, null).changes)(), 1)
  database.close()
})

test('without its framework a part names the package to install', () => {
  const folder = mkdtempSync(join(tmpdir(), 'frazil-alone-'))
  mkdirSync(join(folder, 'node_modules'))
  symlinkSync(fileURLToPath(new URL('../../../node', import.meta.url)), join(folder, 'node_modules', 'frazil'))
  const stderrOf = args => spawnSync(process.execPath, args, { cwd: folder, encoding: 'utf8' }).stderr
  for (const [part, name] of [['typeorm', 'typeorm'], ...['pg', 'mysql', 'sqlite'].map(dialect => [`drizzle/${dialect}`, 'drizzle-orm'])]) {
    assert.match(stderrOf(['--eval', `require('frazil/${part}')`]), new RegExp(`Error: frazil/${part} needs ${name}: npm install ${name}\\n`))
    assert.match(stderrOf(['--input-type=module', '--eval', `import 'frazil/${part}'`]), new RegExp(`npm install ${name}|Cannot find package '${name}'`))
  }
  // These adapters import no framework.
  assert.equal(stderrOf(['--eval', ['prisma', 'mongoose', 'json', 'better-sqlite3'].map(part => `require('frazil/${part}')`).join(';')]), '')
  rmSync(folder, { recursive: true })
})

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { FrazilError, Snowflake } from 'frazil'
import { exactIntegers } from 'frazil/better-sqlite3'
import { parseJson } from 'frazil/json'
import { serverUrl } from './servers.mjs'
import { throughEveryValidator } from './validators.mjs'
import { alsoWithTheOldest } from './versions.mjs'

const here = fileURLToPath(new URL('.', import.meta.url))
const { asc, between, eq, getTableName, gt, inArray, max, sql } = await import('drizzle-orm')
const { ids } = await import('./drizzle/ids.mjs')

const DIALECTS = ['pg', 'mysql', 'sqlite']
// Only one drizzle-kit is installed, so the migrations for the current versions also serve the tests of the oldest ones.
const made = JSON.parse(process.env.FRAZIL_TEST_MADE ?? '{}')
alsoWithTheOldest(import.meta.url, () => {
  DIALECTS.forEach(migrationsOf)
  return { FRAZIL_TEST_MADE: JSON.stringify(made) }
})

// Three IDs that round to the same double.
const NEIGHBOURS = ['1801439850948198401', '1801439850948198402', '1801439850948198403']
const LARGEST = '9223372036854775807'

function bigNumbers(bigNumberStrings) {
  return { supportBigNumbers: true, bigNumberStrings }
}

async function nodePostgres(schema, options) {
  const [{ drizzle }, { default: pg }] = await Promise.all([import('drizzle-orm/node-postgres'), import('pg')])
  const pool = new pg.Pool({ connectionString: serverUrl('POSTGRESQL'), ...options })
  return { db: drizzle(pool, { schema }), run: text => pool.query(text), close: () => pool.end() }
}

async function postgresJs(schema, options) {
  const [{ drizzle }, { default: postgres }] = await Promise.all([import('drizzle-orm/postgres-js'), import('postgres')])
  const client = postgres(serverUrl('POSTGRESQL'), { onnotice() {}, ...options })
  return { db: drizzle(client, { schema }), run: text => client.unsafe(text), close: () => client.end() }
}

async function mysql2(schema, options) {
  const [{ drizzle }, { default: mysql }] = await Promise.all([import('drizzle-orm/mysql2'), import('mysql2/promise')])
  const pool = mysql.createPool({ uri: serverUrl('MARIADB'), ...options })
  // MariaDB has no LATERAL, and neither has PlanetScale.
  return { db: drizzle(pool, { schema, mode: 'planetscale' }), run: text => pool.query(text), close: () => pool.end() }
}

async function betterSqlite3(schema, { prepare = database => database } = {}) {
  const [{ drizzle }, { default: Database }] = await Promise.all([import('drizzle-orm/better-sqlite3'), import('better-sqlite3')])
  const client = prepare(new Database(':memory:'))
  return { db: drizzle(client, { schema }), run: text => client.exec(text), close: () => client.close() }
}

async function libsql(schema) {
  const [{ drizzle }, { createClient }] = await Promise.all([import('drizzle-orm/libsql'), import('@libsql/client')])
  const client = createClient({ url: ':memory:' })
  return { db: drizzle(client, { schema }), run: text => client.execute(text), close: () => client.close() }
}

const DRIVERS = [
  { name: 'node-postgres', dialect: 'pg', open: nodePostgres },
  { name: 'postgres.js', dialect: 'pg', open: postgresJs },
  { name: 'mysql2, all 64-bit integers as text', dialect: 'mysql', open: schema => mysql2(schema, bigNumbers(true)) },
  { name: 'mysql2, the large ones as text', dialect: 'mysql', open: schema => mysql2(schema, bigNumbers(false)) },
  { name: 'better-sqlite3', dialect: 'sqlite', open: schema => betterSqlite3(schema) },
  { name: 'libsql', dialect: 'sqlite', open: libsql },
]

/** Runs drizzle-kit twice for a schema, as a user would. Returns the migrations, and the second run's output. */
function migrations(dialect) {
  const folder = mkdtempSync(join(tmpdir(), 'frazil-drizzle-'))
  const schema = `./drizzle/${dialect}.mjs`
  const options = ['--dialect', dialect === 'pg' ? 'postgresql' : dialect, '--schema', schema, '--out', relative(here, folder)]
  const env = { ...process.env, NODE_OPTIONS: '--import ./versions.mjs', FRAZIL_TEST_FRAMEWORKS: 'current' }
  const generate = () => execFileSync(join('node_modules', '.bin', 'drizzle-kit'), ['generate', ...options], { cwd: here, env, encoding: 'utf8' })
  try {
    generate()
    const again = generate()
    const texts = readdirSync(folder).filter(name => name.endsWith('.sql')).map(name => readFileSync(join(folder, name), 'utf8'))
    return { again, texts }
  } finally {
    rmSync(folder, { recursive: true })
  }
}

function migrationsOf(dialect) {
  made[dialect] ??= migrations(dialect)
  return made[dialect]
}

/** Makes the empty tables of a schema. */
async function makeTables(run, dialect) {
  for (const table of ['drizzle_posts', 'drizzle_events', 'drizzle_users']) {
    await run(`drop table if exists ${table}`)
  }
  const { texts: [text] } = migrationsOf(dialect)
  for (const statement of text.split('--> statement-breakpoint')) {
    await run(statement)
  }
}

/** Returns a function that asserts that an error is frazil's, or Drizzle's error with frazil's as its cause. */
function refused(code, ...says) {
  return error => {
    const ours = error instanceof FrazilError ? error : error.cause
    assert.ok(ours instanceof FrazilError, error.stack)
    assert.equal(ours.code, code)
    says.forEach(part => assert.ok(ours.message.includes(part), ours.message))
    return true
  }
}

/** Returns a predicate: whether an error, or its cause, contains the text. */
function saying(text) {
  return ({ message, cause }) => `${message} ${cause?.message}`.includes(text)
}

for (const dialect of DIALECTS) {
  test(`drizzle-kit, ${dialect}: a bigint without a default; the second time there is nothing to change`, () => {
    const { again, texts: [text, ...more] } = migrationsOf(dialect)
    assert.match(text, /["`]id["`] bigint (PRIMARY KEY )?NOT NULL/)
    assert.doesNotMatch(text, /default|auto/i)
    assert.deepEqual(more, [])
    assert.match(again, /No schema changes/)
  })
}

for (const { name, dialect, open } of DRIVERS) {
  describe(name, () => {
    let db, run, close, users, posts, events
    const names = rows => rows.map(row => row.name)

    before(async () => {
      const schema = await import(`./drizzle/${dialect}.mjs`)
      ;({ users, posts, events } = schema)
      ;({ db, run, close } = await open(schema))
      await makeTables(run, dialect)
      await db.insert(users).values(NEIGHBOURS.map((id, at) => ({ id, name: `neighbour ${at}`, age: at })))
    })
    after(() => close())

    test('a row without an ID gets one, and the ID that is read is the one that was made', async () => {
      const first = ids.next()
      const rows = Array.from({ length: 200 }, (_, age) => ({ name: 'made', age }))
      const insert = db.insert(users).values(rows)
      const given = dialect === 'mysql' ? await insert.$returningId() : await insert.returning({ id: users.id })
      const last = ids.next()
      const read = await db.select({ id: users.id, age: users.age }).from(users).where(eq(users.name, 'made')).orderBy(asc(users.id))
      assert.deepEqual(given, read.map(({ id }) => ({ id })))
      assert.deepEqual(read.map(({ age }) => age), rows.map(({ age }) => age))
      assert.ok(read.every(({ id }) => BigInt(first) < BigInt(id) && BigInt(id) < BigInt(last)))
      assert.ok(read.some(({ id }) => BigInt(Number(id)) !== BigInt(id)), 'a double would hold them all')
    })

    test('a given ID is kept, undefined gets a new one, and the database refuses null', async () => {
      await db.insert(users).values([{ id: LARGEST, name: 'given' }, { id: '7', name: 'given' }])
      assert.deepEqual(await db.select({ id: users.id }).from(users).where(eq(users.name, 'given')).orderBy(asc(users.id)), [{ id: '7' }, { id: LARGEST }])
      await db.insert(users).values({ id: undefined, name: 'undefined' })
      assert.equal((await db.select().from(users).where(eq(users.name, 'undefined'))).length, 1)
      await assert.rejects(async () => db.insert(users).values({ id: null, name: 'null' }))
    })

    test('conditions distinguish IDs that round to the same double', async () => {
      const [, middle, high] = NEIGHBOURS
      assert.ok(NEIGHBOURS.every(id => Number(id) === Number(middle)))
      for (const id of [middle, BigInt(middle)]) {
        assert.deepEqual(names(await db.select().from(users).where(eq(users.id, id))), ['neighbour 1'])
        assert.deepEqual(names(await db.select().from(users).where(inArray(users.id, [id, high])).orderBy(users.id)), ['neighbour 1', 'neighbour 2'])
        assert.deepEqual(names(await db.select().from(users).where(between(users.id, id, high)).orderBy(users.id)), ['neighbour 1', 'neighbour 2'])
      }
      const prepared = db.select().from(users).where(eq(users.id, sql.placeholder('id'))).prepare('one_user')
      assert.deepEqual(await prepared.execute({ id: middle }), [{ id: middle, name: 'neighbour 1', age: 1 }])
      assert.deepEqual(await db.query.users.findFirst({ where: (user, { eq }) => eq(user.id, middle) }), { id: middle, name: 'neighbour 1', age: 1 })
    })

    test('updates and deletes reach one row', async () => {
      const wanted = ids.next()
      await db.insert(users).values([{ id: wanted, name: 'one' }, { id: ids.next(), name: 'one' }])
      await db.update(users).set({ age: -1 }).where(eq(users.id, wanted))
      assert.deepEqual((await db.select().from(users).where(eq(users.age, -1))).map(({ id }) => id), [wanted])
      await db.delete(users).where(eq(users.id, wanted))
      assert.equal((await db.select().from(users).where(eq(users.name, 'one'))).length, 1)
    })

    test('references have no default, and joins are exact', async () => {
      const [, middle] = NEIGHBOURS
      await db.insert(posts).values([{ authorId: middle, title: 'joined' }])
      await assert.rejects(async () => db.insert(posts).values({ title: 'nobody' }))
      const [{ [getTableName(users)]: author, [getTableName(posts)]: post }] = await db.select().from(posts).innerJoin(users, eq(posts.authorId, users.id))
      assert.deepEqual([author.name, post.authorId], ['neighbour 1', middle])
      const [alone] = await db.select().from(users).leftJoin(posts, eq(posts.authorId, users.id)).where(eq(users.id, NEIGHBOURS[0]))
      assert.equal(alone[getTableName(posts)], null)
    })

    test('an expression of the ID is exact; where SQLite\'s driver would round, it is refused', async () => {
      const newest = async () => db.select({ id: max(users.id) }).from(users).where(inArray(users.id, NEIGHBOURS))
      if (dialect === 'sqlite') {
        // libsql itself refuses to round.
        await assert.rejects(newest, name === 'libsql' ? saying('cannot be safely represented') : refused('ID_INVALID', 'cast(... as text)'))
      } else {
        assert.deepEqual(await newest(), [{ id: NEIGHBOURS[2] }])
      }
    })

    test('what `with` loads is exact, or refused with the fix', async () => {
      const [author] = NEIGHBOURS
      const [id] = [String(BigInt(ids.next()) | 1n)]
      await db.insert(posts).values({ id, authorId: author, title: 'related' })
      const where = (user, { eq }) => eq(user.id, author)
      const load = () => db.query.users.findFirst({ where, with: { posts: true } })
      if (dialect === 'mysql') {
        assert.deepEqual((await load()).posts, [{ id, authorId: author, title: 'related' }])
      } else {
        await assert.rejects(load, refused('ID_INVALID', '`with`', dialect === 'pg' ? 'parseJson of frazil/json' : '`extras`'))
      }
      // The guide's cast.
      const text = dialect === 'mysql' ? sql`char(19)` : sql`text`
      const extras = post => ({ id: sql`cast(${post.id} as ${text})`.as('id') })
      const exact = await db.query.users.findFirst({ where, with: { posts: { columns: { title: true }, extras } } })
      assert.deepEqual(exact, { id: author, name: 'neighbour 0', age: 0, posts: [{ title: 'related', id }] })
    })

    test('upserts', async () => {
      const id = ids.next()
      for (const age of [1, 2]) {
        const insert = db.insert(users).values({ id, name: 'upserted', age })
        await (dialect === 'mysql' ? insert.onDuplicateKeyUpdate({ set: { age } }) : insert.onConflictDoUpdate({ target: users.id, set: { age } }))
      }
      assert.deepEqual(await db.select().from(users).where(eq(users.name, 'upserted')), [{ id, name: 'upserted', age: 2 }])
    })

    test('a builder that is awaited again makes another ID; a prepared insert needs a placeholder for it', async () => {
      const insert = db.insert(users).values({ name: 'again' })
      await insert
      await insert
      assert.equal((await db.select().from(users).where(eq(users.name, 'again'))).length, 2)

      const repeating = db.insert(users).values({ name: 'repeating' }).prepare('repeating')
      await repeating.execute()
      await assert.rejects(async () => repeating.execute())
      const prepared = db.insert(users).values({ id: sql.placeholder('id'), name: 'prepared' }).prepare('prepared')
      await prepared.execute({ id: ids.next() })
      await prepared.execute({ id: ids.next() })
      assert.equal((await db.select().from(users).where(eq(users.name, 'prepared'))).length, 2)
    })

    test('transactions', async () => {
      const insert = (tx, name) => tx.insert(users).values({ name })
      if (name === 'better-sqlite3') {
        // This driver's transactions are synchronous.
        assert.throws(() => db.transaction(tx => {
          insert(tx, 'rolled back').run()
          tx.rollback()
        }))
        db.transaction(tx => insert(tx, 'committed').run())
      } else {
        await assert.rejects(db.transaction(async tx => {
          await insert(tx, 'rolled back')
          tx.rollback()
        }))
        await db.transaction(tx => insert(tx, 'committed'))
      }
      assert.deepEqual(names(await db.select().from(users).where(inArray(users.name, ['rolled back', 'committed']))), ['committed'])
    })

    test('BigInts on request', async () => {
      const after = BigInt(NEIGHBOURS[1])
      await db.insert(events).values([{ after }, {}])
      const read = await db.select().from(events).orderBy(asc(events.id))
      assert.deepEqual(read.map(event => event.after), [after, null])
      assert.ok(read.every(({ id }) => typeof id === 'bigint'))
      assert.deepEqual(await db.select().from(events).where(gt(events.id, read[0].id)), [read[1]])
    })

    test('values that are not IDs are refused, in rows and in conditions', async () => {
      const rounded = Number(NEIGHBOURS[0])
      for (const [id, code, ...says] of [[rounded, 'ID_INVALID', 'rounded', 'BigInt'], ['12a', 'ID_INVALID', "'a'"], [-1n, 'ID_INVALID', 'negative'], [{}, 'WRONG_TYPE']]) {
        await assert.rejects(async () => db.select().from(users).where(eq(users.id, id)), refused(code, ...says))
        await assert.rejects(async () => db.insert(users).values({ id, name: 'bad' }), refused(code))
      }
    })

    // This test is the last one, because it empties the tables.
    test('IDs pass every validator, both ways, as text and as BigInts', async () => {
      await db.delete(posts)
      await db.delete(users)
      await db.delete(events)
      await throughEveryValidator({
        write: id => db.insert(users).values({ id, name: 'passed' }),
        read: async id => (await db.select().from(users).where(eq(users.id, id)))[0],
      })
      await throughEveryValidator({
        write: id => db.insert(events).values({ id: BigInt(id) }),
        read: async id => (await db.select().from(events).where(eq(events.id, id)))[0],
      })
    })
  })
}

describe('a driver that rounds is noticed', () => {
  async function readWith(dialect, open, options, query = db => db.query.users.findMany()) {
    const schema = await import(`./drizzle/${dialect}.mjs`)
    const { db, run, close } = await open(schema, options)
    try {
      await makeTables(run, dialect)
      await db.insert(schema.users).values(NEIGHBOURS.map(id => ({ id, name: 'rounded' })))
      await db.insert(schema.posts).values(NEIGHBOURS.map(id => ({ id, authorId: id, title: 'rounded' })))
      return await query(db, schema)
    } finally {
      await close()
    }
  }

  test('mysql2 without its options', async () => {
    await assert.rejects(readWith('mysql', mysql2), refused('ID_INVALID', 'supportBigNumbers: true, bigNumberStrings: true'))
  })

  test('node-postgres and postgres.js with a parser that makes numbers', async () => {
    const { default: { types } } = await import('pg')
    const standard = types.getTypeParser(types.builtins.INT8)
    types.setTypeParser(types.builtins.INT8, Number)
    try {
      await assert.rejects(readWith('pg', nodePostgres), refused('ID_INVALID', 'int8 as text'))
    } finally {
      types.setTypeParser(types.builtins.INT8, standard)
    }
    const int8 = { to: 20, from: [20], serialize: String, parse: Number }
    await assert.rejects(readWith('pg', postgresJs, { types: { int8 } }), refused('ID_INVALID', 'int8 as text'))
  })

  test('a subquery in SQLite fails, and one that selects the ID as text does not', async () => {
    for (const open of [betterSqlite3, libsql]) {
      const plain = async (db, { users }) => db.select().from(db.select().from(users).as('inner'))
      await assert.rejects(readWith('sqlite', open, {}, plain))
      const text = (db, { users }) => {
        const inner = db.select({ id: sql`cast(${users.id} as text)`.as('id') }).from(users).as('inner')
        return db.select({ id: inner.id }).from(inner)
      }
      assert.deepEqual(await readWith('sqlite', open, {}, text), NEIGHBOURS.map(id => ({ id })))
    }
  })

  test('SQL of one\'s own is exact in better-sqlite3 with exactIntegers', async () => {
    const load = db => db.all(sql`select id, 7 as n from drizzle_users order by id`)
    assert.deepEqual(await readWith('sqlite', betterSqlite3, { prepare: exactIntegers }, load), NEIGHBOURS.map(id => ({ id, n: 7 })))
    const plain = (db, { users }) => db.select({ id: users.id, newest: max(users.id) }).from(users)
    assert.deepEqual(await readWith('sqlite', betterSqlite3, { prepare: exactIntegers }, plain), [{ id: NEIGHBOURS[2], newest: NEIGHBOURS[2] }])
  })

  test('with parseJson as the driver\'s parser `with` is exact in PostgreSQL', async () => {
    const expected = NEIGHBOURS.map(id => ({ id, name: 'rounded', age: null, posts: [{ id, authorId: id, title: 'rounded' }] }))
    const load = db => db.query.users.findMany({ with: { posts: true }, orderBy: (user, { asc }) => asc(user.id) })
    const { default: { types } } = await import('pg')
    const standard = types.getTypeParser(types.builtins.JSON)
    types.setTypeParser(types.builtins.JSON, parseJson)
    try {
      assert.deepEqual(await readWith('pg', nodePostgres, {}, load), expected)
    } finally {
      types.setTypeParser(types.builtins.JSON, standard)
    }
    const json = { to: 114, from: [114], serialize: JSON.stringify, parse: parseJson }
    assert.deepEqual(await readWith('pg', postgresJs, { types: { json } }, load), expected)
  })
})

describe('where the IDs come from', async () => {
  const { snowflake } = await import('frazil/drizzle/sqlite')
  const { integer, sqliteTable } = await import('drizzle-orm/sqlite-core')

  async function insertWith(given, count = 1) {
    const table = sqliteTable('t', { id: snowflake('id', { ids: given }).primaryKey(), n: integer() })
    const { db, run, close } = await betterSqlite3({ table })
    try {
      await run('create table t (id bigint primary key not null, n integer)')
      return await db.insert(table).values(Array.from({ length: count }, (_, n) => ({ n }))).returning()
    } finally {
      close()
    }
  }

  test('a promise, once it is kept; a function, which is called once', async () => {
    const { promise: opening, resolve } = Promise.withResolvers()
    const table = sqliteTable('t', { id: snowflake('id', { ids: opening }).primaryKey() })
    const { db, close } = await betterSqlite3({ table })
    assert.throws(() => db.insert(table).values({}).toSQL(), refused('WOULD_BLOCK', 'await it'))
    resolve(await Snowflake.open('twitter', { datacenter: 1, worker: 8, detached: true }))
    await opening
    assert.equal(ids.layout.decode(db.insert(table).values({}).toSQL().params[0]).worker, 8)
    close()

    let calls = 0
    const lazy = () => {
      calls += 1
      return ids
    }
    assert.equal((await insertWith(lazy, 3)).length, 3)
    assert.equal(calls, 1)
  })

  test('what the generator refuses reaches the insert', async () => {
    const manual = new Snowflake('twitter', { datacenter: 1, worker: 7, clock: 'manual', exhausted: 'wait', detached: true })
    await assert.rejects(insertWith(manual), refused('CLOCK_NOT_SET'))
    manual.setTime(new Date('2026-01-01'))
    assert.equal((await insertWith(manual, 1000)).length, 1000)
    manual.batch(3000)
    await assert.rejects(insertWith(manual, 1000), refused('WOULD_BLOCK'))
    const broken = Promise.reject(new FrazilError('NODE_MISSING'))
    const table = sqliteTable('t', { id: snowflake('id', { ids: broken }).primaryKey() })
    await broken.catch(() => {})
    await assert.rejects(async () => (await betterSqlite3({ table })).db.insert(table).values({}), refused('NODE_MISSING'))
  })

  test('SPEC: a default that is called once is one ID for all rows', () => {
    const made = ids.next()
    for (const constant of [made, BigInt(made)]) {
      assert.throws(() => snowflake('id').default(constant), refused('SPEC', `the default ${made} is one ID for all rows`, 'snowflake({ ids })'))
    }
    // The ID of a manually numbered row, and an SQL expression.
    for (const constant of ['7', 0, sql`1`]) {
      const table = sqliteTable('t', { id: snowflake('id').default(constant) })
      assert.equal(table.id.hasDefault, true)
    }
  })

  test('wrong generators and options are refused where the column is made', () => {
    assert.throws(() => snowflake('id', { ids: 7 }), refused('WRONG_TYPE', 'ids is a number', 'a promise'))
    assert.throws(() => snowflake('id', { ids: null }), refused('WRONG_TYPE', 'ids is null'))
    assert.throws(() => snowflake('id', { generator: ids }), refused('UNKNOWN_KEY', '"generator"', 'ids, mode'))
    assert.throws(() => snowflake({ mode: 'number' }), refused('OUT_OF_RANGE', 'mode=number', "'string', 'bigint'"))
    assert.throws(() => snowflake('id', 7), refused('WRONG_TYPE', 'options is a number'))
  })
})

// The recipe of docs/node-orm.md on each database. The page's own block runs in orm-guide.test.mjs.
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import Database from 'better-sqlite3'
import { Snowflake } from 'frazil'
import { exactIntegers } from 'frazil/better-sqlite3'
import { parseJson } from 'frazil/json'
import { Kysely, MysqlDialect, PostgresDialect, SqliteDialect, sql } from 'kysely'
import { jsonArrayFrom } from 'kysely/helpers/postgres'
import mysql from 'mysql2'
import pg from 'pg'
import { serverUrl } from './servers.mjs'
import { throughEveryValidator } from './validators.mjs'

// Three IDs that round to the same double.
const NEIGHBOURS = ['1801439850948198401', '1801439850948198402', '1801439850948198403']
const ids = new Snowflake('twitter', { datacenter: 1, worker: 7, detached: true })

const DIALECTS = {
  PostgreSQL: () => new PostgresDialect({ pool: new pg.Pool({ connectionString: serverUrl('POSTGRESQL') }) }),
  MariaDB: () => new MysqlDialect({ pool: mysql.createPool({ uri: serverUrl('MARIADB'), supportBigNumbers: true, bigNumberStrings: true }) }),
  SQLite: () => new SqliteDialect({ database: exactIntegers(new Database(':memory:')) }),
}

for (const [name, dialect] of Object.entries(DIALECTS)) {
  describe(name, () => {
    let db
    before(async () => {
      db = new Kysely({ dialect: dialect() })
      await db.schema.dropTable('kysely_people').ifExists().execute()
      await db.schema.createTable('kysely_people').addColumn('id', 'bigint', column => column.primaryKey()).addColumn('name', 'text').execute()
      await db.insertInto('kysely_people').values(NEIGHBOURS.map(id => ({ id, name: id }))).execute()
    })
    after(() => db.destroy())
    const found = query => query.orderBy('id').execute().then(rows => rows.map(({ id }) => id))

    test('rows are read as written, and conditions distinguish neighbours', async () => {
      const made = await ids.batchAsync(100)
      await db.insertInto('kysely_people').values(made.map(id => ({ id, name: 'made' }))).execute()
      assert.deepEqual(await found(db.selectFrom('kysely_people').selectAll().where('name', '=', 'made')), made)
      const [low, middle, high] = NEIGHBOURS
      const people = () => db.selectFrom('kysely_people').select('id')
      assert.deepEqual(await found(people().where('id', '=', middle)), [middle])
      assert.deepEqual(await found(people().where('id', 'in', [middle, high])), [middle, high])
      assert.deepEqual(await found(people().where(eb => eb.between('id', middle, high))), [middle, high])
      assert.deepEqual(await found(people().where('id', '<', middle)), [low])
      assert.deepEqual(await found(people().where('id', '>=', ids.layout.minId(Date.now() - 600_000))), made)
      await db.deleteFrom('kysely_people').where('id', '=', made[1]).execute()
      assert.equal((await found(people().where('name', '=', 'made'))).length, 99)
    })

    test('IDs pass every validator, both ways', async () => {
      // exactIntegers returns integers as numbers if they are exact, so the ID is cast to text.
      const id = name === 'SQLite' ? sql`cast(id as text)`.as('id') : 'id'
      await throughEveryValidator({
        write: id => db.insertInto('kysely_people').values({ id, name: 'passed' }).execute(),
        read: given => db.selectFrom('kysely_people').select(id).where('kysely_people.id', '=', given).executeTakeFirst(),
      })
      await db.deleteFrom('kysely_people').where('name', '=', 'passed').execute()
    })

    if (name !== 'MariaDB') {
      test('returning', async () => {
        const [id] = await ids.batchAsync(1)
        assert.deepEqual(await db.insertInto('kysely_people').values({ id, name: 'returned' }).returning('id').executeTakeFirst(), { id })
      })
    }
  })
}

test('jsonArrayFrom is exact with parseJson as the driver\'s parser, and rounds without', async () => {
  const load = async () => {
    const db = new Kysely({ dialect: DIALECTS.PostgreSQL() })
    try {
      const people = sql`(values (${sql.lit(NEIGHBOURS[0])}::bigint))`.as('people')
      return await db.selectNoFrom(eb => jsonArrayFrom(eb.selectFrom(people).select(sql`column1`.as('id'))).as('list')).executeTakeFirst()
    } finally {
      await db.destroy()
    }
  }
  const standard = pg.types.getTypeParser(pg.types.builtins.JSON)
  assert.deepEqual(await load(), { list: [{ id: Number(NEIGHBOURS[0]) }] })
  pg.types.setTypeParser(pg.types.builtins.JSON, parseJson)
  try {
    assert.deepEqual(await load(), { list: [{ id: NEIGHBOURS[0] }] })
  } finally {
    pg.types.setTypeParser(pg.types.builtins.JSON, standard)
  }
})

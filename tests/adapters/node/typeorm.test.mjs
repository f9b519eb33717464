import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import 'reflect-metadata'
import { FrazilError, Snowflake } from 'frazil'
import { exactIntegers } from 'frazil/better-sqlite3'
import { serverUrl } from './servers.mjs'
import { throughEveryValidator } from './validators.mjs'
import { alsoWithTheOldest } from './versions.mjs'

const { default: typeorm } = await import('typeorm')
const { Between, Column, DataSource, Entity, EntitySchema, In, JoinColumn, JoinTable, ManyToMany, ManyToOne, MoreThan, OneToMany } = typeorm
const { PrimarySnowflakeColumn, SnowflakeColumn, snowflakeColumn, snowflakeSubscriber } = await import('frazil/typeorm')

alsoWithTheOldest(import.meta.url)

// Three IDs that round to the same double.
const NEIGHBOURS = ['1801439850948198401', '1801439850948198402', '1801439850948198403']
const ids = new Snowflake('twitter', { datacenter: 1, worker: 7, detached: true })

// Calls decorators like TypeScript's compiler.
function decorate(target, properties, ...decorators) {
  for (const [name, ...list] of properties) {
    list.reverse().forEach(decorator => decorator(target.prototype, name))
  }
  decorators.forEach(decorator => decorator(target))
}

class Tag {}
class User {}
class Post {}
decorate(Tag, [['id', PrimarySnowflakeColumn()], ['text', Column('varchar')]], Entity('typeorm_tag'))
decorate(User, [
  ['id', PrimarySnowflakeColumn()],
  ['name', Column('varchar', { unique: true })],
  ['age', Column('int', { nullable: true })],
  ['posts', OneToMany(() => Post, post => post.author, { cascade: true })],
], Entity('typeorm_user'))
decorate(Post, [
  ['id', PrimarySnowflakeColumn()],
  ['title', Column('varchar')],
  ['authorId', SnowflakeColumn({ nullable: true })],
  ['author', ManyToOne(() => User, user => user.posts, { cascade: ['insert'] }), JoinColumn({ name: 'authorId' })],
  ['tags', ManyToMany(() => Tag, { cascade: true }), JoinTable({ name: 'typeorm_post_tag' })],
], Entity('typeorm_post'))
const Note = new EntitySchema({
  name: 'Note', tableName: 'typeorm_note', columns: { id: { ...snowflakeColumn, primary: true }, about: { ...snowflakeColumn, nullable: true } },
})

const entities = [Tag, User, Post, Note]
const DATABASES = {
  PostgreSQL: () => ({ type: 'postgres', url: serverUrl('POSTGRESQL') }),
  MariaDB: () => ({ type: 'mariadb', url: serverUrl('MARIADB') }),
  'SQLite (better-sqlite3)': () => ({ type: 'better-sqlite3', database: ':memory:', prepareDatabase: exactIntegers }),
}

async function open(options, subscribers = [snowflakeSubscriber(ids)]) {
  const source = new DataSource({ ...options, entities, subscribers })
  await source.initialize()
  for (const table of ['typeorm_post_tag', 'typeorm_post', 'typeorm_user', 'typeorm_tag', 'typeorm_note']) {
    await source.query(`DROP TABLE IF EXISTS ${table}`)
  }
  await source.synchronize()
  return source
}

function refused(code, ...says) {
  return error => {
    assert.ok(error instanceof FrazilError, error.stack)
    assert.equal(error.code, code)
    says.forEach(part => assert.ok(error.message.includes(part), error.message))
    return true
  }
}

for (const [name, options] of Object.entries(DATABASES)) {
  describe(name, () => {
    let source, users, posts, statements
    const logger = { logQuery: text => statements.push(text) }
    for (const method of ['logQueryError', 'logQuerySlow', 'logSchemaBuild', 'logMigration', 'log']) {
      logger[method] = () => {}
    }
    before(async () => {
      statements = []
      source = await open({ ...options(), logging: true, logger })
      users = source.getRepository(User)
      posts = source.getRepository(Post)
      await users.insert(NEIGHBOURS.map((id, age) => ({ id, name: `neighbour ${age}`, age })))
    })
    after(() => source.destroy())

    test('the schema is stable, and has a bigint without a default', async () => {
      const { upQueries } = await source.driver.createSchemaBuilder().log()
      assert.deepEqual(upQueries.map(({ query }) => query), [])
      const create = statements.find(text => /CREATE TABLE .typeorm_user./.test(text))
      assert.match(create, /.id. bigint/i)
      assert.doesNotMatch(create, /auto|default|serial/i)
    })

    test('save gives a new entity its ID before the one INSERT, and finds the same again', async () => {
      statements.length = 0
      const low = ids.next()
      const user = await users.save(users.create({ name: 'saved' }))
      assert.deepEqual(statements.filter(text => /typeorm_user/.test(text)).map(text => text.slice(0, 11)), ['INSERT INTO'])
      assert.ok(BigInt(low) < BigInt(user.id) && BigInt(user.id) < BigInt(ids.next()))
      const odd = await users.save({ id: String(BigInt(ids.next()) | 1n), name: 'odd' })
      for (const { id, name } of [user, odd]) {
        assert.deepEqual({ ...await users.findOneBy({ id }) }, { id, name, age: null })
      }
    })

    test('a second save is an UPDATE, of a partial entity too', async () => {
      const { id } = await users.save({ name: 'twice' })
      const user = await users.findOneBy({ name: 'twice' })
      user.age = 3
      await users.save(user)
      await users.save({ id, age: 4 })
      assert.deepEqual((await users.findBy({ name: 'twice' })).map(user => ({ ...user })), [{ id, name: 'twice', age: 4 }])
    })

    test('insert, the query builder, upsert', async () => {
      const rows = Array.from({ length: 100 }, (_, age) => ({ name: `inserted ${age}`, age }))
      const { identifiers } = await users.insert(rows)
      assert.ok(identifiers.every(({ id }, at) => typeof id === 'string' && id === rows[at].id))
      assert.ok(identifiers.every(({ id }, at) => at === 0 || BigInt(id) > BigInt(identifiers[at - 1].id)))
      assert.deepEqual((await users.findBy({ id: In(identifiers.map(({ id }) => id)) })).length, 100)

      const built = await source.createQueryBuilder().insert().into(User).values([{ name: 'built 1' }, { name: 'built 2' }]).execute()
      assert.deepEqual((await users.findBy({ id: In(built.identifiers.map(({ id }) => id)) })).map(({ name }) => name).sort(), ['built 1', 'built 2'])
      assert.deepEqual((await source.createQueryBuilder().insert().into(User).values([]).execute()).identifiers, [])

      const { id } = await users.findOneBy({ name: 'built 1' })
      await users.upsert({ name: 'built 1', age: 9 }, ['name'])
      await users.upsert({ name: 'upserted', age: 9 }, ['name'])
      assert.deepEqual((await users.findBy({ age: 9, name: In(['built 1', 'upserted']) })).map(({ name }) => name).sort(), ['built 1', 'upserted'])
      assert.equal((await users.findOneBy({ name: 'built 1' })).id, id)
    })

    test('cascades: from the one to the many, and back, and to a table between', async () => {
      const user = await users.save({ name: 'parent', posts: [{ title: 'a' }, { title: 'b' }] })
      const loaded = await users.findOne({ where: { id: user.id }, relations: { posts: true }, order: { posts: { title: 'ASC' } } })
      assert.deepEqual(loaded.posts.map(({ id, title, authorId }) => [id, title, authorId]), user.posts.map(({ id, title }) => [id, title, user.id]))

      const post = await posts.save(posts.create({ title: 'c', author: users.create({ name: 'child\'s' }), tags: [{ text: 'x' }, { text: 'y' }] }))
      const read = await posts.findOne({ where: { id: post.id }, relations: { author: true, tags: true } })
      assert.equal(read.author.id, post.author.id)
      assert.deepEqual(read.tags.map(({ id }) => id).sort(), post.tags.map(({ id }) => id).sort())
      assert.equal(read.authorId, post.author.id)

      const note = source.getRepository(Note)
      const { id } = await note.save({ about: post.id })
      assert.deepEqual(await note.findOneBy({ id }), { id, about: post.id })
    })

    test('conditions distinguish IDs that round to the same double', async () => {
      const [low, middle, high] = NEIGHBOURS
      assert.equal(Number(low), Number(high))
      const found = async where => (await users.find({ where, order: { id: 'ASC' } })).map(({ id }) => id)
      assert.deepEqual(await found({ id: middle }), [middle])
      assert.deepEqual(await found({ id: BigInt(middle) }), [middle])
      assert.deepEqual(await found({ id: In([middle, high]) }), [middle, high])
      assert.deepEqual(await found({ id: Between(middle, high) }), [middle, high])
      assert.deepEqual((await users.find({ where: { id: MoreThan(low) }, order: { id: 'ASC' }, take: 2 })).map(({ id }) => id), [middle, high])
      assert.equal((await users.createQueryBuilder('user').where('user.id = :id', { id: middle }).getOne()).id, middle)
      await users.update({ id: middle }, { age: -1 })
      assert.deepEqual(await found({ age: -1 }), [middle])
      assert.equal(await users.countBy({ id: Between(low, high) }), 3)
    })

    test('IDs pass every validator, both ways', async () => {
      const notes = source.getRepository(Note)
      await throughEveryValidator({
        write: id => notes.save({ id, about: id }),
        read: async id => ({ id: (await notes.findOneBy({ id, about: id })).about }),
      })
    })

    test('with null or undefined as its key an entity is new', async () => {
      for (const id of [null, undefined]) {
        const user = await users.save({ id, name: `no ${id}` })
        assert.match(user.id, /^\d{19}$/)
      }
    })

    test('transactions', async () => {
      await assert.rejects(source.transaction(async manager => {
        await manager.save(User, { name: 'rolled back' })
        throw new Error('no')
      }), /no/)
      await source.transaction(manager => manager.save(User, { name: 'committed' }))
      assert.deepEqual((await users.findBy({ name: In(['rolled back', 'committed']) })).map(({ name }) => name), ['committed'])
    })

    test('values that are not IDs are refused, in entities and in conditions', async () => {
      for (const [id, code, ...says] of [[Number(NEIGHBOURS[0]), 'ID_INVALID', 'rounded'], ['12a', 'ID_INVALID', "'a'"], [-1n, 'ID_INVALID'], [true, 'WRONG_TYPE']]) {
        await assert.rejects(users.insert({ id, name: 'bad' }), refused(code, ...says))
        await assert.rejects(users.findBy({ id }), refused(code))
        await assert.rejects(users.findBy({ id: In([NEIGHBOURS[0], id]) }), refused(code))
      }
    })

    test('without listeners a row gets no ID, and the database refuses it', async () => {
      await assert.rejects(source.createQueryBuilder().insert().into(User).values({ name: 'deaf' }).callListeners(false).execute())
      await assert.rejects(users.save({ name: 'deaf' }, { listeners: false }))
    })
  })
}

describe('a driver that rounds is noticed', () => {
  const sqlite = { type: 'better-sqlite3', database: ':memory:' }
  const SETTINGS = {
    'better-sqlite3 as it is': [sqlite, 'exactIntegers'],
    'MariaDB with supportBigNumbers switched off': [() => ({ ...DATABASES.MariaDB(), supportBigNumbers: false }), 'supportBigNumbers'],
  }
  for (const [name, [options, says]] of Object.entries(SETTINGS)) {
    test(`${name}: by the first query of each kind, and by one that opening makes`, async t => {
      const given = { ...(options.call ? options() : options), entities, subscribers: [snowflakeSubscriber(ids)] }
      const source = await new DataSource(given).initialize()
      t.after(() => source.destroy())
      const users = source.getRepository(User)
      const [id] = NEIGHBOURS
      for (const query of [
        () => users.findOne({ where: { id }, relations: { posts: true } }),
        () => users.find({ take: 1, relations: { posts: true } }),
        () => users.find(),
        () => users.insert({ id, name: 'rounded' }),
        () => source.query('SELECT 1'),
      ]) {
        await assert.rejects(query(), refused('ID_INVALID', given.type, says))
      }
      await assert.rejects(new DataSource({ ...given, synchronize: true }).initialize(), refused('ID_INVALID', says))
    })

    test(`${name}: without the subscriber by an ID that is read`, async t => {
      const source = await open(options.call ? options() : options, [])
      t.after(() => source.destroy())
      const users = source.getRepository(User)
      await users.insert(NEIGHBOURS.map(id => ({ id, name: id })))
      await assert.rejects(users.find(), refused('ID_INVALID', says))
    })
  }

  test('settings that are exact: of better-sqlite3 itself', async () => {
    const prepareDatabase = database => database.defaultSafeIntegers(true)
    const source = await open({ ...sqlite, prepareDatabase })
    const { id } = await source.getRepository(User).save({ name: 'exact' })
    assert.equal((await source.getRepository(User).findOne({ where: { id }, relations: { posts: true } })).id, id)
    await source.destroy()
  })
})

describe('where the IDs come from', () => {
  test('loading mints nothing', async () => {
    let minted = 0
    const counted = { next: () => assert.fail(), batchAsync: () => assert.fail(), async nextAsync() {
      minted += 1
      return ids.next()
    } }
    const source = await open(DATABASES['SQLite (better-sqlite3)'](), [snowflakeSubscriber(counted)])
    const users = source.getRepository(User)
    await users.insert([{ name: 'a' }, { name: 'b' }])
    assert.equal((await users.find()).length, 2)
    const [user] = await users.find({ select: { name: true }, relations: { posts: true } })
    assert.equal(user.id, undefined)
    await users.save({ ...await users.findOneBy({ name: 'a' }), age: 1 })
    assert.equal(minted, 2)
    await source.destroy()
  })

  const save = async given => {
    const source = await open(DATABASES['SQLite (better-sqlite3)'](), [snowflakeSubscriber(given)])
    try {
      return await source.getRepository(User).save(Array.from({ length: 5 }, (_, at) => ({ name: String(at) })))
    } finally {
      await source.destroy()
    }
  }

  test('a promise, and a function that is called once, are awaited', async () => {
    const opening = Snowflake.open('twitter', { datacenter: 1, worker: 8, detached: true })
    const { layout } = ids
    assert.ok((await save(opening)).every(({ id }) => layout.decode(id).worker === 8))
    let calls = 0
    await save(() => {
      calls += 1
      return opening
    })
    assert.equal(calls, 1)
  })

  test('an insert waits where the generator must', async () => {
    // The generator makes two IDs a second.
    const slow = await Snowflake.open('exhausted=wait:20s', { layout: 'time:31@1s node:31 sequence:1 epoch:2025-01-01', node: 1, detached: true })
    assert.equal(new Set((await save(slow)).map(({ id }) => id)).size, 5)
  })

  test('what the generator refuses reaches the caller', async () => {
    await assert.rejects(save(new Snowflake('twitter', { datacenter: 1, worker: 7, clock: 'manual', detached: true })), refused('CLOCK_NOT_SET'))
    await assert.rejects(save(() => Promise.reject(new FrazilError('NODE_MISSING'))), refused('NODE_MISSING'))
    assert.throws(() => snowflakeSubscriber({}), refused('WRONG_TYPE', 'ids is a'))
  })
})

test('SPEC: a default that is called once is one ID for all rows', () => {
  const made = ids.next()
  for (const column of [PrimarySnowflakeColumn, SnowflakeColumn]) {
    assert.throws(() => column({ default: made }), ({ code, message }) => code === 'SPEC' && message.includes(`${made} is one ID for all rows`))
    assert.equal(typeof column({ default: '7' }), 'function')
  }
})

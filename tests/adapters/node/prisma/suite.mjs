import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { skip } from '@prisma/client/runtime/client'
import { FrazilError, Snowflake } from 'frazil'
import { jsonReplacer, parseJson } from 'frazil/json'
import { snowflakes } from 'frazil/prisma'
import { versions } from '../versions.mjs'
import { throughEveryValidator } from '../validators.mjs'
import { open } from './client.mjs'

// Three IDs that round to the same double.
const NEIGHBOURS = [1801439850948198401n, 1801439850948198402n, 1801439850948198403n]
const ids = new Snowflake('twitter', { datacenter: 1, worker: 7, detached: true })

function refused(code, ...says) {
  return error => {
    assert.ok(error instanceof FrazilError, error.stack)
    assert.equal(error.code, code)
    says.forEach(part => assert.ok(error.message.includes(part), error.message))
    return true
  }
}

/** Returns a generator that records the size of each request. */
function counting() {
  const asked = []
  return { asked, next: () => assert.fail(), nextAsync: () => assert.fail(), batchAsync(count) {
    asked.push(count)
    return ids.batchAsync(count)
  } }
}

/** The suite on one database: 'postgresql', 'mysql' or 'sqlite'. */
export function suite(provider) {
  describe(provider, () => {
    let base, prisma, made
    const names = rows => rows.map(({ name }) => name).sort()
    let low
    const isNew = id => typeof id === 'bigint' && id > low && id < BigInt(ids.next())
    before(async () => {
      ;({ client: base, made } = await open(provider))
      prisma = base.$extends(snowflakes(ids))
      await prisma.user.createMany({ data: NEIGHBOURS.map((id, at) => ({ id, name: `neighbour ${at}` })) })
      low = BigInt(ids.next())
    })
    after(() => base.$disconnect())

    test('@default(dbgenerated()) leaves the database without a default', () => {
      const [, users] = /CREATE TABLE .frazil_users. \(([^;]*)\);/.exec(made)
      assert.match(users, /.id. BIGINT NOT NULL( PRIMARY KEY)?,/)
    })

    test('create, with and without an ID', async () => {
      const data = Object.freeze({ name: 'created' })
      const { id } = await prisma.user.create({ data })
      assert.ok(isNew(id))
      assert.deepEqual(await prisma.user.findUnique({ where: { id } }), { id, name: 'created', credit: 0n })
      assert.equal((await prisma.user.create({ data: { id: 7n, name: 'given' } })).id, 7n)
      assert.ok(isNew((await prisma.user.create({ data: { id: undefined, name: 'undefined' } })).id))
      await assert.rejects(prisma.user.create({ data: { id: null, name: 'null' } }), /null/)
      for (const note of [await prisma.note.create(), await prisma.note.create({}), await prisma.note.create({ data: {} })]) {
        assert.ok(isNew(note.id))
      }
      // Tag's key has no @default(dbgenerated()).
      assert.ok(isNew((await prisma.tag.create({ data: { text: 'a tag' } })).id))
    })

    test('createMany, createManyAndReturn: one batch of ascending IDs', async () => {
      const counted = counting()
      const client = base.$extends(snowflakes(counted))
      const data = Array.from({ length: 500 }, (_, at) => ({ name: `many ${1000 + at}` }))
      assert.equal((await client.user.createMany({ data })).count, 500)
      assert.deepEqual(counted.asked, [500])
      const rows = await prisma.user.findMany({ where: { name: { startsWith: 'many' } }, orderBy: { id: 'asc' } })
      assert.deepEqual(rows.map(({ name }) => name), data.map(({ name }) => name))
      assert.ok(rows.every(({ id }) => isNew(id)))

      await prisma.user.createMany({ data: { name: 'single' } })
      if (provider !== 'mysql') {
        const given = await prisma.user.createManyAndReturn({ data: [{ name: 'returned 1' }, { id: 8n, name: 'returned 2' }] })
        assert.ok(isNew(given[0].id))
        assert.equal(given[1].id, 8n)
      }
    })

    test('upsert', async () => {
      const upsert = credit => prisma.user.upsert({ where: { name: 'upserted' }, create: { name: 'upserted', credit }, update: { credit } })
      const { id } = await upsert(1n)
      assert.ok(isNew(id))
      assert.deepEqual(await upsert(2n), { id, name: 'upserted', credit: 2n })
    })

    test('nested writes: all that a create makes gets an ID, parents first', async () => {
      const counted = counting()
      const client = base.$extends(snowflakes(counted))
      // Prisma's adapter for MariaDB could not read JSON in version 6.
      const json = provider === 'mysql' && versions === 'oldest' ? undefined : { data: { id: 5 } }
      const data = {
        name: 'nested',
        profile: { create: { bio: 'bio' } },
        posts: {
          create: [
            { title: '1', tags: { create: { text: 'new' }, connectOrCreate: [{ where: { text: 'a tag' }, create: { text: 'a tag' } }, { where: { text: 'newer' }, create: { text: 'newer' } }] } },
            { title: '2', data: { create: { json } } },
          ],
        },
      }
      const text = JSON.stringify(data)
      const include = { profile: true, posts: { include: { tags: true, data: true }, orderBy: { title: 'asc' } } }
      const user = await client.user.create({ data, include })
      assert.equal(JSON.stringify(data), text)
      // The request covers the user, the profile, two posts, three tags (one exists already) and a datum.
      assert.deepEqual(counted.asked, [8])
      const [first, second] = user.posts
      const aTag = await prisma.tag.findUnique({ where: { text: 'a tag' } })
      assert.ok(first.tags.some(({ id }) => id === aTag.id))
      const all = [user.id, user.profile.id, first.id, ...first.tags.map(({ id }) => id), second.id, second.data.id]
      assert.ok(all.every(isNew), String(all))
      assert.equal(new Set(all).size, all.length)
      assert.ok(all.filter(id => id !== aTag.id).every(id => id >= user.id))
      assert.deepEqual(second.data.json ?? undefined, json)
      assert.deepEqual(first.tags.map(({ text }) => text).sort(), ['a tag', 'new', 'newer'])
    })

    test('nested writes: createMany, connect, and all of update', async () => {
      const { id } = await prisma.user.create({ data: { name: 'updated' } })
      await prisma.user.update({ where: { id }, data: { posts: { createMany: { data: [{ title: 'b' }, { title: 'a' }] } }, profile: { create: { bio: 'first' } } } })
      const read = () => prisma.user.findUnique({ where: { id }, include: { profile: true, posts: { include: { data: true }, orderBy: { title: 'asc' } } } })
      const { posts: [post], profile } = await read()
      assert.ok(isNew(post.id))
      await prisma.user.update({
        where: { id },
        data: {
          profile: { upsert: { create: { bio: 'never' }, update: { bio: 'second' } } },
          posts: {
            update: { where: { id: post.id }, data: { data: { create: {} } } },
            upsert: { where: { id: 1n }, create: { title: 'c' }, update: { title: 'never' } },
            connectOrCreate: { where: { id: post.id }, create: { title: 'never' } },
          },
        },
      })
      const after = await read()
      assert.equal(after.profile.id, profile.id)
      assert.equal(after.profile.bio, 'second')
      assert.deepEqual(after.posts.map(({ title }) => title), ['a', 'b', 'c'])
      assert.ok(isNew(after.posts[0].data.id) && isNew(after.posts[2].id))
      // An update of a relation to one row, without and with `data`.
      await prisma.profile.update({ where: { id: profile.id }, data: { user: { update: { posts: { create: { title: 'd' } } } } } })
      await prisma.profile.update({ where: { id: profile.id }, data: { user: { update: { data: { posts: { create: { title: 'e' } } } } } } })
      // If the model has a field `data`, the update is in `data` only if there is a condition.
      const updateTags = update => prisma.datum.update({ where: { id: after.posts[0].data.id }, data: { post: { update } } })
      await updateTags({ tags: { create: { text: 'as it is' } } })
      await updateTags({ where: {}, data: { tags: { create: { text: 'with a condition' } } } })
      await assert.rejects(updateTags({ data: { tags: { create: { text: 'never' } } } }))
      await prisma.post.create({ data: { title: 'f', author: { connect: { id } } } })
      await prisma.post.create({ data: { title: 'g', authorId: id } })
      assert.deepEqual((await read()).posts.map(({ title }) => title), ['a', 'b', 'c', 'd', 'e', 'f', 'g'])
    })

    test('transactions of both kinds', async () => {
      const [one, two] = await prisma.$transaction([prisma.user.create({ data: { name: 'listed 1' } }), prisma.user.create({ data: { name: 'listed 2' } })])
      assert.ok(isNew(one.id) && isNew(two.id))
      const inner = await prisma.$transaction(async tx => {
        await tx.user.createMany({ data: [{ name: 'inner 1' }, { name: 'inner 2' }] })
        return tx.user.create({ data: { name: 'inner 3', posts: { create: { title: 'inner' } } }, include: { posts: true } })
      })
      assert.ok(isNew(inner.posts[0].id))
      await assert.rejects(prisma.$transaction(async tx => {
        await tx.user.create({ data: { name: 'rolled back' } })
        throw new Error('no')
      }), /no/)
      await assert.rejects(prisma.$transaction([prisma.user.create({ data: { name: 'rolled back' } }), prisma.user.create({ data: { name: 'inner 1' } })]))
      assert.equal(await prisma.user.count({ where: { name: 'rolled back' } }), 0)
      assert.deepEqual(names(await prisma.user.findMany({ where: { name: { startsWith: 'inner' } } })), ['inner 1', 'inner 2', 'inner 3'])
    })

    test('conditions distinguish IDs that round to the same double', async () => {
      const [first, middle, last] = NEIGHBOURS
      assert.equal(Number(first), Number(last))
      const found = async id => names(await prisma.user.findMany({ where: { id } }))
      assert.deepEqual(await found(middle), ['neighbour 1'])
      assert.deepEqual(await found({ in: [middle, last] }), ['neighbour 1', 'neighbour 2'])
      assert.deepEqual(await found({ gte: middle, lte: last }), ['neighbour 1', 'neighbour 2'])
      await prisma.user.update({ where: { id: middle }, data: { credit: middle } })
      assert.deepEqual((await prisma.user.findMany({ where: { credit: middle } })).map(({ id }) => id), [middle])
      const [{ id }] = await prisma.$queryRaw`SELECT id FROM frazil_users WHERE id = ${middle}`
      assert.equal(id, middle)
      assert.deepEqual((await prisma.user.aggregate({ where: { id: { lte: last } }, _max: { id: true } }))._max, { id: last })
    })

    test('JSON: refused without the replacer, exact with it', async () => {
      const user = await prisma.user.findFirst({ where: { id: NEIGHBOURS[1] }, select: { id: true, name: true } })
      assert.throws(() => JSON.stringify(user), TypeError)
      const text = JSON.stringify(user, jsonReplacer)
      assert.equal(text, `{"id":"${NEIGHBOURS[1]}","name":"neighbour 1"}`)
      assert.equal(BigInt(parseJson(text).id), user.id)
    })

    test('a number that JavaScript has rounded is refused: as a key, as a reference, in conditions, in relations', async () => {
      const rounded = Number(NEIGHBOURS[0])
      const { user, post } = prisma
      for (const [where, query] of [
        ['User.id', () => user.findUnique({ where: { id: rounded } })],
        ['User.id', () => user.findMany({ where: { OR: [{ id: { in: [1, rounded] } }] } })],
        ['User.id', () => user.findMany({ cursor: { id: rounded } })],
        ['User.id', () => user.create({ data: { id: rounded, name: 'bad' } })],
        ['User.id', () => post.create({ data: { title: 'bad', author: { connect: { id: rounded } } } })],
        ['Post.authorId', () => post.create({ data: { title: 'bad', authorId: rounded } })],
        ['Post.id', () => user.findMany({ where: { posts: { some: { id: { gt: rounded } } } } })],
        ['Post.id', () => user.update({ where: { id: 1 }, data: { posts: { set: [{ id: rounded }] } } })],
        ['Tag.id', () => post.update({ where: { id: 1 }, data: { tags: { update: { where: { id: 1 }, data: { id: rounded } } } } })],
        ['Tag.id', () => post.update({ where: { id: 1 }, data: { tags: { connectOrCreate: [{ where: { id: rounded }, create: { text: '' } }] } } })],
        ['Post.authorId', () => post.findMany({ where: { data: { post: { authorId: { not: rounded } } } } })],
        ['Profile.userId', () => prisma.profile.deleteMany({ where: { userId: rounded } })],
      ]) {
        await assert.rejects(query(), refused('ID_INVALID', `${where}: id=`, 'rounded it', 'BigInt'))
      }
      // A number in a field without IDs is passed on unchanged.
      assert.deepEqual(await user.findMany({ where: { credit: 2 ** 60 } }), [])
      assert.ok((await prisma.counter.create({ data: { n: 2 ** 60 } })).n > 2n ** 59n)
      assert.deepEqual(await user.findMany({ where: { id: 123 } }), [])
    })

    test('IDs pass every validator, both ways', async () => {
      await prisma.note.deleteMany()
      await throughEveryValidator({
        write: id => prisma.note.create({ data: { id: BigInt(id) } }),
        read: id => prisma.note.findUnique({ where: { id: BigInt(id) } }),
      })
    })

    if (provider === 'postgresql') {
      test('lists: rounded IDs are refused; JSON that the database makes is rounded, where an ID is not text', async () => {
        const [low, middle, high] = NEIGHBOURS
        const rounded = Number(middle)
        const { guild } = prisma
        const { id } = await guild.create({ data: { members: [low, String(middle), 7] } })
        assert.deepEqual((await guild.findFirst({ where: { members: { has: middle } } })).members, [low, middle, 7n])
        for (const query of [
          () => guild.create({ data: { members: [low, rounded] } }),
          () => guild.create({ data: { members: { set: [rounded] } } }),
          () => guild.update({ where: { id }, data: { members: { push: rounded } } }),
          () => guild.update({ where: { id }, data: { members: { push: [high, rounded] } } }),
          () => guild.findMany({ where: { members: { has: rounded } } }),
          () => guild.findMany({ where: { members: { hasSome: [rounded] } } }),
          () => guild.findMany({ where: { members: { equals: [rounded] } } }),
        ]) {
          await assert.rejects(query(), refused('ID_INVALID', 'Guild.members: id=', 'rounded it', 'BigInt'))
        }
        // The guide's query.
        const [made] = await prisma.$queryRaw`SELECT json_agg(id ORDER BY id) AS ids, json_agg(id::text ORDER BY id) AS texts FROM frazil_users WHERE id IN (${low}, ${middle})`
        assert.deepEqual(made, { ids: [rounded, rounded], texts: [String(low), String(middle)] })
      })
    }

    test('what the extension is not asked about, and what it leaves alone', async () => {
      await assert.rejects(base.user.create({ data: { name: 'not extended' } }))
      await assert.rejects(prisma.$executeRaw`INSERT INTO frazil_users (name) VALUES ('raw')`)
      // A key of two fields, and a key of another type.
      await assert.rejects(prisma.pair.create({ data: { left: 1n } }), /right/)
      assert.equal(typeof (await prisma.counter.create({ data: { n: 1 } })).id, 'number')
      // Clients that are generated with strictUndefinedChecks have Prisma.skip.
      await prisma.user.create({ data: { name: 'skipped', posts: skip } })
      // Version 6 passes extensions a copy of the arguments, in which skip is an empty object.
      if (versions === 'current') {
        const counted = counting()
        const data = { name: 'skipped inside', profile: { create: skip }, posts: { create: skip, createMany: skip } }
        const { id } = await base.$extends(snowflakes(counted)).user.create({ data })
        assert.deepEqual(counted.asked, [1])
        assert.equal(await prisma.post.count({ where: { authorId: id } }), 0)
      }
    })

    test('the models can be named', async () => {
      const client = base.$extends(snowflakes(ids, { models: { Tag: 'id', Pair: 'left' } }))
      assert.ok(isNew((await client.tag.create({ data: { text: 'named' } })).id))
      assert.ok(isNew((await client.pair.create({ data: { right: 1n } })).left))
      await assert.rejects(client.user.create({ data: { name: 'not named' } }))
      assert.throws(() => base.$extends(snowflakes(ids, { models: { Users: 'id' } })), refused('OUT_OF_RANGE', '"Users" is not a model', 'User, Profile'))
      assert.throws(() => base.$extends(snowflakes(ids, { models: { Counter: 'id' } })), refused('OUT_OF_RANGE', 'Counter.id is not a BigInt', 'use one of n'))
      assert.throws(() => base.$extends(snowflakes(ids, { models: {} })), refused('OUT_OF_RANGE', 'id BigInt @id @default(dbgenerated())'))
      assert.throws(() => snowflakes(ids, { model: {} }), refused('UNKNOWN_KEY', '"model"'))
      assert.throws(() => snowflakes(ids)({}), refused('WRONG_TYPE', 'cannot read the schema'))
      assert.throws(() => snowflakes('ids'), refused('WRONG_TYPE', 'ids is a string'))
    })

    test('a promise of a generator, or a function, is awaited; a refusal reaches the query, and the next one asks again', async () => {
      const opening = base.$extends(snowflakes(Snowflake.open('twitter', { datacenter: 1, worker: 8, detached: true })))
      assert.equal(ids.layout.decode((await opening.user.create({ data: { name: 'promised' } })).id).worker, 8)
      let calls = 0
      const lazy = base.$extends(snowflakes(() => {
        calls += 1
        return calls === 1 ? Promise.reject(new FrazilError('NODE_MISSING')) : Promise.resolve(ids)
      }))
      await assert.rejects(lazy.user.create({ data: { name: 'lazy' } }), refused('NODE_MISSING'))
      await Promise.all([lazy.user.create({ data: { name: 'lazy' } }), lazy.user.create({ data: { name: 'lazier' } })])
      assert.equal(calls, 2)
    })
  })
}

// docs/node-orm.md, unchanged: the test writes each section's files into a folder, and runs the section's commands.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { parseId } from 'frazil'
import pg from 'pg'
import { startMongodb } from './mongodb.mjs'
import { migrationOf } from './prisma/schema-engine.mjs'
import { serverUrl } from './servers.mjs'

const here = fileURLToPath(new URL('.', import.meta.url))
const guide = readFileSync(new URL('../../../docs/node-orm.md', import.meta.url), 'utf8')
const sections = new Map(guide.split(/^## /m).slice(1).map(text => [text.slice(0, text.indexOf('\n')), text]))
const ID = /\d{18,19}/

let folder
before(() => {
  // The folder is below this one, where the frameworks are found.
  mkdirSync(join(here, 'guide'), { recursive: true })
  folder = mkdtempSync(join(here, 'guide', 'run-'))
})
after(() => rmSync(folder, { recursive: true }))

/** Writes a section's files. Returns a function that runs commands in their folder, and the section's own commands. */
function sectionIn(name) {
  const inside = join(folder, name)
  mkdirSync(inside)
  writeFileSync(join(inside, 'package.json'), '{ "type": "module" }')
  const blocks = [...sections.get(name).matchAll(/^```(\w+)\n(.*?)^```$/gms)].map(([, language, text]) => ({ language, text }))
  for (const { text } of blocks.filter(({ language }) => language !== 'sh')) {
    const [first, ...rest] = text.split('\n')
    const [, file] = /^\/\/ (\S+)$/.exec(first)
    // In JSON files, the first line with the name is removed, because JSON has no comments.
    writeFileSync(join(inside, file), file.endsWith('.json') ? rest.join('\n') : text)
  }
  const commands = blocks.filter(({ language }) => language === 'sh').at(-1).text.trim().split(/\n| && /)
  const run = (file, ...options) => {
    const env = {
      ...process.env, DATABASE_URL: serverUrl('POSTGRESQL'), NODE_OPTIONS: `--import ${pathToFileURL(join(here, 'versions.mjs'))}`,
      PRISMA_SCHEMA_ENGINE_BINARY: '/bin/false', NODE_TEST_CONTEXT: undefined, ...sectionIn.more,
    }
    return execFileSync(file, options, { cwd: inside, env, encoding: 'utf8' })
  }
  const node = (...options) => run(process.execPath, ...options)
  return { commands, node, bin: (name, ...options) => run(join(here, 'node_modules', '.bin', name), ...options), inside }
}

async function query(text) {
  const client = new pg.Client({ connectionString: serverUrl('POSTGRESQL') })
  await client.connect()
  try {
    return (await client.query(text)).rows
  } finally {
    await client.end()
  }
}

test('Drizzle', async () => {
  await query('drop table if exists posts, users cascade; drop schema if exists drizzle cascade')
  const { bin, commands, node } = sectionIn('Drizzle')
  assert.deepEqual(commands, ['npx drizzle-kit generate', 'npx drizzle-kit migrate', 'node app.ts'])
  bin('drizzle-kit', 'generate')
  bin('drizzle-kit', 'migrate')
  const printed = node('app.ts')
  const [{ id, titles }] = await query('select u.id, array_agg(p.id order by p.id) as titles from users u join posts p on p.author_id = u.id group by u.id')
  for (const exact of [id, ...titles]) {
    assert.match(exact, ID)
    assert.ok(printed.includes(`id: '${exact}'`), printed)
  }
  assert.match(bin('drizzle-kit', 'generate'), /No schema changes/)
})

test('Prisma', async () => {
  await query('drop table if exists "Post", "User" cascade')
  const { commands, inside, node } = sectionIn('Prisma')
  assert.deepEqual(commands, ['npx prisma generate', 'npx prisma db push', 'node app.ts'])
  node(join(here, 'node_modules/prisma/build/index.js'), 'generate')
  // `db push` would download an engine. This is the same engine.
  const { PrismaPg } = await import('@prisma/adapter-pg')
  await query(await migrationOf(readFileSync(join(inside, 'schema.prisma'), 'utf8'), new PrismaPg({ connectionString: serverUrl('POSTGRESQL') })))
  const user = JSON.parse(node('app.ts'))
  assert.deepEqual((await query('select id from "Post" order by id')).map(({ id }) => id), user.posts.map(({ id }) => id))
  assert.match(user.id, ID)
})

test('TypeORM', async () => {
  await query('drop table if exists post, "user" cascade')
  const { bin, commands } = sectionIn('TypeORM')
  assert.deepEqual(commands, ['npx tsx app.ts'])
  const user = JSON.parse(bin('tsx', 'app.ts'))
  assert.deepEqual(user.posts.map(({ authorId, title }) => [authorId, title]).sort(), [[user.id, 'More notes'], [user.id, 'Notes']])
  const stored = await query('select id, name from "user" order by id')
  assert.deepEqual([stored[0].id, ...stored.map(({ name }) => name)], [user.id, 'Ada', 'Grace'])
})

test('Mongoose', async () => {
  const server = await startMongodb()
  try {
    sectionIn.more = { MONGODB_URL: server.url }
    const { commands, node } = sectionIn('Mongoose')
    assert.deepEqual(commands, ['node app.ts'])
    const posts = JSON.parse(node('app.ts'))
    const { author } = posts[0]
    assert.deepEqual(posts.map(post => [post.title, post.author.name]), [['Notes', 'Ada'], ['More notes', 'Ada']])
    assert.ok([author._id, ...posts.flatMap(({ _id, comments }) => [_id, ...comments.map(({ _id }) => _id)])].every(id => parseId(id) === id))
  } finally {
    await server.stop()
  }
})

test('Kysely', async () => {
  await query('drop table if exists people')
  const { commands, node } = sectionIn('Kysely')
  assert.deepEqual(commands, ['node app.ts'])
  const printed = node('app.ts')
  const [{ id }] = await query("select id from people where name = 'Ada'")
  assert.ok(printed.includes(`id: '${id}'`), printed)
})

test('Sequelize', async () => {
  await query('drop table if exists books, authors')
  const { commands, inside, node } = sectionIn('Sequelize')
  assert.deepEqual(commands, ['node app.ts'])
  const authors = JSON.parse(node('app.ts'))
  const stored = await query('select a.id, name, array_agg(b.id::text order by b.id) as books from authors a left join books b on "authorId" = a.id group by a.id order by 1')
  assert.deepEqual(authors.map(({ id, name }) => [id, name]), stored.map(({ id, name }) => [id, name]))
  assert.deepEqual(stored.map(({ name }) => name), ['Ada', 'Grace', 'Mary'])
  assert.deepEqual(authors[0].books.map(({ id }) => id).sort(), stored[0].books)
  assert.ok(authors[0].books.every(({ authorId }) => authorId === authors[0].id))

  // The page warns of these failures.
  const app = readFileSync(join(inside, 'app.ts'), 'utf8')
  writeFileSync(join(inside, 'warned.ts'), app.replace(/^const recent = [^]*?^console.*$/m, `
    const [{ id: known }] = await Author.findAll({ raw: true }) as any
    const outcome = (promise: Promise<any>) => promise.then(row => row?.id ?? row, error => error.message || error.errors[0].errors.message)
    console.log(JSON.stringify([
      await outcome(Book.create({ authorId: Number(known) })),
      await outcome(Book.bulkCreate([{ authorId: Number(known) }], { validate: true })),
      await outcome(Author.findByPk(Number(known))),
      typeof await Author.max('id'),
      await Author.findOne({ order: [['id', 'DESC']] }).then(row => typeof row!.get('id')),
      DataTypes.INTEGER.name === (database.define('counted', {}).getAttributes() as any).id.type.constructor.name,
    ]))`))
  const [created, bulk, ...others] = JSON.parse(node('warned.ts'))
  assert.match(created, /is refused: above 2\^53 - 1 JavaScript has already rounded it/)
  assert.equal(bulk, created)
  assert.deepEqual(others, [null, 'number', 'string', true])
})

test('Knex and Objection', async () => {
  await query('drop table if exists staff')
  const { commands, inside, node } = sectionIn('Knex and Objection')
  assert.deepEqual(commands, ['node app.ts', 'node sqlite.ts'])
  const ada = JSON.parse(node('app.ts'))
  const stored = await query('select * from staff order by id')
  assert.deepEqual(stored.map(({ name }) => name).sort(), ['Ada', 'Grace', 'Joan', 'Mary'])
  assert.deepEqual(ada.team.map(({ leaderId }) => leaderId), [ada.id, ada.id])
  assert.deepEqual(stored.filter(({ leaderId }) => leaderId), ada.team)
  const [{ id }] = JSON.parse(node('sqlite.ts'))
  assert.match(id, ID)
  // The page warns of these failures.
  const sqlite = readFileSync(join(inside, 'sqlite.ts'), 'utf8')
  writeFileSync(join(inside, 'rounded.ts'), sqlite.replace('exactIntegers(connection))', 'connection)').replace('app.db', ':memory:')
    .replace("insert({ id: ids.next(), name: 'Ada' })", "insert({ id: '252877250947481609', name: 'Ada' }).then(inserted => assert.deepEqual(inserted, [1]))")
    .replace(/^/, "import assert from 'node:assert'\n"))
  assert.equal(node('rounded.ts'), '[{"id":252877250947481600,"name":"Ada"}]\n')
  const app = readFileSync(join(inside, 'app.ts'), 'utf8')
  writeFileSync(join(inside, 'refused.ts'), app.replace(/^await database\.schema[^]*?^}\)\n/m, '').replace(/^const { id } = [^]*?^console.*$/m, `
    await Person.query().insert({ leaderId: Number(ids.next()) as any }).catch(error => console.log(error.message))`))
  assert.match(node('refused.ts'), /leaderId: must be string/)
})

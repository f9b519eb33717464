// A message board: IDs are strings in JavaScript and in JSON, and 64-bit integers in PostgreSQL.
import swagger from '@fastify/swagger'
import Ajv from 'ajv'
import { and, asc, desc, eq, gte, lt } from 'drizzle-orm'
import Fastify from 'fastify'
import { FrazilError } from 'frazil'
import { frazilPlugin } from 'frazil/fastify'
import { idJsonSchema } from 'frazil/schema'
import { readFile } from 'node:fs/promises'
import { openDatabase } from './database.js'
import { ids, openIds } from './ids.js'
import { messages, topics } from './schema.js'

// Text that is not blank. PostgreSQL accepts no NUL characters, and no halves of surrogate pairs.
const words = maxLength => ({ type: 'string', maxLength, pattern: '^(?=[^]*\\S)[^\\u0000\\ud800-\\udfff]*$' })
const time = { type: 'string', format: 'date-time' }

const topic = {
  type: 'object', required: ['id', 'title'], properties: { id: idJsonSchema, title: { type: 'string' } },
}
const message = {
  type: 'object',
  required: ['id', 'topic', 'author', 'text', 'created', 'node'],
  properties: { id: idJsonSchema, topic: idJsonSchema, author: { type: 'string' }, text: { type: 'string' }, created: time, node: { type: 'integer' } },
}
const newTopic = { type: 'object', required: ['title'], properties: { title: words(100) } }
const newMessage = { type: 'object', required: ['topic', 'author', 'text'], properties: { topic: idJsonSchema, author: words(100), text: words(2000) } }
const choice = {
  type: 'object',
  properties: { topic: idJsonSchema, since: time, until: time, before: idJsonSchema, limit: { type: 'integer', minimum: 1, maximum: 1000, default: 50 } },
}
const oneMessage = { type: 'object', properties: { id: idJsonSchema } }

// Values in a body are not converted. Values in a URL are text, which Fastify converts to numbers if the schema has numbers.
const ajv = new Ajv()
const asItIs = { validatorCompiler: ({ schema }) => ajv.compile(schema) }

/** An error that is answered with a status. */
function refuse(statusCode, message) {
  return Object.assign(new Error(message), { statusCode })
}

/** A message in the API; the time and the node number are in the ID. */
function show(row) {
  const { time, node } = ids.layout.decode(row.id)
  return { ...row, created: time.toISOString(), node }
}

/** The smallest ID of a millisecond: smaller IDs were made before it. */
function firstId(text) {
  try {
    return ids.layout.minId(new Date(text))
  } catch (error) {
    throw error instanceof FrazilError ? refuse(422, error.message) : error
  }
}

function routes(app, db) {
  app.post('/api/topics', { ...asItIs, schema: { body: newTopic, response: { 201: topic } } }, async (request, reply) => {
    const [row] = await db.insert(topics).values({ title: request.body.title.trim() }).returning()
    return reply.code(201).send(row)
  })

  app.get('/api/topics', { schema: { response: { 200: { type: 'array', items: topic } } } }, () =>
    db.select().from(topics).orderBy(asc(topics.title)).limit(1000))

  app.post('/api/messages', { ...asItIs, schema: { body: newMessage, response: { 201: message } } }, async (request, reply) => {
    const { topic, author, text } = request.body
    if ((await db.select({ id: topics.id }).from(topics).where(eq(topics.id, topic))).length === 0) {
      throw refuse(422, `unknown topic ${topic}`)
    }
    const [row] = await db.insert(messages).values({ topic, author: author.trim(), text: text.trim() }).returning()
    return reply.code(201).send(show(row))
  })

  // The newest messages first, from `since` on and before `until`; `before` is the last ID of the page before.
  app.get('/api/messages', { schema: { querystring: choice, response: { 200: { type: 'array', items: message } } } }, async request => {
    const { topic, since, until, before, limit } = request.query
    const where = and(
      topic && eq(messages.topic, topic), since && gte(messages.id, firstId(since)), until && lt(messages.id, firstId(until)), before && lt(messages.id, before),
    )
    return (await db.select().from(messages).where(where).orderBy(desc(messages.id)).limit(limit)).map(show)
  })

  app.get('/api/messages/:id', { schema: { params: oneMessage, response: { 200: message } } }, async request => {
    const [row] = await db.select().from(messages).where(eq(messages.id, request.params.id))
    if (!row) {
      throw refuse(404, `unknown message ${request.params.id}`)
    }
    return show(row)
  })

  app.get('/openapi.json', { schema: { hide: true } }, () => app.swagger())
  app.get('/', { schema: { hide: true } }, async (request, reply) =>
    reply.type('text/html; charset=utf-8').send(await readFile(new URL('index.html', import.meta.url))))
}

/** Serves the board on a port; `close()` of the result answers the last requests and releases the node number. */
export async function serve(port) {
  // A worker that replaces a killed one may have to wait for its node number.
  const app = Fastify({ pluginTimeout: 120_000 })
  const { db, close } = openDatabase()
  app.addHook('onClose', close)
  app.register(frazilPlugin, { open: openIds })
  await app.register(swagger, { openapi: { info: { title: 'Message board', version: '1' } } })
  app.after(() => routes(app, db))
  await app.listen({ host: '127.0.0.1', port })
  return app
}

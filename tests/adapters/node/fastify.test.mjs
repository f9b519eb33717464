// frazil/fastify, in real servers of the current Fastify and of the oldest supported one.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { request } from 'node:http'
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { removeStores } from '../../node/folders.mjs'
import { bothVersions } from './installed.mjs'

const folder = mkdtempSync(join(tmpdir(), 'frazil-fastify-'))
after(() => removeStores(folder))
let stores = 0

/** Returns the URL of a new store. */
const store = () => `file:${folder}/${stores++}`

for (const [version, installed] of bothVersions('fastify')) {
  const fastify = installed.require('fastify')
  const frazil = installed.require('frazil')
  const { frazilPlugin } = installed.require('frazil/fastify')
  const { idJsonSchema } = installed.require('frazil/schema')

  test(`${version}: the generator is there when the server is ready, also for routes and plugins from before, and closed with it`, async () => {
    const app = fastify()
    app.get('/early', async () => ({ id: app.ids.next() }))
    app.register(frazilPlugin, { spec: `standard store=${store()}` })
    app.register(async child => child.get('/inner', async () => ({ id: child.ids.next() })), { prefix: '/child' })
    app.get('/late', async () => ({ id: app.ids.next() }))
    await app.ready()
    const seen = []
    for (const url of ['/early', '/child/inner', '/late']) {
      const { id } = (await app.inject(url)).json()
      assert.equal(app.ids.layout.decode(id).id, id)
      seen.push(BigInt(id))
    }
    assert.ok(seen[0] < seen[1] && seen[1] < seen[2])
    const { ids } = app
    assert.equal(ids.lease.healthy, true)
    await app.close()
    assert.throws(() => ids.next(), { code: 'CLOSED' })
  })

  test(`${version}: FRAZIL, options, several generators, other kinds of numbers`, async () => {
    process.env.FRAZIL = 'standard node=44 detached=true'
    const app = fastify()
    try {
      app.register(frazilPlugin)
      app.register(frazilPlugin, { name: 'photos', spec: 'twitter', options: { datacenter: 1, worker: 2, detached: true } })
      app.register(frazilPlugin, { name: 'orders', open: () => frazil.Segment.open('orders', { store: store() }) })
      await app.ready()
    } finally {
      delete process.env.FRAZIL
    }
    assert.equal(app.ids.node, 44)
    assert.deepEqual(app.photos.fields, { datacenter: 1, worker: 2 })
    assert.equal(app.orders.next(), '1')
    const all = [app.ids, app.photos, app.orders]
    await app.close()
    for (const ids of all) {
      assert.throws(() => ids.next(), { code: 'CLOSED' })
    }
  })

  test(`${version}: a server whose generator does not open does not start`, async () => {
    const cases = [
      [{ spec: 'standard' }, 'NODE_MISSING'],
      [{ spec: 'nonsense' }, 'SPEC'],
      [{ spec: 'standard store=redis://127.0.0.1:1/0' }, 'STORE_UNREACHABLE'],
      [{ store: 'local' }, 'UNKNOWN_KEY', /option "store" is none of: spec, options, open, name, .*; keys of the spec line go into spec/],
      [{ spec: 'standard', open: async () => {} }, 'SPEC', /either open, or spec/],
      [{ open: async () => ({}) }, 'WRONG_TYPE', /open did not return a generator/],
      [{ open: async () => undefined }, 'WRONG_TYPE'],
      [{ open: async () => { throw new frazil.FrazilError('STORE_AUTH', 'mine') } }, 'STORE_AUTH', /^mine$/],
      [{ ['__proto__']: { spec: 'standard node=1' } }, 'UNKNOWN_KEY', /"__proto__"/],
    ]
    for (const [options, code, message = /./] of cases) {
      const app = fastify()
      app.register(frazilPlugin, options)
      await assert.rejects(app.listen({ port: 0, host: '127.0.0.1' }), error => {
        assert.equal(error.code, code, error.message)
        assert.match(error.message, message)
        return error instanceof frazil.FrazilError
      })
      assert.equal(app.server.listening, false)
      await app.close()
    }
  })

  test(`${version}: a second one of the same name is refused before it opens anything`, async () => {
    let opened = 0
    const open = async () => {
      opened++
      return frazil.Snowflake.open('standard node=45 detached=true')
    }
    const app = fastify()
    app.register(frazilPlugin, { open })
    app.register(frazilPlugin, { open })
    await assert.rejects(app.ready(), { code: 'FST_ERR_DEC_ALREADY_PRESENT' })
    assert.equal(opened, 1)
    await app.close()
  })

  test(`${version}: it ends before Fastify gives up on it, and names the setting to change`, async () => {
    const spec = `standard node=7 store=${store()} window=60s`
    const killed = `require('frazil').Snowflake.open('${spec}').then(ids => { ids.next(); process.kill(process.pid, 'SIGKILL') })`
    assert.equal(spawnSync(process.execPath, ['-e', killed], { cwd: installed.folder }).signal, 'SIGKILL')
    const app = fastify({ pluginTimeout: 10_000 })
    app.register(frazilPlugin, { spec })
    await assert.rejects(app.ready(), error => {
      assert.equal(error.code, 'NODE_IN_USE', error.message)
      assert.match(error.message, /Fastify gives a plugin 10000 ms to start: Fastify\({ pluginTimeout: 120_000 }\)/)
      return error.cause.code === 'NODE_IN_USE'
    })
    await app.close()

    const own = fastify()
    own.register(frazilPlugin, { spec, options: { maxWaitMs: 5 } })
    await assert.rejects(own.ready(), error => error.code === 'NODE_IN_USE' && !error.message.includes('pluginTimeout'))
    await own.close()
  })

  test(`${version}: it is closed after the last request`, async () => {
    const app = fastify()
    app.register(frazilPlugin, { spec: `standard store=${store()}` })
    let entered
    let goOn
    const inside = new Promise(resolve => { entered = resolve })
    const released = new Promise(resolve => { goOn = resolve })
    app.get('/slow', async () => {
      entered()
      await released
      return { id: app.ids.next() }
    })
    await app.listen({ port: 0, host: '127.0.0.1' })
    const asked = request({ port: app.server.address().port, host: '127.0.0.1', path: '/slow', agent: false }).end()
    await inside
    const closed = app.close()
    goOn()
    const [response] = await once(asked, 'response')
    const [body] = await once(response, 'data')
    assert.match(String(body), /^{"id":"\d+"}$/)
    response.resume()
    await closed
    assert.throws(() => app.ids.next(), { code: 'CLOSED' })
  })

  test(`${version}: a server that ends while it starts, or whose other plugins fail, releases the number`, async () => {
    let goOn
    const released = new Promise(resolve => { goOn = resolve })
    let ids
    const open = async () => {
      await released
      ids = await frazil.Snowflake.open(`standard store=${store()}`)
      return ids
    }
    const early = fastify()
    early.register(frazilPlugin, { open })
    const ready = early.ready().then(() => 'ready', () => 'failed')
    const closed = early.close()
    goOn()
    await Promise.all([ready, closed])
    assert.throws(() => ids.next(), { code: 'CLOSED' })

    const broken = fastify()
    broken.register(frazilPlugin, { open })
    broken.register(async () => { throw new Error('another plugin') })
    await assert.rejects(broken.ready(), /another plugin/)
    assert.match(ids.next(), /^\d+$/)
    await broken.close()
    assert.throws(() => ids.next(), { code: 'CLOSED' })
  })

  /** Makes a server whose routes take IDs, and a function that returns the answer to a body. */
  async function server(schema, options = {}) {
    const app = fastify(options)
    app.register(frazilPlugin, { spec: 'standard node=46 detached=true' })
    app.post('/', { schema: { body: schema } }, async request => ({ got: request.body }))
    app.get('/orders/:id', { schema: { params: { type: 'object', properties: { id: idJsonSchema }, required: ['id'] } } }, async request => request.params)
    await app.ready()
    const post = async (text, type = 'application/json') => {
      const response = await app.inject({ method: 'POST', url: '/', payload: text, headers: { 'content-type': type } })
      return { status: response.statusCode, ...response.json() }
    }
    return { app, post }
  }

  const order = {
    type: 'object',
    required: ['id'],
    properties: {
      id: idJsonSchema,
      name: { type: 'string' },
      items: { type: 'array', items: { type: 'object', properties: { id: idJsonSchema, size: { type: 'number' } } } },
      tags: { type: 'array', items: idJsonSchema },
    },
  }

  test(`${version}: parameters are checked by the JSON Schema`, async () => {
    const { app } = await server(order)
    for (const id of ['0', '1541815603606036480', '9223372036854775807']) {
      assert.deepEqual((await app.inject(`/orders/${id}`)).json(), { id })
    }
    for (const id of ['007', '-1', '9223372036854775808', '1e18', '0x1f', '%20%31', '%EF%BC%91', 'undefined', '__proto__']) {
      const response = await app.inject(`/orders/${id}`)
      assert.equal(response.statusCode, 400, id)
      assert.match(response.json().message, /^params\/id must (match pattern "\^\(0\|\[1-9\]\[0-9\]\{0,18\}\)\$"|NOT be valid)$/)
    }
    await app.close()
  })

  test(`${version}: a rounded number in a body is refused, wherever it is; Fastify alone makes a string of it`, async () => {
    const id = '1541815603606036480'
    const alone = fastify()
    alone.post('/', { schema: { body: order } }, async request => request.body)
    const taken = await alone.inject({ method: 'POST', url: '/', payload: `{ "id": ${id} }`, headers: { 'content-type': 'application/json' } })
    assert.deepEqual(taken.json(), { id: '1541815603606036500' })
    await alone.close()

    const { app, post } = await server(order)
    const cases = [
      [`{ "id": ${id} }`, 'body/id'],
      [`{ "id": "5", "name": ${id} }`, 'body/name'],
      [`{ "id": "5", "items": [{ "id": "6" }, { "id": ${id} }] }`, 'body/items/1/id'],
      [`{ "id": "5", "tags": ["6", ${id}] }`, 'body/tags/1'],
      [`{ "id": "5", "tags": ${id} }`, 'body/tags'],
      [`{ "id": 9007199254740993 }`, 'body/id'],
      [`{ "id": 1e18 }`, 'body/id'],
    ]
    for (const [text, path] of cases) {
      for (const type of ['application/json', 'application/json; charset=utf-8']) {
        const { status, code, message } = await post(text, type)
        assert.deepEqual([status, code], [400, 'ID_INVALID'], message)
        assert.ok(message.startsWith(`${path} has been rounded, to `), message)
        assert.match(message, /send it as a string, in quotes$/)
      }
    }
    // A body without a rounded ID is handled as before.
    const good = { id, items: [{ id: '5', size: 1e20 }], tags: ['6'] }
    assert.deepEqual((await post(JSON.stringify(good))).got, good)
    assert.deepEqual((await post('{ "id": 5 }')).got, { id: '5' })
    assert.match((await post('{ "id": -9007199254740993 }')).message, /^body\/id must match pattern/)
    assert.equal((await post('{ "id": null }')).status, 400)
    assert.equal((await post('[]')).status, 400)
    assert.equal((await post('5')).status, 400)
    assert.equal((await post('{ "id": "5", "unknown": 1541815603606036480 }')).status, 200)
    await app.close()

    const root = await server(idJsonSchema)
    const { status, message, got } = await root.post(id)
    assert.ok(status === 400 ? message.startsWith('body has been rounded, to 154') : got === 1541815603606036480, `${status} ${message}`)
    await root.app.close()
  })

  test(`${version}: bodies that are deep, wide or hostile`, async () => {
    const app = fastify({ bodyLimit: 1 << 24 })
    app.register(frazilPlugin, { spec: 'standard node=48 detached=true' })
    app.post('/', { schema: { body: { type: 'object' } } }, async () => ({}))
    const post = async payload => (await app.inject({ method: 'POST', url: '/', payload, headers: { 'content-type': 'application/json' } })).statusCode
    assert.equal(await post(`{ "a": ${'['.repeat(100_000)}9007199254740993${']'.repeat(100_000)} }`), 200)
    assert.equal(await post(`{ "a": [${'9007199254740993,'.repeat(500_000)}1] }`), 200)
    assert.equal(await post('{ "hasOwnProperty": 1541815603606036480, "toString": 5, "content-type": 5 }'), 200)
    assert.equal(await post('{ "__proto__": { "id": 1541815603606036480 } }'), 400)
    assert.equal(await post('{ "id": 15418156036060364'), 400)
    assert.equal(await post(''), 400)
    await app.close()
  })

  test(`${version}: validators that coerce nothing, and bodies that are not JSON, are left alone`, async () => {
    const strict = await server(order, { ajv: { customOptions: { coerceTypes: false } } })
    const answer = await strict.post('{ "id": 1541815603606036480 }')
    assert.equal(answer.status, 400)
    assert.match(answer.message, /body\/id must be string/)
    await strict.app.close()

    const own = fastify()
    own.register(frazilPlugin, { spec: 'standard node=47 detached=true' })
    own.addContentTypeParser('text/plain', { parseAs: 'string' }, (request, body, done) => done(null, { big: 2 ** 60, body }))
    own.post('/', { schema: { body: { type: 'object', properties: { big: { type: 'string' } } } } }, async request => request.body)
    const { statusCode } = await own.inject({ method: 'POST', url: '/', payload: 'x', headers: { 'content-type': 'text/plain' } })
    assert.equal(statusCode, 200)
    await own.close()
  })

  test(`${version}: a bigint is exact in a response whose schema has type string`, async () => {
    const app = fastify()
    app.get('/', { schema: { response: { 200: { type: 'object', properties: { id: idJsonSchema } } } } }, async () => ({ id: 1541815603606036480n }))
    assert.equal((await app.inject('/')).body, '{"id":"1541815603606036480"}')
    await app.close()
  })
}

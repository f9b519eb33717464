// docs/node-web.md as a reader would follow it. Each example runs with the frameworks' current versions and, if possible, with the oldest
// supported ones.
import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, request } from 'node:http'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { here, install } from './installed.mjs'

const guide = readFileSync(join(here, '../../../docs/node-web.md'), 'utf8')
const examples = new Map([...guide.matchAll(/^```(?:mjs|ts)\n\/\/ (\S+)\n([^]*?)^```$/gm)].map(([, name, code]) => [name, code]))
const used = new Set()

after(() => assert.deepEqual([...used].sort(), [...examples.keys()].sort(), 'every example of the guide runs'))

/** Writes an example of the guide into a folder, with a free port for its server. */
function write(folder, name) {
  used.add(name)
  const code = examples.get(name)
  assert.ok(code, `the guide has ${name}`)
  mkdirSync(join(folder, 'src'), { recursive: true })
  writeFileSync(join(folder, name), code.replace('3000', '0'))
}

const SAY_WHERE = `
  const { Server } = require('net')
  const { listen } = Server.prototype
  Server.prototype.listen = function (...given) {
    this.once('listening', () => console.log('listening on', this.address().port))
    return listen.apply(this, given)
  }`

/** Runs a server program of a folder, calls `asks(ask)`, which sends it requests, and ends it with SIGTERM. */
async function serve(folder, program, asks, env = { ...process.env, FRAZIL_HOME: join(folder, 'store') }) {
  writeFileSync(join(folder, 'say-where.cjs'), SAY_WHERE)
  const server = spawn(process.execPath, ['--require', './say-where.cjs', program], { cwd: folder, env, stdio: ['ignore', 'pipe', 'inherit'] })
  const port = await new Promise((resolve, reject) => {
    let output = ''
    server.stdout.on('data', data => {
      output += data
      const [, port] = /listening on (\d+)/.exec(output) ?? []
      if (port) {
        resolve(port)
      }
    })
    server.once('exit', () => reject(new Error(`${program} has ended: ${output}`)))
  })
  const ask = async (method, path, json) => {
    const asked = request({ port, method, path, agent: false, headers: json ? { 'content-type': 'application/json' } : {} }).end(json)
    const [response] = await once(asked, 'response')
    return { status: response.statusCode, ...JSON.parse(Buffer.concat(await response.toArray())) }
  }
  const ended = once(server, 'exit')
  try {
    await asks(ask)
  } finally {
    server.kill('SIGTERM')
  }
  const [code, signal] = await ended
  assert.ok(code === 0 || code === 143 || signal === 'SIGTERM', `${program} ends with ${code ?? signal}`)
}

/** Returns the output of a program of a folder. */
const run = (folder, program) => execFileSync(process.execPath, [program], { cwd: folder, encoding: 'utf8' })

/** Compiles the TypeScript of a folder like a new NestJS application, in strict mode. */
function compile(folder) {
  const compilerOptions = {
    strict: true, module: 'nodenext', target: 'es2023', outDir: 'dist', rootDir: 'src', experimentalDecorators: true, emitDecoratorMetadata: true,
    skipLibCheck: true, types: ['node'],
  }
  writeFileSync(join(folder, 'package.json'), '{ "private": true }')
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, include: ['src'] }))
  execFileSync(join(here, 'node_modules/.bin/tsc'), { cwd: folder, stdio: 'inherit' })
}

const named = (...names) => Object.fromEntries(names.map(name => [name, name]))
const NEST = { '@types/node': '@types/node', 'reflect-metadata': 'reflect-metadata', rxjs: 'rxjs' }
const ID = '250306847385993216'
const ROUNDED = '{ "id": 250306847385993216, "customer": 250306847385993216, "items": [] }'

for (const at of ['fastify', 'fastify-oldest']) {
  test(`server.mjs, with ${at}`, async () => {
    const { folder } = install({ fastify: at })
    write(folder, 'server.mjs')
    await serve(folder, 'server.mjs', async ask => {
      const { id } = await ask('POST', '/orders')
      const got = await ask('GET', `/orders/${id}`)
      assert.deepEqual([got.status, got.id], [200, id])
      assert.ok(Date.now() - new Date(got.time) < 3600_000)
      const { status, message } = await ask('GET', '/orders/007')
      assert.deepEqual([status, message], [400, 'params/id must match pattern "^(0|[1-9][0-9]{0,18})$"'])
      assert.ok(guide.includes(`400: ${message}`))
    })
  })
}

test('next build leases nothing, and next start answers with an ID', async () => {
  // The folder is below this one, because a bundler does not look for the frameworks above the folder of the lock file.
  mkdirSync(join(here, 'guide'), { recursive: true })
  const folder = mkdtempSync(join(here, 'guide', 'next-'))
  after(() => rmSync(folder, { recursive: true }))
  cpSync(join(install().folder, 'node_modules'), join(folder, 'node_modules'), { recursive: true, dereference: true })
  for (const name of ['lib/ids.mjs', 'app/orders/route.js', 'next.config.mjs']) {
    mkdirSync(join(folder, name, '..'), { recursive: true })
    write(folder, name)
  }
  writeFileSync(join(folder, 'package.json'), '{ "private": true, "type": "module" }')
  const env = { ...process.env, NEXT_TELEMETRY_DISABLED: '1', NEXT_IGNORE_INCORRECT_LOCKFILE: '1', FRAZIL_HOME: join(folder, 'store') }
  const next = join(here, 'node_modules/next/dist/bin/next')
  execFileSync(process.execPath, [next, 'build'], { cwd: folder, env, stdio: 'pipe' })
  assert.ok(!existsSync(env.FRAZIL_HOME), 'no store was opened')
  writeFileSync(join(folder, 'start.mjs'), `process.argv.splice(2, 3, 'start', '--port', '0')\nawait import(${JSON.stringify(next)})`)
  await serve(folder, 'start.mjs', async ask => {
    const [one, other] = await Promise.all([ask('POST', '/orders'), ask('POST', '/orders')])
    assert.deepEqual([one.status, other.status], [201, 201])
    assert.match(one.id, /^\d{18,19}$/)
    assert.notEqual(one.id, other.id)
  }, env)
  assert.ok(existsSync(env.FRAZIL_HOME))
})

test('hono.mjs', async () => {
  const { folder } = install(named('hono', '@hono/node-server', '@hono/standard-validator', 'zod'))
  write(folder, 'hono.mjs')
  await serve(folder, 'hono.mjs', async ask => {
    const { id, ...rest } = await ask('POST', '/orders', `{ "customer": "${ID}" }`)
    assert.deepEqual(rest, { status: 201, customer: ID })
    assert.deepEqual(await ask('GET', `/orders/${id}`), { status: 200, id })
    const { status, error, data } = await ask('POST', '/orders', ROUNDED)
    assert.equal(status, 400)
    assert.match(error[0].message, /number 250306847385993200, which JavaScript has already rounded: send it as a string/)
    assert.equal(String(data.customer), '250306847385993200')
    assert.equal((await ask('GET', '/orders/007')).status, 400)
  })
})

test('trpc.mjs', async () => {
  const { folder } = install(named('@trpc/server', '@trpc/client'))
  write(folder, 'trpc.mjs')
  const held = createServer().listen(0)
  await once(held, 'listening')
  const { port } = held.address()
  held.close()
  await once(held, 'close')
  const code = examples.get('trpc.mjs').replaceAll('3000', port)
  const outputOf = (name, text) => {
    writeFileSync(join(folder, name), text)
    return execFileSync(process.execPath, [name], { cwd: folder, encoding: 'utf8', env: { ...process.env, FRAZIL_HOME: join(folder, 'store') } })
  }
  assert.match(outputOf('trpc.mjs', code), /^{ id: '\d{18,19}', time: '\S+Z' }\nBAD_REQUEST the ID is the number \d+, which JavaScript has already rounded: send it/)
  // The guide warns of these failures.
  const input = code.replace('.query(({ input: id }) => ', '.query(({ input: id }) => 5n || ').replace('Number(id)', 'BigInt(id)')
  assert.match(outputOf('bigint.mjs', input.replace('console.log(await client.read.query(id))', 'await client.read.query(id).catch(error => console.log(error.data))')
    .replace('({ data, message })', '({ data = {}, message })')), /INTERNAL_SERVER_ERROR[^]*Do not know how to serialize a BigInt/)
  assert.match(outputOf('output.mjs', code.replace('.input(snowflakeId())', '.input(snowflakeId()).output(snowflakeId())').replace('({ id, time: ids.layout.decode(id).time })', 'Number(id)')
    .replace('console.log(await client.read.query(id))', 'await client.read.query(id).catch(error => console.log(error.message))')
    .replace('{ router }', '{ router, onError: ({ error }) => console.log(error.cause.issues?.[0].message) }')), /rounded[^]*Output validation failed/)
})

test('yoga.mjs', async () => {
  const { folder } = install(named('graphql', 'graphql-yoga'))
  write(folder, 'yoga.mjs')
  const query = 'query ($id: Snowflake!) { order(id: $id) { id } }'
  const asked = id => `{ "query": "${query}", "variables": { "id": ${id} } }`
  await serve(folder, 'yoga.mjs', async ask => {
    const { data: { createOrder: { id } } } = await ask('POST', '/graphql', '{ "query": "mutation { createOrder { id } }" }')
    assert.deepEqual(await ask('POST', '/graphql', asked(`"${id}"`)), { status: 200, data: { order: { id } } })
    for (const [value, reason] of [[ID, /number 250306847385993200, which JavaScript has already rounded: send it as/], ['"1e18"', /"1e18" is not an ID in decimal/]]) {
      const { errors: [error] } = await ask('POST', '/graphql', asked(value))
      assert.match(error.message, reason)
      assert.equal(error.extensions.code, 'ID_INVALID')
    }
  })
  // The guide warns of this failure.
  writeFileSync(join(folder, 'masked.mjs'), examples.get('yoga.mjs').replace('3000', '0').replace('=> ({ id })', '=> ({ id: Number(id) })')
    .replace('{ schema }', '{ schema, logging: false }'))
  await serve(folder, 'masked.mjs', async ask => {
    const { errors: [error] } = await ask('POST', '/graphql', asked(`"${ID}"`))
    assert.equal(error.message, 'Unexpected error.')
  })
})

for (const at of ['@nestjs', 'nestjs-oldest/node_modules/@nestjs']) {
  test(`src/main.ts, with ${at}`, async () => {
    const { folder } = install({ ...NEST, '@nestjs': at })
    write(folder, 'src/main.ts')
    compile(folder)
    await serve(folder, 'dist/main.js', async ask => {
      const { id } = await ask('POST', '/orders')
      const got = await ask('GET', `/orders/${id}`)
      assert.deepEqual([got.status, got.id], [200, id])
      assert.ok(Date.now() - new Date(got.time) < 3600_000)
      const { status, message } = await ask('GET', '/orders/abc')
      assert.equal(status, 400)
      assert.ok(message.startsWith('id: "abc" is not an ID in decimal: the character '), message)
    })
  })
}

test('src/bodies.ts', async () => {
  const { folder } = install({ ...NEST, ...named('@nestjs', 'zod') })
  write(folder, 'src/bodies.ts')
  compile(folder)
  await serve(folder, 'dist/bodies.js', async ask => {
    assert.deepEqual(await ask('POST', '/orders', JSON.stringify({ customer: ID, items: ['5'] })), { status: 201, customer: ID, items: ['5'] })
    const { status, message } = await ask('POST', '/orders', ROUNDED)
    assert.equal(status, 400)
    assert.match(String(message), /customer.*number 250306847385993200, which JavaScript has already rounded/)
  })
})

for (const at of ['@nestjs', 'nestjs-oldest/node_modules/@nestjs']) {
  test(`src/is-snowflake-id.ts, with ${at}`, async () => {
    const { folder } = install({ ...NEST, ...named('class-transformer', 'class-validator'), '@nestjs': at })
    write(folder, 'src/is-snowflake-id.ts')
    writeFileSync(join(folder, 'src/program.ts'), `
      import { Body, Controller, Module, Post, ValidationPipe } from '@nestjs/common'
      import { NestFactory } from '@nestjs/core'
      import { CreateOrder } from './is-snowflake-id.js'
      @Controller('orders')
      class OrdersController {
        @Post()
        create(@Body() order: CreateOrder) {
          return order
        }
      }
      @Module({ controllers: [OrdersController] })
      class AppModule {}
      void NestFactory.create(AppModule, { logger: false }).then(async app => {
        app.useGlobalPipes(new ValidationPipe({ transform: true, transformOptions: { enableImplicitConversion: Boolean(process.env['IMPLICIT']) } }))
        await app.listen(0)
      })`)
    compile(folder)
    await serve(folder, 'dist/program.js', async ask => {
      assert.deepEqual(await ask('POST', '/orders', JSON.stringify({ customer: ID })), { status: 201, customer: ID })
      const { status, message } = await ask('POST', '/orders', ROUNDED)
      assert.equal(status, 400)
      assert.match(String(message), /^customer: the ID is the number 250306847385993200, which JavaScript has already rounded/)
    })
    // The guide warns of this failure.
    process.env.IMPLICIT = '1'
    try {
      await serve(folder, 'dist/program.js', async ask => {
        assert.equal((await ask('POST', '/orders', ROUNDED)).customer, '250306847385993200')
      })
    } finally {
      delete process.env.IMPLICIT
    }
  })
}

for (const at of ['express', 'express-oldest']) {
  test(`express.mjs, with ${at}; a body parser with the reviver`, async () => {
    const { folder } = install({ express: at })
    write(folder, 'express.mjs')
    await serve(folder, 'express.mjs', async ask => {
      const { id } = await ask('POST', '/orders')
      assert.deepEqual(await ask('GET', `/orders/${id}`), { status: 200, id })
      assert.deepEqual(await ask('GET', '/orders/007'), { status: 400, message: '"007" has leading zeros: in JSON and URLs an ID is written without them' })
    })

    write(folder, 'exact.mjs')
    writeFileSync(join(folder, 'bodies.mjs'), `
      import express from 'express'
      import { exactIntegers } from './exact.mjs'
      const app = express()
      app.use(express.json({ reviver: exactIntegers }))
      app.post('/', (request, response) => response.json(request.body))
      app.use((error, request, response, next) => response.status(error.status).json({ message: error.message }))
      app.listen(0)`)
    await serve(folder, 'bodies.mjs', async ask => {
      const answer = await ask('POST', '/', '{ "id": 250306847385993216 }')
      if (sourceText) {
        assert.deepEqual(answer, { status: 200, id: ID })
      } else {
        assert.equal(answer.status, 400)
        assert.match(answer.message, /"id" is above 2\^53 and has been rounded/)
      }
      assert.deepEqual(await ask('POST', '/', '{ "id": "5", "count": 7 }'), { status: 200, id: '5', count: 7 })
    })
  })
}

/** True if JSON.parse passes the source text to a reviver. */
let sourceText
JSON.parse('1', (key, value, context) => { sourceText = context?.source !== undefined })

test('exact.mjs', () => {
  const { folder } = install()
  write(folder, 'exact.mjs')
  const output = run(folder, 'exact.mjs')
  assert.match(output, sourceText ? /id: '250306847385993216', size: 100000000000000000000, count: 5/ : /^"id" is above 2\^53 and has been rounded, to 250306847385993200/)
})

for (const at of ['zod', 'zod-oldest']) {
  test(`zod.mjs, with ${at}`, () => {
    const { folder } = install({ zod: at })
    write(folder, 'zod.mjs')
    if (at === 'zod-oldest') {
      // The import is that of the guide's table.
      writeFileSync(join(folder, 'zod.mjs'), examples.get('zod.mjs').replace("'zod'", "'zod/v4'"))
    }
    const lines = run(folder, 'zod.mjs').trimEnd().split('\n')
    assert.deepEqual(lines, [
      `{ id: '${ID}', customer: 7n }`,
      'the ID is the number 250306847385993200, which JavaScript has already rounded: send it as a string, in quotes',
      '^(0|[1-9][0-9]{0,18})$',
    ])
    // A long comment continues on the next line.
    const shown = examples.get('zod.mjs').replaceAll('\n// ', ' ')
    lines.forEach(line => assert.ok(shown.includes(line), line))
  })
}

for (const name of ['arktype', 'valibot']) {
  for (const at of [name, `${name}-oldest`]) {
    test(`${name}.mjs, with ${at}`, () => {
      const { folder } = install({ [name]: at })
      write(folder, `${name}.mjs`)
      const [good, bad] = run(folder, `${name}.mjs`).trimEnd().split('\n')
      assert.equal(good, `{ id: '${ID}', customer: 7n }`)
      assert.match(bad, /number 250306847385993200, which JavaScript has already rounded: send it as a string/)
    })
  }
}

for (const at of ['graphql', 'graphql-oldest']) {
  test(`graphql.mjs, with ${at}`, () => {
    const { folder } = install({ graphql: at })
    write(folder, 'graphql.mjs')
    const [data, error] = run(folder, 'graphql.mjs').trimEnd().split('\n')
    assert.equal(data, `{"data":{"order":{"id":"${ID}"}}}`)
    assert.match(error, /number 250306847385993200, which JavaScript has already rounded: send it as a string/)
  })
}

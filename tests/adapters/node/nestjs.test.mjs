// frazil/nestjs in real applications of the current NestJS and of the oldest supported one. Decorators are called as functions here; the
// guide's tests compile TypeScript.
import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { request } from 'node:http'
import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { removeStores } from '../../node/folders.mjs'
import { install } from './installed.mjs'

const folder = mkdtempSync(join(tmpdir(), 'frazil-nestjs-'))
after(() => removeStores(folder))
let stores = 0

/** Returns the URL of a new store. */
const store = () => `file:${folder}/${stores++}`

const versions = {
  'NestJS 12': install({ '@nestjs': '@nestjs', 'reflect-metadata': 'reflect-metadata', rxjs: 'rxjs' }),
  'NestJS 10': install({ '@nestjs': 'nestjs-oldest/node_modules/@nestjs', 'reflect-metadata': 'reflect-metadata', rxjs: 'rxjs' }),
}

for (const [version, installed] of Object.entries(versions)) {
  const { require } = installed
  require('reflect-metadata')
  const common = require('@nestjs/common')
  const { NestFactory } = require('@nestjs/core')
  const { FrazilError, Segment, Snowflake } = require('frazil')
  const { FrazilModule, InjectIds, ParseSnowflakePipe, getIdsToken } = require('frazil/nestjs')

  test(`${version} is the version that is installed`, () => {
    assert.equal(`NestJS ${require('@nestjs/core/package.json').version.split('.')[0]}`, version)
  })

  /** Applies decorators like TypeScript. `parameters` are the types or the decorators of the constructor's parameters. */
  function decorate(type, decorators, parameters = []) {
    Reflect.defineMetadata('design:paramtypes', parameters.map(given => given.type ?? given), type)
    parameters.forEach(({ decorator }, at) => decorator?.(type, undefined, at))
    decorators.forEach(decorator => decorator(type))
    return type
  }

  /** Returns a new class that is a module with this metadata. */
  const moduleOf = metadata => decorate(class {}, [common.Module(metadata)])

  /** Starts an application. The caller gets its errors. */
  async function start(metadata, options = {}) {
    const app = await NestFactory.create(moduleOf(metadata), { logger: false, abortOnError: false, ...options })
    await app.listen(0, '127.0.0.1')
    return app
  }

  async function ask(app, path) {
    const response = await fetch(`http://127.0.0.1:${app.getHttpServer().address().port}${path}`)
    return { status: response.status, ...await response.json() }
  }

  /** Returns a provider that shows the generator that was injected. */
  const holder = (...parameters) => decorate(class {
    constructor(...given) {
      this.given = given
    }
  }, [common.Injectable()], parameters)

  test(`${version}: every module injects the generator by its class, and it is closed with the application`, async () => {
    const Inner = holder(Snowflake)
    const Outer = holder(Snowflake)
    const inner = moduleOf({ providers: [Inner], exports: [Inner] })
    const app = await start({ imports: [inner, FrazilModule.forRoot(`standard store=${store()}`)], providers: [Outer] })
    const ids = app.get(Snowflake)
    assert.deepEqual([app.get(Outer, { strict: false }).given, app.get(Inner, { strict: false }).given], [[ids], [ids]])
    assert.equal(ids.lease.healthy, true)
    assert.match(ids.next(), /^\d+$/)
    await app.close()
    assert.throws(() => ids.next(), { code: 'CLOSED' })
  })

  test(`${version}: several generators, by name, with factories, and of other kinds`, async () => {
    const settings = Symbol('settings')
    const Config = moduleOf({ providers: [{ provide: settings, useValue: { line: 'standard node=52 detached=true' } }], exports: [settings] })
    const Holder = holder(Snowflake, { type: Object, decorator: InjectIds('photos') }, { type: Object, decorator: InjectIds('orders') },
      { type: Object, decorator: InjectIds() })
    const photos = FrazilModule.forRootAsync({
      name: 'photos',
      imports: [Config],
      inject: [settings],
      useFactory: async ({ line }) => line,
    })
    const app = await start({
      imports: [
        FrazilModule.forRoot({ spec: 'standard node=51', options: { detached: true } }),
        photos,
        FrazilModule.forRoot({ name: 'orders', open: () => Segment.open('orders', { store: store() }) }),
        // The same definition in another module gives the same generator.
        moduleOf({ imports: [photos] }),
      ],
      providers: [Holder],
    })
    const { given } = app.get(Holder)
    assert.deepEqual([given[0].node, given[1].node, given[2].next()], [51, 52, '1'])
    assert.equal(given[3], given[0])
    assert.equal(app.get(getIdsToken('photos')), given[1])
    assert.equal(app.get(getIdsToken()), given[0])
    await app.close()
    for (const ids of given) {
      assert.throws(() => ids.next(), { code: 'CLOSED' })
    }
  })

  test(`${version}: without an argument FRAZIL is read, when the application starts`, async () => {
    const module = FrazilModule.forRoot()
    const own = FrazilModule.forRootAsync({ name: 'own', useFactory: () => undefined })
    process.env.FRAZIL = 'standard node=53 detached=true'
    try {
      const app = await start({ imports: [module, own] })
      assert.deepEqual([app.get(Snowflake).node, app.get(getIdsToken('own')).node], [53, 53])
      await app.close()
    } finally {
      delete process.env.FRAZIL
    }
  })

  test(`${version}: an application whose generator does not open does not start`, async () => {
    const cases = [
      [() => FrazilModule.forRoot('standard'), 'NODE_MISSING'],
      [() => FrazilModule.forRoot('standard store=redis://127.0.0.1:1/0'), 'STORE_UNREACHABLE'],
      [() => FrazilModule.forRoot({ store: 'local' }), 'UNKNOWN_KEY', /option "store" is none of: spec, options, open, name; keys of the spec/],
      [() => FrazilModule.forRoot(5), 'WRONG_TYPE', /options is a number/],
      [() => FrazilModule.forRoot(null), 'WRONG_TYPE', /options is null/],
      [() => FrazilModule.forRoot({ ['__proto__']: 1 }), 'UNKNOWN_KEY', /"__proto__"/],
      [() => FrazilModule.forRoot({ spec: 'standard', open: () => {} }), 'SPEC', /either open/],
      [() => FrazilModule.forRoot({ open: async () => 5 }), 'WRONG_TYPE', /open did not return a generator/],
      [() => FrazilModule.forRootAsync('standard'), 'WRONG_TYPE', /useFactory must be a function .* pass the values themselves to forRoot/],
      [() => FrazilModule.forRootAsync(), 'WRONG_TYPE', /useFactory/],
      [() => FrazilModule.forRootAsync({ useFactory: () => ({ name: 'x' }) }), 'UNKNOWN_KEY', /"name" is none of: spec, options, open;/],
      [() => FrazilModule.forRootAsync({ useFactory: () => { throw new FrazilError('STORE_AUTH', 'mine') } }), 'STORE_AUTH', /^mine$/],
      [() => FrazilModule.forRootAsync({ useFactory: async () => 7 }), 'WRONG_TYPE', /a number/],
    ]
    for (const [module, code, message = /./] of cases) {
      await assert.rejects(async () => start({ imports: [module()] }), error => {
        assert.ok(error instanceof FrazilError, error.stack)
        assert.equal(error.code, code, error.message)
        assert.match(error.message, message)
        return true
      })
    }
  })

  test(`${version}: two of one name are refused, and nothing is opened`, async () => {
    let opened = 0
    const open = async () => {
      opened++
      return Snowflake.open('standard node=54 detached=true')
    }
    const cases = [
      [[FrazilModule.forRoot({ open }), FrazilModule.forRoot({ open })], /imported 2 times without a name: give each generator its own name/],
      [[FrazilModule.forRoot({ name: 'a', open }), moduleOf({ imports: [FrazilModule.forRoot({ name: 'a', open })] })], /2 times of the name "a"/],
      [[1, 2].map(() => FrazilModule.forRootAsync({ useFactory: () => ({ open }) })), /2 times without a name/],
    ]
    for (const [imports, message] of cases) {
      await assert.rejects(start({ imports }), { code: 'CONFLICT', message })
    }
    assert.equal(opened, 0)
    // Two applications in one process do not conflict.
    const module = FrazilModule.forRoot({ open })
    const apps = await Promise.all([1, 2].map(() => start({ imports: [module] })))
    assert.notEqual(apps[0].get(Snowflake), apps[1].get(Snowflake))
    await apps[0].close()
    assert.match(apps[1].get(Snowflake).next(), /^\d+$/)
    await apps[1].close()
  })

  /** Returns a controller of one route, `GET PATH?after=...`, which answers with the pipe's output. */
  function controllerOf(pipe, optional) {
    class Controller {
      find(id, after) {
        return { id: String(id), type: typeof id, after: String(after) }
      }
    }
    common.Get(':id')(Controller.prototype, 'find', Object.getOwnPropertyDescriptor(Controller.prototype, 'find'))
    Reflect.defineMetadata('design:paramtypes', [String, String], Controller.prototype, 'find')
    common.Param('id', pipe)(Controller.prototype, 'find', 0)
    common.Query('after', optional)(Controller.prototype, 'find', 1)
    return decorate(Controller, [common.Controller('orders')])
  }

  test(`${version}: the pipe lets IDs through and answers 400 with the reason`, async () => {
    const js53 = new ParseSnowflakePipe({ optional: true, layout: 'js53' })
    const app = await start({ controllers: [controllerOf(ParseSnowflakePipe, js53)] })
    assert.deepEqual(await ask(app, '/orders/1541815603606036480'), { status: 200, id: '1541815603606036480', type: 'string', after: 'undefined' })
    assert.equal((await ask(app, '/orders/0?after=5')).after, '5')
    for (const [path, message] of [
      ['/orders/abc', /^id: "abc" is not an ID in decimal: the character 'a' at position 0/],
      ['/orders/007', /^id: "007" has leading zeros/],
      ['/orders/9223372036854775808', /^id: .* above 9223372036854775807/],
      ['/orders/%EF%BC%91', /^id: "１"/],
      ['/orders/1e18', /^id: .*'e' at position 1/],
      ['/orders/-0', /^id: .*'-'/],
      [`/orders/${'1'.repeat(5000)}`, /^id: the ID has 5000 characters/],
      ['/orders/5?after=', /^after: "" is not an ID/],
      ['/orders/5?after=1541815603606036480', /^after: .* more bits than the layout's 53/],
      ['/orders/5?after=5&after=6', /^after: the ID is an array/],
    ]) {
      const { status, error, message: text } = await ask(app, path)
      assert.deepEqual([status, error], [400, 'Bad Request'], path)
      assert.match(text, message)
    }
    await app.close()

    const bigint = await start({ controllers: [controllerOf(new ParseSnowflakePipe({ as: 'bigint' }), new ParseSnowflakePipe({ optional: true }))] })
    assert.deepEqual(await ask(bigint, '/orders/9223372036854775807'), { status: 200, id: '9223372036854775807', type: 'bigint', after: 'undefined' })
    await bigint.close()
    assert.throws(() => new ParseSnowflakePipe({ as: 'number' }), { code: 'OUT_OF_RANGE' })
    assert.throws(() => new ParseSnowflakePipe({ exceptionFactory: () => {} }), { code: 'UNKNOWN_KEY' })
    assert.throws(() => new ParseSnowflakePipe(null), TypeError)
    assert.throws(() => new ParseSnowflakePipe().transform(undefined), { message: 'the ID is undefined: it must be a string of decimal digits' })
  })

  test(`${version}: a generator that a test puts in its place is not closed`, async () => {
    // The same as overrideProvider of @nestjs/testing.
    const module = FrazilModule.forRoot('standard')
    const fake = { next: () => '7' }
    module.providers[0] = { provide: getIdsToken(), useValue: fake }
    const app = await start({ imports: [module] })
    assert.equal(app.get(Snowflake).next(), '7')
    await app.close()
  })

  test(`${version}: on SIGTERM the last request is served, and the number is released`, async () => {
    const held = store()
    writeFileSync(join(installed.folder, 'server.cjs'), `
      require('reflect-metadata')
      const common = require('@nestjs/common')
      const { NestFactory } = require('@nestjs/core')
      const { Snowflake } = require('frazil')
      const { FrazilModule } = require('frazil/nestjs')

      class Orders {
        constructor(ids) { this.ids = ids }
        async create() {
          console.log('entered')
          await new Promise(resolve => setTimeout(resolve, 1000))
          return { id: this.ids.next() }
        }
      }
      Reflect.defineMetadata('design:paramtypes', [Snowflake], Orders)
      common.Get()(Orders.prototype, 'create', Object.getOwnPropertyDescriptor(Orders.prototype, 'create'))
      common.Controller()(Orders)
      class AppModule {}
      common.Module({ imports: [FrazilModule.forRoot('standard store=${held}')], controllers: [Orders] })(AppModule)
      NestFactory.create(AppModule, { logger: false }).then(async app => {
        app.enableShutdownHooks()
        await app.listen(0, '127.0.0.1')
        console.log('at', app.getHttpServer().address().port)
      })`)
    const server = spawn(process.execPath, ['server.cjs'], { cwd: installed.folder, stdio: ['ignore', 'pipe', 'inherit'] })
    let output = ''
    const says = pattern => new Promise(resolve => server.stdout.on('data', data => {
      output += data
      const found = pattern.exec(output)
      if (found) {
        resolve(found)
      }
    }))
    const [, port] = await says(/at (\d+)/)
    const entered = says(/entered/)
    const asked = request({ port, host: '127.0.0.1', agent: false }).end()
    await entered
    server.kill('SIGTERM')
    const [response] = await once(asked, 'response')
    assert.match(String(await once(response, 'data')), /^{"id":"\d+"}$/)
    const [code, signal] = await once(server, 'exit')
    assert.deepEqual([code, signal], [null, 'SIGTERM'])
    const slots = spawnSync(process.execPath, [require.resolve('frazil/package.json').replace('package.json', 'cli.js'), 'nodes', '--json', held])
    const { slots: [{ state }] } = JSON.parse(slots.stdout)
    assert.equal(state, 'free')
  })
}

test('without NestJS the error names the package to install, to modules too', () => {
  const { folder } = install()
  const run = (...flags) => spawnSync(process.execPath, flags, { cwd: folder, encoding: 'utf8' }).stderr
  const needed = /frazil\/nestjs needs @nestjs\/common 10 or later: npm install @nestjs\/common@latest\n/
  assert.match(run('-e', "require('frazil/nestjs')"), needed)
  assert.match(run('--input-type=module', '-e', "import 'frazil/nestjs'"), needed)
})

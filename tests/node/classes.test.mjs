// The classes as a program uses them: printed, compared, extended, replaced in tests, iterated.
import assert from 'node:assert/strict'
import { copyFile, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { mock, test } from 'node:test'
import { inspect } from 'node:util'
import * as lite from 'frazil/lite'
import { Buffered, Layout, Numbers, Segment, Snowflake } from 'frazil'
import { manual, refused, rejected, runChild, twitter } from './helper.mjs'

const START = 1700000000000
// 16 IDs in 100 ms, so that opening often waits.
const SLOW = 'layout="time:38@100ms node:10 sequence:4 epoch:2025-01-01" start=zero exhausted=wait'

test('layouts are compared and shown by their text', () => {
  for (const { Layout } of [{ Layout: twitter.constructor }, lite]) {
    const [one, same, other] = [new Layout('twitter'), new Layout(String(new Layout('twitter'))), new Layout('discord')]
    assert.deepStrictEqual(one, same)
    assert.notDeepStrictEqual(one, other)
    assert.equal(one.text, String(one))
    assert.equal(JSON.stringify({ one }), JSON.stringify({ one: one.text }))
    assert.deepStrictEqual(new Layout(JSON.parse(JSON.stringify(one))), one)
    assert.match(inspect(one), /^Layout \{\s+text: 'time:41@1ms datacenter:5 [^']*'\s+\}$/)
    assert.throws(() => { one.text = 'another' }, TypeError)
  }
})

test('two copies of the addon refuse each other\'s objects', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'frazil-copies-'))
  try {
    for (const name of ['index.js', 'native.js', 'package.json', 'frazil.node']) {
      await copyFile(new URL(`../../node/${name}`, import.meta.url), join(folder, name))
    }
    const program = `
      import { createRequire } from 'node:module'
      import * as here from 'frazil'
      const there = createRequire(import.meta.url)(${JSON.stringify(join(folder, 'index.js'))})
      const codes = []
      const { get } = Object.getOwnPropertyDescriptor(here.Snowflake.prototype, 'spec')
      const spec = 'twitter datacenter=1 worker=1 detached=true'
      for (const call of [
        () => here.Layout.prototype.decode.call(new there.Layout('twitter'), 7n),
        () => get.call(new there.Snowflake(spec)),
      ]) {
        try {
          codes.push(String(call()))
        } catch (error) {
          codes.push(error.code)
        }
      }
      console.log(codes.join())`
    assert.equal(await runChild(program), 'WRONG_TYPE,WRONG_TYPE')
  } finally {
    await rm(folder, { recursive: true })
  }
})

test('generators and numbers are shown by their spec, and with no secret', async () => {
  process.env.FRAZIL_TEST_NODE = '1'
  const ids = new Snowflake('twitter datacenter=1 worker=env:FRAZIL_TEST_NODE detached=true')
  const numbers = await Segment.open('shown', { store: 'memory', namespace: 'node-classes' })
  for (const each of [ids, numbers]) {
    assert.equal(inspect(each, { breakLength: Infinity }), `${each.constructor.name} { spec: '${each.spec}' }`)
    assert.equal(String(each), each.spec)
    assert.equal(JSON.stringify([each]), JSON.stringify([each.spec]))
  }
  assert.match(inspect({ ids }, { colors: true }), /worker=env:FRAZIL_TEST_NODE/)
  ids.close()
  assert.match(inspect(ids), /twitter/)
  // A debugger also inspects objects that are not generators yet.
  for (const object of [Object.create(Snowflake.prototype), Snowflake.prototype, Numbers.prototype, new Proxy(ids, {})]) {
    assert.equal(typeof inspect(object), 'string')
    assert.equal(typeof inspect(object, { showProxy: true, depth: 3 }), 'string')
  }
})

test('open refuses a third argument, which a subclass may take', async () => {
  const options = { datacenter: 1, worker: 3, detached: true }
  await rejected('WRONG_TYPE', Snowflake.open('twitter', options, { maxWaitMs: 5 }), 'pass options as argument 2')
  await rejected('WRONG_TYPE', Segment.open('extra', { store: 'memory', namespace: 'node-extra' }, undefined), 'argument 3')
  class Named extends Snowflake {
    constructor(spec, options, name) {
      super(spec, options)
      this.name = name
    }
  }
  assert.equal((await Named.open('twitter', options, 'third')).name, 'third')
})

test('an iterator continues after a refusal', () => {
  const ids = manual('layout="time:41@1ms node:10 sequence:3 epoch:2020-01-01" start=zero exhausted=error node=3', START)
  const iterator = ids[Symbol.iterator]()
  const taken = []
  for (let tick = 0; tick < 3; tick++) {
    ids.setTime(START + tick)
    for (let nth = 0; nth < 8; nth++) {
      const { value, done } = iterator.next()
      assert.equal(done, false)
      taken.push(value)
    }
    refused('EXHAUSTED', () => iterator.next())
    refused('EXHAUSTED', () => iterator.next())
  }
  assert.equal(new Set(taken).size, 24)
  assert.equal(iterator[Symbol.iterator](), iterator)
  ids.setTime(START + 3)
  for (const id of iterator) {
    taken.push(id)
    break
  }
  assert.equal(typeof iterator.next().value, 'string')
  if (iterator.take) {
    assert.equal([...iterator.take(3)].length, 3)
  }
  ids.close()
  refused('CLOSED', () => iterator.next())
})

test('a subclass\'s methods are used, and reach those above them', async () => {
  class Orders extends Snowflake {
    next(...given) {
      return `order-${super.next(...given)}`
    }

    nextBigInt() {
      return -super.nextBigInt()
    }

    text(format) {
      return `${format}:${super.text(format)}`
    }
  }
  const spec = 'twitter datacenter=3 worker=1 clock=manual detached=true'
  for (const ids of [new Orders(spec), await Orders.open(spec)]) {
    ids.setTime(START)
    const minted = []
    for (let nth = 0; nth < 40; nth++) {
      const [decimal, big, hex, waited] = [ids.next(), ids.nextBigInt(), ids.text('hex'), ids.next({ maxWaitMs: 0 })]
      assert.match(decimal, /^order-\d+$/)
      assert.match(hex, /^hex:[0-9a-f]{16}$/)
      minted.push(BigInt(decimal.slice(6)), -big, BigInt(`0x${hex.slice(4)}`), BigInt(waited.slice(6)))
    }
    assert.equal(minted.at(-1) - minted[0], 159n)
    assert.ok(minted.every((id, at) => at === 0 || id === minted[at - 1] + 1n))
    assert.match(ids[Symbol.iterator]().next().value, /^order-/)
  }
  class Counted extends Segment {
    next() {
      return Number(super.next())
    }
  }
  const numbers = await Counted.open('counted', { store: 'memory', namespace: 'node-classes' })
  assert.deepEqual([numbers.next(), numbers.next(), typeof numbers.nextBigInt()], [1, 2, 'bigint'])
})

test('open runs a subclass\'s constructor, with what it was given', async () => {
  class Shop extends Snowflake {
    kind = 'shop'
    #secret = 7

    constructor(node, more) {
      super(SLOW, { node, detached: true })
      this.node2 = node
      this.more = more
    }

    secret() {
      return this.#secret
    }
  }
  for (const shop of [await Shop.open(5, 'more'), await Shop.open(6, 'more')]) {
    assert.ok(shop instanceof Shop)
    assert.deepEqual([shop.kind, shop.more, shop.secret(), shop.node], ['shop', 'more', 7, shop.node2])
    await shop.nextAsync()
    assert.match(inspect(shop), /^Shop \{.*spec.*shop.*\}$/s)
  }
  // Two opens at once, and an open within another constructor.
  class Nested extends Snowflake {
    constructor(...given) {
      const inner = new Snowflake('twitter datacenter=3 worker=2', { maxWaitMs: 1000 })
      super(...given)
      this.inner = inner
      this.other = Snowflake.open('twitter datacenter=3 worker=3')
    }
  }
  const opened = await Promise.all([1, 2, 3].map(node => Nested.open(SLOW, { node })))
  assert.deepEqual(opened.map(ids => ids.node), [1, 2, 3])
  for (const { inner, other } of opened) {
    assert.deepEqual([inner.fields.worker, (await other).fields.worker], [2, 3])
  }
  class Ring extends Buffered {
    label = 'ring'
  }
  const ring = await Ring.open('standard', { node: 77, size: 64, detached: true })
  assert.deepEqual([ring.label, ring.layout.decode(ring.next()).node], ['ring', 77])
  ring.close()
})

test('an error in a constructor rejects open, and leaves nothing pending', async () => {
  class Broken extends Snowflake {
    constructor(...given) {
      super(...given)
      throw new RangeError('broken')
    }
  }
  await assert.rejects(Broken.open(SLOW, { node: 9, detached: true }), /^RangeError: broken$/)
  await assert.rejects(Broken.open('twitter', { datacenter: 3, worker: 4 }), /^RangeError: broken$/)
  await rejected('SPEC', Broken.open('nonsense'))
  class Early extends Snowflake {
    constructor(...given) {
      super(...given)
      this.first = this.next()
    }
  }
  await rejected('WRONG_TYPE', Early.open('twitter', { datacenter: 3, worker: 5 }))
  // After a failed open, the constructor runs normally again.
  assert.equal(typeof new Early('twitter', { datacenter: 3, worker: 5, maxWaitMs: 1000 }).first, 'string')
  class Other extends Snowflake {
    constructor() {
      super('twitter', { datacenter: 3, worker: 6, maxWaitMs: 1000 })
      return { an: 'other' }
    }
  }
  assert.deepEqual(await Other.open(), { an: 'other' })
})

test('a test replaces methods of a class, of a subclass and of an object, and restores them', async () => {
  class Orders extends Snowflake {}
  const spec = 'twitter datacenter=3 worker=7 detached=true'
  const before = [new Snowflake(spec, { maxWaitMs: 1000 }), new Orders(spec, { maxWaitMs: 1000 })]
  const expected = { next: '7', nextBigInt: 7n, text: 'seven' }
  for (const [name, value] of Object.entries(expected)) {
    for (const type of [Snowflake, Orders]) {
      const call = mock.method(type.prototype, name, () => value)
      const after = [new Orders(spec, { maxWaitMs: 1000 }), await Orders.open(spec)]
      const all = type === Snowflake ? [...before, ...after, new Snowflake(spec, { maxWaitMs: 1000 })] : [before[1], ...after]
      for (const ids of all) {
        assert.equal(ids[name]('hex'), value)
      }
      assert.equal(call.mock.callCount(), all.length)
      call.mock.restore()
      for (const ids of [...before, ...after]) {
        assert.notEqual(ids[name](...(name === 'text' ? ['hex'] : [])), value)
      }
    }
    const spy = mock.method(before[0], name)
    const real = before[0][name](...(name === 'text' ? ['hex'] : []))
    assert.equal(typeof real, typeof value)
    assert.notEqual(real, value)
    assert.equal(spy.mock.callCount(), 1)
    spy.mock.restore()
  }
  // A spy on the class that passes calls on.
  const spy = mock.method(Snowflake.prototype, 'next')
  const minted = Array.from({ length: 40 }, () => before[0].next()).map(BigInt)
  assert.ok(minted.every((id, at) => at === 0 || id > minted[at - 1]))
  assert.equal(spy.mock.callCount(), 40)
  spy.mock.restore()
})

test('the end of a scope runs a subclass\'s close', { skip: !Symbol.dispose }, async () => {
  const closed = []
  class Orders extends Snowflake {
    close() {
      closed.push('close')
      super.close()
    }

    async closeAsync() {
      closed.push('closeAsync')
      await super.closeAsync()
    }
  }
  const spec = 'twitter datacenter=3 worker=8 detached=true'
  const ids = new Orders(spec, { maxWaitMs: 1000 })
  ids[Symbol.dispose]()
  await new Orders(spec, { maxWaitMs: 1000 })[Symbol.asyncDispose]()
  assert.deepEqual(closed, ['close', 'closeAsync'])
  refused('CLOSED', () => ids.next())
})

test('an object\'s functions need no this', () => {
  const { next, nextBigInt, text } = new Snowflake('twitter datacenter=3 worker=9', { maxWaitMs: 1000 })
  assert.ok(BigInt(next()) < nextBigInt())
  assert.equal(text('hex').length, 16)
  const bare = Snowflake.prototype.next
  refused('WRONG_TYPE', () => bare())
  refused('WRONG_TYPE', () => bare.call(new Layout('twitter')))
})

'use strict'
// The classes. Their methods call functions of the addon, which take the object as the first argument.

const { inspect, types: { isUint8Array } } = require('util')
const { isMainThread } = require('worker_threads')
const addon = require('./native.js')

// Objects and dates from the addon belong to the realm that loaded it first. Test runners have a realm for each file, so all objects for users
// are made here.
const errors = Object.freeze(Array.from(addon.errorTable(), row => Object.freeze({ ...row })))
const numberOf = new Map(errors.map(({ code, number }) => [code, number]))
const meaningOf = new Map(errors.map(({ code, meaning }) => [code, meaning]))

// Every copy of this file in a process recognizes the errors of the others.
const BRAND = Symbol.for('frazil.FrazilError')

class FrazilError extends Error {
  constructor(code, message, details) {
    if (!numberOf.has(code)) {
      const given = typeof code === 'string' ? JSON.stringify(code.slice(0, 60)) : typeof code
      throw new FrazilError('OUT_OF_RANGE', `code=${given} is none of: ${[...numberOf.keys()].join(', ')}`)
    }
    if (message !== undefined && typeof message !== 'string') {
      throw new FrazilError('WRONG_TYPE', `message is ${message === null ? 'null' : `a ${typeof message}`}: it must be a string`)
    }
    const { retryAfterMs, written, cause } = Object(details)
    super(message === undefined ? meaningOf.get(code) : message, cause === undefined ? undefined : { cause })
    this.code = code
    this.number = numberOf.get(code)
    for (const [name, value] of Object.entries({ retryAfterMs, written })) {
      if (value !== undefined) {
        this[name] = value
      }
    }
  }

  static [Symbol.hasInstance](value) {
    // A subclass recognizes only its own instances.
    return this === FrazilError ? Object(value)[BRAND] === true : Function.prototype[Symbol.hasInstance].call(this, value)
  }
}
own(FrazilError.prototype, 'name', 'FrazilError')
own(FrazilError.prototype, BRAND, true)

// Not enumerable, like methods of a class, and replaceable by tests.
function own(object, name, value) {
  Object.defineProperty(object, name, { value, configurable: true, writable: true })
}

// Converts what the addon has thrown: its refusals are the arguments of an error, after a mark; all other values come from the caller.
function asError(thrown) {
  if (!Array.isArray(thrown) || thrown[0] !== addon.mark) {
    return thrown
  }
  const [, code, message, retryAfterMs, written] = thrown
  return new FrazilError(code, message, { retryAfterMs, written })
}

// The addon's functions. Hot paths have their own catch.
const native = {}
for (const [name, call] of Object.entries(addon).filter(([, value]) => typeof value === 'function')) {
  native[name] = (...given) => {
    try {
      return call(...given)
    } catch (thrown) {
      throw asError(thrown)
    }
  }
}

const newColumn = rows => new BigInt64Array(rows)

class Layout {
  constructor(text) {
    Object.defineProperty(this, 'text', { value: native.layoutParse(this, text), enumerable: true })
  }

  decode(id) {
    const parts = { ...native.layoutDecode(this, id) }
    parts.time = new Date(parts.time)
    const { id: text, time, tick, sequence, looksRounded, nodeNumber, ...fields } = parts
    delete parts.nodeNumber
    // Not enumerable, because `compose(parts)` takes the fields by their names, one of which may be `node`.
    if (!('node' in fields)) {
      Object.defineProperty(parts, 'node', { value: nodeNumber })
    }
    return Object.defineProperty(parts, 'fields', { value: fields })
  }

  decodeMany(ids, options) {
    return { ...native.layoutDecodeMany(this, ids, options, newColumn) }
  }

  compose(parts) {
    return native.layoutCompose(this, parts)
  }

  composeMany(parts) {
    return native.layoutComposeMany(this, parts, newColumn)
  }

  minId(time) {
    return native.layoutMinId(this, time)
  }

  maxId(time) {
    return native.layoutMaxId(this, time)
  }

  equals(other) {
    return native.layoutEquals(this, other)
  }

  toString() {
    return native.layoutInfo(this).text
  }

  toJSON() {
    return native.layoutInfo(this).text
  }

  get epoch() {
    return new Date(native.layoutInfo(this).epoch)
  }

  get expiresAt() {
    return date(native.layoutInfo(this).expiresAt)
  }

  get fieldBits() {
    return { ...native.layoutInfo(this).fieldBits }
  }

  get idsPerSecond() {
    return native.layoutInfo(this).idsPerSecond
  }

  get nodes() {
    return native.layoutInfo(this).nodes
  }

  get sequenceBits() {
    return native.layoutInfo(this).sequenceBits
  }

  get tickMs() {
    return native.layoutInfo(this).tickMs
  }

  get timeBits() {
    return native.layoutInfo(this).timeBits
  }
}

function date(unixMs) {
  return unixMs === undefined ? undefined : new Date(unixMs)
}

// Array.from costs four times as much.
function bigints(numbers) {
  const array = new Array(numbers.length)
  for (let at = 0; at < array.length; at++) {
    array[at] = numbers[at]
  }
  return array
}

// Splits the pieces of a batch: the number of texts, then pieces of several texts, each after their width if it changes.
function strings(pieces) {
  const array = new Array(pieces[0])
  for (let at = 0, next = 1, width = 0; next < pieces.length; next++) {
    const piece = pieces[next]
    if (typeof piece === 'number') {
      width = piece
      continue
    }
    for (let from = 0; from < piece.length; from += width) {
      array[at++] = piece.substring(from, from + width)
    }
  }
  return array
}

const AHEAD = native.idsAhead()
const LONGEST_ID = 19

// Makes a function that mints an ID and returns its text, cut from the text that `write` has written ahead: see next/ahead.rs.
function cutter(write) {
  let piece = ''
  let at = 0
  let width = 0
  return function cut() {
    let written
    try {
      written = write()
    } catch (thrown) {
      throw asError(thrown)
    }
    if (written !== undefined) {
      if (written.length <= LONGEST_ID) {
        return written
      }
      piece = written
      width = piece.length / AHEAD
      at = 0
    }
    // Counts before it cuts: if the cut throws, its ID is lost, but later ones do not shift.
    const from = at
    at += width
    return piece.substring(from, at)
  }
}

// Makes a function like `cutter` that takes a format. The function of a format is made on first use, after its name was checked. The
// last one is cached, because comparing two references to one string costs less than a look-up.
function textCutter(ids) {
  const formats = new Map()
  let last = formats
  let cut
  return function text(format) {
    if (format !== last) {
      if (typeof format !== 'string') {
        return native.snowflakeText(ids, format)
      }
      cut = formats.get(format) || cutter(native.snowflakeWriter(ids, format))
      formats.set(format, cut)
      last = format
    }
    return cut()
  }
}

function bigIntMinter(mint) {
  return function nextBigInt(options) {
    try {
      return arguments.length > 0 ? mint(options) : mint()
    } catch (thrown) {
      throw asError(thrown)
    }
  }
}

// The functions that mint, by the names of their methods.
const snowflakeMinters = {
  next: ids => cutter(native.snowflakeWriter(ids)),
  nextBigInt: ids => bigIntMinter(native.snowflakeBigIntMinter(ids)),
  text: textCutter,
}
const numbersMinters = {
  next: numbers => cutter(native.numbersWriter(numbers)),
  nextBigInt: numbers => bigIntMinter(native.numbersBigIntMinter(numbers)),
}

// The functions with which the prototypes' methods mint, made when needed: for `super.next()`, and after a program has temporarily replaced a
// method.
const inherited = new WeakMap()

function minter(ids, minters, name) {
  if (!inherited.has(ids)) {
    // Throws for objects that are not generators or numbers.
    inherited.set(ids, { next: minters.next(ids) })
  }
  const made = inherited.get(ids)
  made[name] = made[name] || minters[name](ids)
  return made[name]
}

// The functions that an object owns: they cost least, and need no `this`. They replace the prototype's, `standard`, unless the program has
// overridden it.
const ownFunctions = {
  next(type, ids, standard, cut, withOptions) {
    return function next() {
      if (type.next !== standard) {
        return type.next.apply(ids, arguments)
      }
      return arguments.length > 0 ? withOptions(ids, arguments[0]) : cut()
    }
  },

  nextBigInt(type, ids, standard, mint) {
    return function nextBigInt() {
      if (type.nextBigInt !== standard) {
        return type.nextBigInt.apply(ids, arguments)
      }
      return arguments.length > 0 ? mint(arguments[0]) : mint()
    }
  },

  text(type, ids, standard, cut) {
    return function text(format) {
      if (type.text !== standard) {
        return type.text.apply(ids, arguments)
      }
      return arguments.length === 1 ? cut(format) : native.snowflakeText(ids, format, arguments[1])
    }
  },
}

function giveOwn(ids, minters, standard, withOptions) {
  const type = Object.getPrototypeOf(ids)
  for (const [name, make] of Object.entries(minters)) {
    // Keeps the methods of a subclass, and properties that its constructor has set.
    if (ids[name] === standard[name]) {
      own(ids, name, ownFunctions[name](type, ids, standard[name], make(ids), withOptions))
    }
  }
}

// The calls that each signal ends. They share one listener, because Node warns of more than ten on a signal.
const endings = new WeakMap()

function endBy(signal, call) {
  if (!endings.has(signal)) {
    const calls = new Set()
    const end = () => calls.forEach(call => native.endCall(call, signal.reason))
    signal.addEventListener('abort', end)
    endings.set(signal, { calls, end })
  }
  endings.get(signal).calls.add(call)
}

function hasEnded(signal, call) {
  const { calls, end } = endings.get(signal)
  calls.delete(call)
  if (calls.size === 0) {
    endings.delete(signal)
    signal.removeEventListener('abort', end)
  }
}

// Returns whether a call of the addon waits. Then it has returned a promise and the call's number. The pieces of a batch begin with a number.
function waits(given) {
  return Array.isArray(given) && typeof given[0] === 'object'
}

// Ends a call whose promise is not returned.
function abandon([promise, call]) {
  promise.catch(() => {})
  native.endCall(call)
}

// The result of a waiting call. Async like its callers, so that the stack of an error leads to the caller that awaits it.
async function later([promise, call], options) {
  let signal
  try {
    signal = options && options.signal
    if (signal) {
      endBy(signal, call)
    }
  } catch (thrown) {
    abandon([promise, call])
    throw thrown
  }
  try {
    return await promise
  } catch (thrown) {
    throw asError(thrown)
  } finally {
    if (signal) {
      hasEnded(signal, call)
    }
  }
}

// The object that `open` is constructing, whose generator opens off the event loop.
let opening

// The body of the constructors.
function construct(object, type, options, openNow, openLater, attach) {
  if (!opening || opening.type !== type) {
    attach(object, openNow())
    return
  }
  const mine = opening
  opening = undefined
  Object.assign(mine, { object, options, attach, given: openLater() })
}

// Runs `new type(...given)`, and waits off the event loop.
async function open(type, given) {
  // The constructor of a subclass may have more parameters.
  if (given.length > 2 && [Snowflake, Segment, Tickets, Buffered].includes(type)) {
    throw new FrazilError('WRONG_TYPE', `${type.name}.open takes no argument 3: pass options as argument 2`)
  }
  const outer = opening
  const mine = { type }
  opening = mine
  let ids
  try {
    ids = Reflect.construct(type, given)
  } catch (thrown) {
    // The constructor of a subclass has failed after ours.
    if (waits(mine.given)) {
      abandon(mine.given)
    }
    throw thrown
  } finally {
    opening = outer
  }
  if (mine.object) {
    mine.attach(mine.object, waits(mine.given) ? await later(mine.given, mine.options) : mine.given)
  }
  return ids
}

// The layout of a generator never changes, so each generator has one object.
const layouts = new WeakMap()

function layoutOf(ids, text) {
  if (!layouts.has(ids)) {
    layouts.set(ids, new Layout(text(ids)))
  }
  return layouts.get(ids)
}

// The text in the console: the spec, and the properties of a subclass.
const shown = {
  [inspect.custom](depth, options, inspect) {
    let spec
    try {
      spec = this.spec
    } catch (error) {
      // Not open yet, or not a generator.
    }
    return `${this.constructor.name} ${inspect({ spec, ...this }, options)}`
  },
}

// An endless iterator, which continues after an error.
const iterators = Object.create(Object.getPrototypeOf(Object.getPrototypeOf([][Symbol.iterator]())))
own(iterators, Symbol.toStringTag, 'frazil IDs')

function iterate(ids) {
  const iterator = Object.create(iterators)
  own(iterator, 'next', () => ({ value: ids.next(), done: false }))
  return iterator
}

class Snowflake {
  constructor(spec, options) {
    const openLater = () => native.snowflakeOpenAsync(spec, options)
    construct(this, new.target, options, () => native.snowflakeOpen(spec, options), openLater, attachSnowflake)
  }

  static async open(...given) {
    return open(this, given)
  }

  next() {
    return arguments.length > 0 ? native.snowflakeNext(this, arguments[0]) : minter(this, snowflakeMinters, 'next')()
  }

  nextBigInt() {
    return minter(this, snowflakeMinters, 'nextBigInt')(...arguments)
  }

  text(format) {
    return arguments.length === 1 ? minter(this, snowflakeMinters, 'text')(format) : native.snowflakeText(this, format, arguments[1])
  }

  batch(count, options) {
    return strings(native.snowflakeBatch(this, count, options))
  }

  batchBigInt(count, options) {
    return bigints(native.snowflakeBatchBigInt(this, count, options))
  }

  fill(buffer, options) {
    return native.snowflakeFill(this, buffer, options)
  }

  async nextAsync(options) {
    const given = native.snowflakeNextAsync(this, options)
    return waits(given) ? await later(given, options) : given
  }

  async batchAsync(count, options) {
    const given = native.snowflakeBatchAsync(this, count, options)
    return strings(waits(given) ? await later(given, options) : given)
  }

  async nextBigIntAsync(options) {
    const given = native.snowflakeNextAsync(this, options)
    return BigInt(waits(given) ? await later(given, options) : given)
  }

  async batchBigIntAsync(count, options) {
    const given = native.snowflakeBatchAsync(this, count, options)
    return strings(waits(given) ? await later(given, options) : given).map(BigInt)
  }

  stats() {
    return camelCased(native.snowflakeStats(this))
  }

  credit() {
    return native.snowflakeCredit(this)
  }

  setTime(time) {
    native.snowflakeSetTime(this, time)
  }

  observe(id) {
    native.snowflakeObserve(this, id)
  }

  async releaseNodeAsync(options) {
    await later(native.snowflakeReleaseNode(this, options), options)
  }

  close(options) {
    native.snowflakeClose(this, options)
  }

  async closeAsync(options) {
    const given = native.snowflakeCloseAsync(this, options)
    if (waits(given)) {
      await later(given, options)
    }
  }

  get layout() {
    return layoutOf(this, native.snowflakeLayout)
  }

  get node() {
    return native.snowflakeNode(this)
  }

  get fields() {
    return { ...native.snowflakeFields(this) }
  }

  get lease() {
    const lease = native.snowflakeLease(this)
    return lease ? Object.freeze({ ...lease, bound: date(lease.bound), lastError: asError(lease.lastError) }) : undefined
  }

  get spec() {
    return native.snowflakeSpec(this)
  }

  toString() {
    return native.snowflakeSpec(this)
  }

  toJSON() {
    return native.snowflakeSpec(this)
  }

  [Symbol.iterator]() {
    return iterate(this)
  }
}

// The kind of numbers that one of the three classes, or a subclass, opens. Names are not compared, because bundlers rename classes.
function supplyOf(type) {
  const supplies = { Segment, Tickets, Buffered }
  return Object.keys(supplies).find(name => type === supplies[name] || type.prototype instanceof supplies[name])
}

class Numbers {
  constructor(spec, options) {
    const supply = supplyOf(new.target)
    const openLater = () => native.numbersOpenAsync(supply, spec, options)
    construct(this, new.target, options, () => native.numbersOpen(supply, spec, options), openLater, attachNumbers)
  }

  static async open(...given) {
    return open(this, given)
  }

  next() {
    return arguments.length > 0 ? native.numbersNext(this, arguments[0]) : minter(this, numbersMinters, 'next')()
  }

  nextBigInt() {
    return minter(this, numbersMinters, 'nextBigInt')(...arguments)
  }

  batch(count, options) {
    return strings(native.numbersBatch(this, count, options))
  }

  batchBigInt(count, options) {
    return bigints(native.numbersBatchBigInt(this, count, options))
  }

  fill(buffer, options) {
    return native.numbersFill(this, buffer, options)
  }

  async nextAsync(options) {
    const given = native.numbersNextAsync(this, options)
    return waits(given) ? await later(given, options) : given
  }

  async batchAsync(count, options) {
    const given = native.numbersBatchAsync(this, count, options)
    return strings(waits(given) ? await later(given, options) : given)
  }

  async nextBigIntAsync(options) {
    const given = native.numbersNextAsync(this, options)
    return BigInt(waits(given) ? await later(given, options) : given)
  }

  async batchBigIntAsync(count, options) {
    const given = native.numbersBatchAsync(this, count, options)
    return strings(waits(given) ? await later(given, options) : given).map(BigInt)
  }

  async discardAsync(options) {
    await later(native.numbersDiscard(this, options), options)
  }

  close(options) {
    native.numbersClose(this, options)
  }

  async closeAsync(options) {
    const given = native.numbersCloseAsync(this, options)
    if (waits(given)) {
      await later(given, options)
    }
  }

  stats() {
    return camelCased(native.numbersStats(this))
  }

  get prepared() {
    return native.numbersPrepared(this)
  }

  get lastError() {
    return asError(native.numbersLastError(this) || undefined)
  }

  get spec() {
    return native.numbersSpec(this)
  }

  toString() {
    return native.numbersSpec(this)
  }

  toJSON() {
    return native.numbersSpec(this)
  }

  [Symbol.iterator]() {
    return iterate(this)
  }
}

class Segment extends Numbers {}
class Tickets extends Numbers {}

class Buffered extends Numbers {
  get layout() {
    return layoutOf(this, native.numbersLayout)
  }
}

// Node before 18.18 has neither symbol.
const disposal = Symbol.dispose ? {
  [Symbol.dispose]() {
    this.close()
  },

  async [Symbol.asyncDispose]() {
    await this.closeAsync()
  },
} : {}

for (const { prototype } of [Snowflake, Numbers]) {
  for (const methods of [shown, disposal]) {
    Reflect.ownKeys(methods).forEach(name => own(prototype, name, methods[name]))
  }
}

// The methods before a program replaces any.
const snowflakeStandard = standard(Snowflake, snowflakeMinters)
const numbersStandard = standard(Numbers, numbersMinters)

function standard({ prototype }, minters) {
  return Object.fromEntries(Object.keys(minters).map(name => [name, prototype[name]]))
}

// Connects a new object with its Rust value, and adds its own functions.
function attachSnowflake(ids, opened) {
  native.snowflakeAttach(ids, opened)
  giveOwn(ids, snowflakeMinters, snowflakeStandard, native.snowflakeNext)
}

function attachNumbers(numbers, opened) {
  native.numbersAttach(numbers, opened)
  giveOwn(numbers, numbersMinters, numbersStandard, native.numbersNext)
}

// The callers for whom leases are released on SIGTERM.
const wishes = new Set()

function onSigterm() {
  process.removeListener('SIGTERM', onSigterm)
  native.releaseAll()
  // Runs as the first listener, so that it sees all others, also those added by `once`.
  if (process.listenerCount('SIGTERM') === 0) {
    process.kill(process.pid, 'SIGTERM')
  }
}

function closeAll() {
  native.releaseAll()
}

// On Windows, a library is unloaded after its threads have ended. So process.exit() and uncaught errors release numbers earlier, after the
// program's listeners of 'exit'. Every other end, and that of a worker, ends an environment.
if (process.platform === 'win32' && isMainThread) {
  const { reallyExit } = process
  process.reallyExit = code => {
    native.releaseAll()
    reallyExit.call(process, code)
  }
  process.once('uncaughtExceptionMonitor', () => process.once('exit', () => native.releaseAll()))
}

function closeOnSigterm() {
  const wish = {}
  // Other threads receive no signals.
  if (isMainThread) {
    if (wishes.size === 0) {
      process.prependListener('SIGTERM', onSigterm)
    }
    wishes.add(wish)
  }
  return () => {
    if (wishes.delete(wish) && wishes.size === 0) {
      process.removeListener('SIGTERM', onSigterm)
    }
  }
}

// Wrapped, to have the names and the `length` of the declarations.
function compareIds(a, b) {
  return native.compareIds(a, b)
}

function formatId(id, format) {
  return native.formatId(id, format)
}

function parseId(text, format = 'decimal', prefix = '') {
  return native.parseId(text, format, prefix)
}

function decodeObjectId(text) {
  const parts = native.decodeObjectId(text)
  return { ...parts, time: new Date(parts.time) }
}

function minObjectId(time) {
  return native.minObjectId(time)
}

function maxObjectId(time) {
  return native.maxObjectId(time)
}

function parseUuid(text) {
  return native.parseUuid(text)
}

function isUuid(value) {
  return native.isUuid(value)
}

function uuidVersion(text) {
  return native.uuidVersion(text)
}

function uuidTime(text) {
  return new Date(native.uuidTime(text))
}

function uuidBytes(text) {
  return Uint8Array.from(Buffer.from(native.parseUuid(text).replace(/-/g, ''), 'hex'))
}

function uuidFromBytes(bytes) {
  if (!isUint8Array(bytes) || bytes.length !== 16) {
    const given = isUint8Array(bytes) ? `a Uint8Array of ${bytes.length}` : typeof bytes
    throw new FrazilError('WRONG_TYPE', `bytes is ${given}: it must be a Uint8Array of 16`)
  }
  return native.parseUuid(Buffer.from(bytes).toString('hex'))
}

function uuid7Min(time) {
  return native.uuid7Min(time)
}

function uuid7Max(time) {
  return native.uuid7Max(time)
}

// Raw functions.
const make = { objectId: addon.objectId, uuid4: addon.uuid4, uuid7: addon.uuid7 }

function objectId() {
  try {
    return make.objectId()
  } catch (thrown) {
    throw asError(thrown)
  }
}

function restored() {
  native.restored()
}

function uuid4() {
  try {
    return make.uuid4()
  } catch (thrown) {
    throw asError(thrown)
  }
}

function uuid7(time) {
  if (time !== undefined) {
    return native.uuid7At(time)
  }
  try {
    return make.uuid7()
  } catch (thrown) {
    throw asError(thrown)
  }
}

const camelCase = name => name.replace(/_(.)/g, (_, letter) => letter.toUpperCase())

// Converts the core's names to JavaScript's; values without a meaning are undefined.
function camelCased(stats) {
  return Object.freeze(Object.fromEntries(Object.entries(stats).map(([name, value]) => [camelCase(name), value])))
}

function stats() {
  return native.stats().map(camelCased)
}

const metrics = Object.freeze(native.metricTable().map(metric => Object.freeze({ ...metric, field: camelCase(metric.field) })))

const version = native.version()

module.exports = {
  Buffered, FrazilError, Layout, Numbers, Segment, Snowflake, Tickets, closeAll, closeOnSigterm, compareIds, errors, formatId,
  metrics, parseId, restored, stats, version,
}

// Not enumerable, because `frazil/uuid` and `frazil/objectid` export them.
Object.defineProperty(module.exports, 'interop', {
  value: {
    uuid: { uuid4, uuid7, uuid7Min, uuid7Max, parseUuid, uuidTime, isUuid, uuidVersion, uuidBytes, uuidFromBytes },
    objectid: { objectId, decodeObjectId, minObjectId, maxObjectId },
  },
})

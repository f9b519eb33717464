'use strict'
// The classes. What they do is in the addon, whose every function takes the object first.

const { isMainThread } = require('worker_threads')
const native = require('./native.js')

class FrazilError extends Error {
  constructor(message, code, number, retryAfterMs, written) {
    super(message)
    this.code = code
    this.number = number
    this.retryAfterMs = retryAfterMs
    this.written = written
  }
}
Object.defineProperty(FrazilError.prototype, 'name', { value: 'FrazilError', configurable: true, writable: true })
native.begin(FrazilError, text => process.emitWarning(text, { type: 'FrazilWarning', code: 'FRAZIL_WAIT' }))

class Layout {
  constructor(text) {
    native.layoutParse(this, text)
  }

  decode(id) {
    return native.layoutDecode(this, id)
  }

  compose(parts) {
    return native.layoutCompose(this, parts)
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

  get epoch() {
    return native.layoutInfo(this).epoch
  }

  get expiresAt() {
    return native.layoutInfo(this).expiresAt
  }

  get fields() {
    return native.layoutInfo(this).fields
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

// Array.from costs four times as much.
function bigints(numbers) {
  const array = new Array(numbers.length)
  for (let at = 0; at < array.length; at++) {
    array[at] = numbers[at]
  }
  return array
}

// The pieces of a batch: how many texts, and then pieces of some, each behind their width where that is another one.
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

// A function that mints an ID and gives its text, cut from what `write` has written ahead: see next/ahead.rs. With an argument the call is another one's.
function cutting(write, withOptions) {
  let piece = ''
  let at = 0
  let width = 0
  return function next() {
    if (arguments.length > 0) {
      return withOptions(arguments[0])
    }
    const written = write()
    if (written !== undefined) {
      if (written.length <= LONGEST_ID) {
        return written
      }
      piece = written
      width = piece.length / AHEAD
      at = 0
    }
    // Counted first: should the cut throw, its ID is lost and no later one shifts.
    const from = at
    at += width
    return piece.substring(from, at)
  }
}

// As a class's methods: not listed, and a test may replace it.
function own(object, name, value) {
  Object.defineProperty(object, name, { value, configurable: true, writable: true })
}

// Each format's function is made when it is first asked for: by then its name has been checked. The last one is at hand, because to compare two
// names that are one string costs less than any look-up.
function textOf(ids) {
  const formats = new Map()
  let last = formats
  let cut
  return function text(format) {
    if (arguments.length === 1 && format === last) {
      return cut()
    }
    if (arguments.length !== 1 || typeof format !== 'string') {
      return native.snowflakeText(ids, format, arguments[1])
    }
    cut = formats.get(format) || cutting(native.snowflakeWriter(ids, format))
    formats.set(format, cut)
    last = format
    return cut()
  }
}

// For each signal the calls that it ends, which share one listener: Node warns of more than ten on a signal.
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

// What a call of the addon gives: a value at once, or a promise with a number, by which a signal ends it.
function waited(given, options) {
  if (!Array.isArray(given) || !(given[0] instanceof Promise)) {
    return given
  }
  const [promise, call] = given
  const signal = options && options.signal
  if (!signal) {
    return promise
  }
  endBy(signal, call)
  return promise.finally(() => hasEnded(signal, call))
}

// A generator's layout never changes: one object for each generator.
const layouts = new WeakMap()

function layoutOf(ids, text) {
  if (!layouts.has(ids)) {
    layouts.set(ids, new Layout(text(ids)))
  }
  return layouts.get(ids)
}

// Gives a new object what is behind it, and functions of its own, which cost least: `next`, `nextBigInt`, `text`.
function attachSnowflake(ids, opened) {
  native.snowflakeAttach(ids, opened)
  own(ids, 'next', cutting(native.snowflakeWriter(ids), options => native.snowflakeNext(ids, options)))
  own(ids, 'text', textOf(ids))
}

function attachNumbers(numbers, opened) {
  native.numbersAttach(numbers, opened)
  own(numbers, 'next', cutting(native.numbersWriter(numbers), options => native.numbersNext(numbers, options)))
}

class Snowflake {
  constructor(spec, options) {
    attachSnowflake(this, native.snowflakeOpen(spec, options))
  }

  static async open(spec, options) {
    const opened = await waited(native.snowflakeOpenAsync(spec, options), options)
    const ids = Object.create(this.prototype)
    attachSnowflake(ids, opened)
    return ids
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
    return waited(native.snowflakeNextAsync(this, options), options)
  }

  async batchAsync(count, options) {
    return strings(await waited(native.snowflakeBatchAsync(this, count, options), options))
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

  async renew(options) {
    await waited(native.snowflakeRenew(this, options), options)
  }

  close(options) {
    native.snowflakeClose(this, options)
  }

  async closeAsync(options) {
    await waited(native.snowflakeCloseAsync(this, options), options)
  }

  get layout() {
    return layoutOf(this, native.snowflakeLayout)
  }

  get node() {
    return native.snowflakeNode(this)
  }

  get fields() {
    return native.snowflakeFields(this)
  }

  get lease() {
    const lease = native.snowflakeLease(this)
    return lease ? Object.freeze(lease) : undefined
  }

  get spec() {
    return native.snowflakeSpec(this)
  }

  *[Symbol.iterator]() {
    for (;;) {
      yield this.next()
    }
  }
}

// What a class that is one of the three, or extends one, is opened as. A bundler may have given the classes other names.
function supplyOf(type) {
  const supplies = { Segment, Tickets, Buffered }
  return Object.keys(supplies).find(name => type === supplies[name] || type.prototype instanceof supplies[name])
}

class Numbers {
  constructor(spec, options) {
    attachNumbers(this, native.numbersOpen(supplyOf(new.target), spec, options))
  }

  static async open(spec, options) {
    const opened = await waited(native.numbersOpenAsync(supplyOf(this), spec, options), options)
    const numbers = Object.create(this.prototype)
    attachNumbers(numbers, opened)
    return numbers
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
    return waited(native.numbersNextAsync(this, options), options)
  }

  async batchAsync(count, options) {
    return strings(await waited(native.numbersBatchAsync(this, count, options), options))
  }

  async renew(options) {
    await waited(native.numbersRenew(this, options), options)
  }

  close(options) {
    native.numbersClose(this, options)
  }

  async closeAsync(options) {
    await waited(native.numbersCloseAsync(this, options), options)
  }

  get prepared() {
    return native.numbersPrepared(this)
  }

  get lastError() {
    return native.numbersLastError(this) || undefined
  }

  get spec() {
    return native.numbersSpec(this)
  }

  *[Symbol.iterator]() {
    for (;;) {
      yield this.next()
    }
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
if (Symbol.dispose) {
  const method = value => ({ value, configurable: true, writable: true })
  for (const { prototype } of [Snowflake, Numbers]) {
    Object.defineProperty(prototype, Symbol.dispose, method(prototype.close))
    Object.defineProperty(prototype, Symbol.asyncDispose, method(prototype.closeAsync))
  }
}

// Who wants what is leased given back on SIGTERM.
const wishes = new Set()

function onSigterm() {
  process.removeListener('SIGTERM', onSigterm)
  native.giveBack()
  // The first listener sees all others, also those that are called once.
  if (process.listenerCount('SIGTERM') === 0) {
    process.kill(process.pid, 'SIGTERM')
  }
}

function closeOnSigterm() {
  const wish = {}
  // No other thread is told of signals.
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

// Wrapped, so that they have the names and the `length` of the declarations.
function formatId(id, format) {
  return native.formatId(id, format)
}

function parseId(text, format) {
  return native.parseId(text, format)
}

function decodeObjectId(text) {
  return native.decodeObjectId(text)
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

function uuidTime(text) {
  return native.uuidTime(text)
}

// Raw functions.
const { objectId, uuid4, uuid7 } = native

const errors = Object.freeze(native.errorTable().map(Object.freeze))
const version = native.version()

module.exports = {
  Buffered, FrazilError, Layout, Numbers, Segment, Snowflake, Tickets, closeOnSigterm, decodeObjectId, errors, formatId, maxObjectId,
  minObjectId, objectId, parseId, parseUuid, uuid4, uuid7, uuidTime, version,
}

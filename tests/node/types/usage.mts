// Uses every declaration. Each line under @ts-expect-error must not compile.
import { Buffered, FrazilError, Layout, Numbers, Segment, Snowflake, Tickets, compareIds, errors, formatId, parseId, version } from 'frazil'
import { parseUuid, uuid4, uuid7, uuidTime } from 'frazil/uuid'
import { decodeObjectId, maxObjectId, minObjectId, objectId } from 'frazil/objectid'
import { isUuid, uuid7Max, uuid7Min, uuidBytes, uuidFromBytes, uuidVersion } from 'frazil/uuid'
import type { Column, Columns, Composition, ErrorCode, ErrorRow, IdLike, Instant, Lease, SnowflakeOptions, Parts, TextFormat } from 'frazil'
import { closeOnSigterm } from 'frazil'
import whole from 'frazil'
import type { ObjectIdParts } from 'frazil/objectid'
import type { BufferedOptions, WaitOptions, SegmentOptions, AsyncOptions } from 'frazil'

const options: SnowflakeOptions = { datacenter: 1, worker: 7n, epoch: new Date(), after: '7', detached: true, lag: undefined }
const ids: Snowflake = new Snowflake('twitter', options)
export const opened: Promise<Snowflake> = Snowflake.open(undefined, { layout: new Layout('twitter'), worker: 'hostname' })
new Snowflake()
export const ofDefault: typeof Snowflake = whole.Snowflake

const id: string = ids.next()
const next: () => string = ids.next
const big: bigint = ids.nextBigInt()
const many: string[] = ids.batch(10)
const bigs: bigint[] = ids.batchBigInt(10)
const written: number = ids.fill(new BigInt64Array(10))
const later: Promise<string> = ids.nextAsync()
const manyLater: Promise<string[]> = ids.batchAsync(10)
export const bigsLater: [Promise<bigint>, Promise<bigint[]>] = [ids.nextBigIntAsync(), ids.batchBigIntAsync(10)]
const format: TextFormat = 'base62'
const text: string = ids.text(format)
const credit: number = ids.credit()
const time: Instant = 0
ids.setTime(time)
ids.setTime(new Date())
ids.observe('1541815603606036480')
ids.observe(1541815603606036480n)
const released: Promise<void> = ids.releaseNodeAsync()
const closed: Promise<void> = ids.closeAsync()
const lease: Lease | undefined = ids.lease
const bound: Date | undefined = lease?.bound
const trouble: FrazilError | undefined = lease?.lastError
const left: number | undefined = lease?.left
const leased: (string | number | bigint | boolean | undefined)[] = [lease?.node, lease?.store, lease?.namespace, lease?.healthy]
for (const each of ids) {
  each.length
  break
}
const layout: Layout = ids.layout
const node: number | bigint = ids.node
const worker: number | bigint | undefined = ids.fields['worker']
const spec: string = ids.spec
ids.close()
ids[Symbol.dispose]()
using scoped = new Snowflake('twitter', options)
export async function scope(): Promise<string> {
  await using ids = await Snowflake.open('standard', { store: 'local', namespace: 'eu', window: '60s', renew: '10s' })
  return ids.nextAsync()
}

const segmentOptions: SegmentOptions = { store: ['file:/a', 'file:/b'], namespace: 'eu', step: 100, start: 7n, increment: '2', offset: [1, 2n], wait: '1s' }
const orders: Segment = new Segment('orders', segmentOptions)
export const moved: Promise<Segment> = Segment.open('orders', { store: 'mysql://a/leaf', table: 'leaf' })
const base: Numbers = orders
const photos: Promise<Tickets> = Tickets.open('photos', { store: 'file:/a file:/b' })
const bufferedOptions: BufferedOptions = { node: 7, size: 8192, refill: 50, empty: 'error', lag: '1s' }
const ring: Promise<Buffered> = Buffered.open('standard', bufferedOptions)
export const ringLayout: Promise<Layout> = ring.then(ids => ids.layout)
export const number: string = base.next()
export const numberBig: bigint = base.nextBigInt()
export const numbersMany: [string[], bigint[], number] = [base.batch(1), base.batchBigInt(1), base.fill(new BigInt64Array(1))]
export const numbersLater: [Promise<string>, Promise<string[]>] = [orders.nextAsync(), orders.batchAsync(2)]
export const numbersState: [number, FrazilError | undefined, string] = [orders.prepared, orders.lastError, orders.spec]
export const numbersDone: Promise<void>[] = [orders.discardAsync(), orders.closeAsync(), orders[Symbol.asyncDispose]()]
export const iterated: IteratorResult<string, never> = orders[Symbol.iterator]().next()
orders.close()
new Tickets('photos').close()

const anyId: IdLike = 7
const parts: Parts = layout.decode(anyId)
const stamp: Date = parts.time
const sequence: number | bigint = parts.sequence
const tick: number | bigint = parts.tick
const rounded: boolean = parts.looksRounded
const field = parts['worker']
const composition: Composition = { time: new Date(), sequence: 0, worker: 1, datacenter: 1n }
const composed: string = layout.compose(composition)
const idColumn = new BigInt64Array(2)
const columns: Columns<Column> = layout.decodeMany(idColumn)
const worker64: BigInt64Array | undefined = columns['worker']
const someColumns: { time: BigInt64Array, tick: BigInt64Array } = layout.decodeMany(new BigUint64Array(2), { fields: ['time', 'tick'] })
const reused: BigInt64Array | BigUint64Array = layout.decodeMany(idColumn, { out: { time: idColumn } }).time
const composedMany: BigInt64Array = layout.composeMany({ time: idColumn, sequence: idColumn, datacenter: idColumn, worker: new BigUint64Array(2) })
const bounds: string[] = [layout.minId(0), layout.maxId(new Date())]
const same: boolean = layout.equals(new Layout(`${layout}`))
const numbers: number[] = [layout.idsPerSecond, layout.sequenceBits, layout.tickMs, layout.timeBits, ...Object.values(layout.fieldBits)]
const nodes: bigint = layout.nodes
const dates: (Date | undefined)[] = [layout.epoch, layout.expiresAt]

const row: ErrorRow | undefined = errors[0]
const code: ErrorCode | undefined = row?.code
const sorted: (string | bigint)[] = ['10', 9n].sort(compareIds)
const texts: string[] = [version, formatId(1n, 'hex'), parseId('1', 'decimal'), parseId('1')]
try {
  ids.next()
} catch (error) {
  if (error instanceof FrazilError && error.code === 'WOULD_BLOCK') {
    const wait: number | undefined = error.retryAfterMs
    const details: (number | string)[] = [error.number, error.written ?? 0, error.message, wait ?? 0]
    details.length
  }
}

const others: string[] = [objectId(), minObjectId(0), maxObjectId(new Date()), uuid4(), uuid7(), parseUuid(text)]
const object: ObjectIdParts = decodeObjectId(text)
const made: [string, Date, number, number, number, number] = [object.id, object.time, object.random, object.counter, object.machine, object.process]
const uuidMade: Date = uuidTime(text)
export const uuidBounds: string[] = [uuid7(0), uuid7(new Date()), uuid7Min(0), uuid7Max(new Date()), uuidFromBytes(uuidBytes(text))]
export const version7 = (given: unknown): number => isUuid(given) ? uuidVersion(given) : 0

// @ts-expect-error: a number is not a spec
new Snowflake(7)
// @ts-expect-error: Numbers is abstract
new Numbers()
// @ts-expect-error: a segment's tag is its spec's first word
new Segment()
// @ts-expect-error: the tag of tickets is the first word of their spec
Tickets.open(undefined, { store: 'memory' })
// @ts-expect-error: a segment has no layout
orders.layout
// @ts-expect-error: a segment has no node number
new Segment('orders', { node: 7 })
// @ts-expect-error: a generator has one store
new Snowflake('standard', { store: ['memory'] })
// @ts-expect-error: IDs are strings
const wrong: number = ids.next()
// @ts-expect-error: the wrong kind of buffer
ids.fill(new Float64Array(1))
// @ts-expect-error: an array of strings is not a column
layout.decodeMany(['1'])
// @ts-expect-error: the time is missing
layout.composeMany({ sequence: idColumn })
// @ts-expect-error: the preset has no such column
new Layout('twitter').decodeMany(idColumn, { fields: ['node'] })
// @ts-expect-error: the preset's worker is missing
new Layout('twitter').composeMany({ time: idColumn, sequence: idColumn, datacenter: idColumn })
// @ts-expect-error: no such form
ids.text('base64')
// @ts-expect-error: a lease is read-only
lease!.node = 1
// @ts-expect-error: an error has a code
new FrazilError()
// @ts-expect-error: the code must be one of the table
new FrazilError('NO_SUCH')
// @ts-expect-error: an error has no other properties
new FrazilError('SPEC', 'no', { retry: 5 })
// @ts-expect-error: the table is not to be changed
errors.push()
// @ts-expect-error: the sequence is missing
layout.compose({ time: 0 })
// @ts-expect-error: null is not undefined
new Snowflake('twitter', { worker: null })

export { big, bigs, bounds, code, composed, credit, dates, field, id, later, many, manyLater, next, node, nodes, numbers, rounded, same, scoped }
export { photos }
export { bound, closed, leased, left, made, others, released, trouble, uuidMade }
export { sequence, spec, stamp, text, texts, tick, worker, written, wrong }

// Waits.
const signal: AbortSignalLike = { aborted: false, addEventListener() {}, removeEventListener() {} }
interface AbortSignalLike {
  readonly aborted: boolean
  addEventListener(type: 'abort', listener: () => void): void
  removeEventListener(type: 'abort', listener: () => void): void
}
const timeout: WaitOptions = { maxWaitMs: 5 }
const waiting: AsyncOptions = { maxWaitMs: Infinity, signal }
export const waited = [
  ids.next(timeout), ids.nextBigInt(timeout), ids.text('hex', timeout), ids.batch(1, timeout), ids.batchBigInt(1, { maxWaitMs: undefined }),
  ids.fill(new BigInt64Array(1), timeout), ids.close(timeout), new Snowflake('twitter', { worker: 1, maxWaitMs: 5 }),
  new Segment('orders', { store: 'memory', maxWaitMs: 5 }), new Buffered('standard', { node: 1, maxWaitMs: 5 }),
]
export const promised = [
  ids.nextAsync(waiting), ids.batchAsync(1, waiting), ids.releaseNodeAsync(waiting), ids.closeAsync({ signal }), Snowflake.open('standard', { node: 1, signal }),
  Segment.open('orders', { store: 'memory', signal }), Buffered.open('standard', { node: 1, maxWaitMs: 5, signal }),
]
export const takenBack: () => void = closeOnSigterm()
// @ts-expect-error A synchronous call takes no signal.
ids.next({ signal })
// @ts-expect-error A time-out is a number.
ids.nextAsync({ maxWaitMs: '5' })
// @ts-expect-error A text is not a signal.
ids.nextAsync({ signal: 'abort' })

// Errors for tests.
export const errorsMade: FrazilError[] = [
  new FrazilError('SPEC'), new FrazilError('WOULD_BLOCK', 'busy', { retryAfterMs: 5, cause: new Error() }), new FrazilError('EXHAUSTED', undefined, { written: 5 }),
]

// Every endless iterator.
export const endless: IterableIterator<string> = ids[Symbol.iterator]()

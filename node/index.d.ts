/// <reference lib="esnext.disposable" />

/**
 * 64-bit, time-ordered, globally unique IDs: Twitter's Snowflake and everything that grew from it.
 *
 * An ID is a decimal string, because a JavaScript number rounds above 2^53; a `bigint` on request.
 * Every bad input, and every refusal, is a {@link FrazilError}.
 *
 * @example
 * const ids = new Snowflake('twitter', { datacenter: 1, worker: 7 })
 * const id = ids.next()                  // '2124562388358426624'
 * ids.layout.decode(id).time             // a Date
 */

/** An ID, as the functions take it: decimal text, a `bigint`, or a number up to 2^53 - 1. A larger number is refused: it has been rounded. */
export type IdLike = string | bigint | number

/** An instant: a Date, or Unix milliseconds. */
export type Instant = Date | number

/** The text forms of an ID, each of a fixed width, so that text sorts like the numbers: 19, 11, 13 and 16 characters. */
export type TextFormat = 'decimal' | 'base62' | 'base32' | 'hex'

/** The name of an error. Append-only, and the same in every language. */
export type ErrorCode =
  | 'SPEC'
  | 'UNKNOWN_KEY'
  | 'OUT_OF_RANGE'
  | 'LAYOUT_INVALID'
  | 'ID_INVALID'
  | 'WRONG_TYPE'
  | 'CLOSED'
  | 'LAYOUT_EXPIRED'
  | 'BEFORE_EPOCH'
  | 'CLOCK_BACK'
  | 'EXHAUSTED'
  | 'WOULD_BLOCK'
  | 'CLOCK_NOT_SET'
  | 'CLOCK_SKEW'
  | 'NODE_MISSING'
  | 'NODE_IN_USE'
  | 'NO_FREE_NODE'
  | 'LEASE_EXHAUSTED'
  | 'FORKED'
  | 'CONFLICT'
  | 'COPIED'
  | 'STORE_UNREACHABLE'
  | 'STORE_AUTH'
  | 'STORE_READONLY'
  | 'STORE_CORRUPT'
  | 'STORE_CHANGED'
  | 'STORE_UNSUITABLE'
  | 'LAYOUT_MISMATCH'
  | 'STORE_NOT_BUILT'
  | 'TAG_MISSING'
  | 'SEGMENT_EXHAUSTED'
  | 'SEGMENT_MISMATCH'
  | 'INTERNAL'

/** A row of the error table. */
export interface ErrorRow {
  /** The stable name. */
  readonly code: ErrorCode
  /** The stable number, for example 203. */
  readonly number: number
  /** The meaning of the error, in one sentence. */
  readonly meaning: string
}

/**
 * The counts of a generator or a segment in this process when it was asked. `undefined` where a value means nothing: a given number has
 * no lease. Numbers above `Number.MAX_SAFE_INTEGER` are rounded.
 */
export interface Stats {
  /** The kind of the source. */
  readonly kind: 'snowflake' | 'segment' | 'tickets' | 'buffered'
  /** The canonical spec line with which it was opened first; it shows no secret. */
  readonly spec: string
  /** IDs issued, or numbers given out. */
  readonly issued: number
  /** Calls that waited: for the clock, for a lease, for numbers of a store. */
  readonly waits: number
  /** The time that calls waited, in total. */
  readonly waitSeconds: number
  /** Calls that found the sequence used up, or no number in time. */
  readonly exhausted: number
  /** Calls that ended with an error in place of IDs. */
  readonly refused: number
  /** The number of times that the clock went back by a tick or more. */
  readonly rollbacks: number
  /** The furthest that the clock went back. */
  readonly largestRollbackSeconds: number
  /** The distance by which the last ID is stamped ahead of the clock. */
  readonly driftSeconds: number
  /** Ticks that were entered before the clock showed them. */
  readonly borrowedTicks: number
  /** The time until the layout ends. */
  readonly layoutSecondsLeft: number | undefined
  /** The node number that is leased. */
  readonly leaseNode: number | undefined
  /** The end of what the lease covers, in seconds since 1970. */
  readonly leaseBound: number | undefined
  /** The time for which the lease still covers IDs without its store. */
  readonly leaseSecondsLeft: number | undefined
  /** The number of times that the lease was extended. */
  readonly leaseRenewals: number | undefined
  /** Calls of the store for the lease that failed. */
  readonly leaseFailures: number | undefined
  /** The time for which calls for the lease have failed; 0 when all is well. */
  readonly leaseFailingSeconds: number | undefined
  /** Node numbers that another process had taken. */
  readonly leasesLost: number | undefined
  /** Numbers left in the range being used. */
  readonly rangeLeft: number | undefined
  /** Numbers that lie ready behind that range. */
  readonly rangeReady: number | undefined
  /** The size of the next range that is fetched. */
  readonly rangeStep: number | undefined
  /** Calls that found nothing ready. */
  readonly hungry: number | undefined
}

/** A row of the table from which exporters take names: the same in every language. */
export interface Metric {
  /** The property of {@link Stats}. */
  readonly field: Exclude<keyof Stats, 'kind' | 'spec'>
  /** The name in Prometheus. */
  readonly prometheus: string
  /** The name in OpenTelemetry. */
  readonly opentelemetry: string
  /** The unit there. */
  readonly unit: string
  /** True for a counter, which only grows; false for a gauge. */
  readonly isCounter: boolean
  /** The help text. */
  readonly help: string
}

/** The table of what can be read of {@link Stats}. */
export const metrics: readonly Metric[]

/**
 * Returns the counts of every open generator and segment of the process, in all threads, sorted by kind and spec; those of the same kind and spec are
 * one. A number that is given without a store stays open as long as the process runs. Asks no store.
 *
 * @example
 * for (const { kind, spec, issued } of stats()) console.log(kind, spec, issued)
 */
export function stats(): Stats[]

/** Every error, in the order of the numbers. */
export const errors: readonly ErrorRow[]

/** The version of the package. */
export const version: string

/** The details of an error beside its code. */
export interface ErrorDetails {
  /** The value of {@link FrazilError.retryAfterMs}. */
  retryAfterMs?: number | undefined
  /** The value of {@link FrazilError.written}. */
  written?: number | undefined
  /** The cause, as in `Error`. */
  cause?: unknown
}

/**
 * A refusal: its code is stable; its message names the argument, the value and what is allowed.
 *
 * Where a process has loaded the package several times, as test runners do, each copy's errors are `instanceof` the others' class, too.
 */
export class FrazilError extends Error {
  /**
   * An error as frazil makes them, for tests of a program that handles them. The message is the meaning of the code where none is given.
   *
   * @example
   * mock.method(ids, 'next', () => { throw new FrazilError('WOULD_BLOCK', 'busy', { retryAfterMs: 5 }) })
   *
   * @throws {FrazilError} `OUT_OF_RANGE` for an unknown code, `WRONG_TYPE` for a message that is no string.
   */
  constructor(code: ErrorCode, message?: string, details?: ErrorDetails)
  /** The stable name, for example `'CLOCK_BACK'`. */
  readonly code: ErrorCode
  /** The stable number, for example 203. */
  readonly number: number
  /** In how many ms a retry can succeed, rounded up, where that is known: `WOULD_BLOCK`, `EXHAUSTED`, `CLOCK_BACK`. Absent elsewhere. */
  readonly retryAfterMs?: number
  /** The number of IDs that `fill` had written when it failed. Absent on the errors of all other calls, which are all or nothing. */
  readonly written?: number
}

/** The limit of a call that blocks the event loop. */
export interface WaitOptions {
  /**
   * At most so many milliseconds, then `WOULD_BLOCK`: 0 or more, `Infinity` too. Without it 2 ms in place (`batch`: see there; opening with
   * `store: 'memory'`: 1 s), and for a promise as long as the spec line says. It counts from the call.
   */
  maxWaitMs?: number | undefined
}

/** The limit of a promise's wait, and what ends it sooner. */
export interface AsyncOptions extends WaitOptions {
  /** A signal: when it aborts, the promise is rejected with its reason at once. After one that has aborted before the call, nothing begins. */
  signal?: Signal | undefined
}

/** An AbortSignal, whoever declares it. */
export interface Signal {
  readonly aborted: boolean
  readonly reason?: any
  addEventListener(type: 'abort', listener: () => void): void
  removeEventListener(type: 'abort', listener: () => void): void
}

/** The node fields of each preset. */
export interface PresetFields {
  standard: 'node'
  twitter: 'datacenter' | 'worker'
  simple: 'worker' | 'datacenter'
  leaf: 'worker'
  shardingsphere: 'worker'
  baidu: 'worker'
  sonyflake: 'machine'
  discord: 'worker' | 'process'
  instagram: 'shard'
  game: 'server'
  game16: 'server'
  js53: 'node'
}

/** The name of a preset. */
export type Preset = keyof PresetFields

/** A spec line that begins with `P`, or is `P`. */
export type Spec<P extends string> = P | `${P} ${string}`

/** A node field's number, or `'hostname'`, `'hostname+N'`. */
export type NodeValue = string | number | bigint

/** A class that extends another: not that one itself. */
export type Extending<C, Base> = Base extends C ? never : C

/** A value that is read from an environment variable. */
export type FromEnv = `env:${string}`

/** A duration: an integer and its unit. */
export type Duration = `${bigint}${'ms' | 's' | 'm' | 'h'}` | FromEnv

/** The reaction of a generator that has no ID for now: an error, a wait, or stamps ahead of the clock. */
export type Reaction = 'error' | 'wait' | `wait:${Duration}` | 'ahead' | `ahead:${Duration}` | FromEnv

/** The first sequence of a tick. */
export type Start = 'zero' | `${'alternate' | 'random' | 'continue'}:${bigint}` | FromEnv

/** The keys of a spec line but for the node fields: the policies; and how long the opening may wait. */
export interface SpecOptions extends WaitOptions {
  /** The fields from the most significant, where no preset is named: `'time:41@1ms node:10 sequence:12 epoch:2025-01-01'`. */
  layout?: string | Layout<any> | undefined
  /** Overrides the epoch: `'2025-01-01'`, RFC 3339, a Date, or Unix milliseconds from 1990 on. */
  epoch?: string | number | bigint | Date | undefined
  /**
   * The store in which a node number is leased: `'local'`, `'file:DIR'`, `'redis://...'`, `'postgresql://...'`, `'mysql://...'`, `'etcd://...'`,
   * `'zookeeper://...'`, `'frazil://...'`; `'memory'` for tests.
   */
  store?: string | undefined
  /** Separates applications in a store: 1 to 64 of a-z, A-Z, 0-9, `.`, `_`, `-`. */
  namespace?: string | undefined
  /** `'shared-slots'`, or `'disposable'`: a number is never used again. */
  lease?: 'shared-slots' | 'disposable' | FromEnv | undefined
  /** The time that a lease covers ahead. The default is `'60s'` for servers. For `local` and `file:` it is `'4s'` with `standard`: drift + 3 `renew`, at least `'3s'`. */
  window?: Duration | undefined
  /** The interval at which a lease is extended: `'10s'`, the default for servers; `'1s'` for `local` and `file:`. */
  renew?: Duration | undefined
  /** The clock went back: `'error'`, `'wait'`, `'wait:D'`, `'ahead:D'`; D is an integer and ms, s, m or h. */
  rollback?: Reaction | undefined
  /** The tick's sequence is used up: `'error'`, `'wait'`, `'wait:D'`, `'ahead:D'`. */
  exhausted?: Reaction | undefined
  /** The first sequence of a tick: `'zero'`, `'alternate:N'`, `'random:N'`, `'continue:N'`. */
  start?: Start | undefined
  /** Stamp IDs up to so much late, as a credit for bursts: `'16s'`. */
  lag?: Duration | undefined
  /** An ID of the system before: never issue one at or below it. */
  after?: IdLike | undefined
  /** `'system'`, or `'manual'`: the program says the time with `setTime`. */
  clock?: 'system' | 'manual' | FromEnv | undefined
  /** A separate state, outside the process-wide one: for tests. */
  detached?: boolean | string | undefined
  /** Other processes of this machine may issue from the number too: for programs that never fill the same table. */
  shared?: boolean | string | undefined
  /** An option of `open` alone, as in {@link AsyncOptions}. A node field of that name is set in the spec line. */
  signal?: Signal | undefined
}

/**
 * The keys of a spec line: the policies, and a number for each node field; and how long the opening may wait.
 *
 * A Date is taken for `epoch`, a {@link Layout} for `layout`; `undefined` leaves a key out. Where the preset is known the compiler refuses
 * any other key.
 */
export type SnowflakeOptions<P extends string = string> = SpecOptions &
  (P extends Preset
    ? { [field in PresetFields[P]]?: NodeValue | undefined }
    : { [field: string]: string | number | bigint | boolean | Date | Layout | Signal | undefined })

/** An integer of a layout: a number up to 53 bits, which all of a preset have; a wider one is a bigint. */
export type Integer<P extends string = string> = P extends Preset ? number : number | bigint

/** The node fields by their names, from the most significant. */
export type Fields<P extends string = string> = P extends Preset ? { readonly [field in PresetFields[P]]: number } : { readonly [field: string]: number | bigint }

/**
 * The parts of an ID; each node field is a property by its name. `Parts<'twitter'>` knows `datacenter` and `worker`.
 *
 * A field of up to 53 bits is a number, a wider one a bigint.
 */
export type Parts<P extends string = string> = {
  /** The ID, in decimal. */
  readonly id: string
  /** The instant at which the ID's tick starts. */
  readonly time: Date
  /** The raw time field: ticks since the layout's epoch. */
  readonly tick: Integer<P>
  /** The counter within the tick. */
  readonly sequence: Integer<P>
  /** True if the ID looks as if JavaScript had rounded it. A hint, not a proof: about one ID in 256 does by chance. */
  readonly looksRounded: boolean
  /** The node number, all node fields side by side, as of a generator; where one of several fields is named `node`, that field. */
  readonly node: Integer<P>
  /** The node fields alone. Not listed: JSON and `{ ...parts }` have them by their names. */
  readonly fields: Fields<P>
} & (P extends Preset ? Fields<P> : { readonly [field: string]: string | number | bigint | boolean | Date | Fields })

/** The widths of the node fields by their names, from the most significant. */
export type FieldBits<P extends string = string> = P extends Preset ? { readonly [field in PresetFields[P]]: number } : Record<string, number>

/** The input from which an ID is composed: every node field by its name, the time and the sequence. */
export type Composition<P extends string = string> = {
  /** An instant in the ID's tick. */
  time: Instant
  /** The counter within the tick. */
  sequence: number | bigint
} & (P extends Preset ? { [field in PresetFields[P]]: number | bigint } : { [field: string]: number | bigint | Date })

/**
 * A layout: the fields of an ID, the length of a tick, and the epoch. Immutable.
 *
 * @example
 * const layout = new Layout('time:41@1ms business:4 machine:6 sequence:12 epoch:2025-01-01')
 * layout.nodes                           // 1024n
 * layout.fieldBits                       // { business: 4, machine: 6 }
 */
export class Layout<P extends string = string> {
  /**
   * Parses a layout's text or a preset's name.
   *
   * @throws {FrazilError} `LAYOUT_INVALID` when it cannot exist, and why; `SPEC` or `OUT_OF_RANGE` for an unknown preset or a bad epoch.
   */
  constructor(text: P)
  /** The canonical text, which parses to the same layout: by it `deepEqual` and test runners compare. */
  readonly text: string
  /**
   * Takes an ID apart.
   *
   * @throws {FrazilError} `ID_INVALID` for what is no ID, or has more bits than the layout.
   */
  decode(id: IdLike): Parts<P>
  /**
   * Puts an ID together; nothing is masked.
   *
   * @example
   * new Layout('twitter').compose({ time: 1656432460105, datacenter: 11, worker: 26, sequence: 0 })   // '1541815603606036480'
   *
   * @throws {FrazilError} `OUT_OF_RANGE` when a value does not fit its field, `UNKNOWN_KEY` for a field that the layout has not,
   * `NODE_MISSING` for one that is not given, `BEFORE_EPOCH` and `LAYOUT_EXPIRED` for an instant outside the layout.
   */
  compose(parts: Composition<P>): string
  /**
   * The smallest ID of the tick that holds an instant: `id >= minId(t)` in a query.
   *
   * @throws {FrazilError} `BEFORE_EPOCH` and `LAYOUT_EXPIRED` for an instant outside the layout.
   */
  minId(time: Instant): string
  /**
   * The largest ID of the tick that holds an instant: `id <= maxId(t)` in a query.
   *
   * @throws {FrazilError} `BEFORE_EPOCH` and `LAYOUT_EXPIRED` for an instant outside the layout.
   */
  maxId(time: Instant): string
  /** Returns whether two layouts are equal: fields, tick and epoch. */
  equals(other: Layout<any>): boolean
  /** Returns `text`. */
  toString(): string
  /** Returns `text`, which `new Layout(...)` takes. */
  toJSON(): string
  /** The instant at which the time field is 0. */
  get epoch(): Date
  /** The first instant that cannot be stamped; `undefined` when that is after the year 9999. */
  get expiresAt(): Date | undefined
  /** The width of each node field, from the most significant. */
  get fieldBits(): FieldBits<P>
  /** The IDs that one generator can mint in a second, sustained. */
  get idsPerSecond(): number
  /** The number of generators that can be told apart. */
  get nodes(): bigint
  /** The width of the sequence. */
  get sequenceBits(): number
  /** The length of a tick in ms, 1 to 3,600,000. */
  get tickMs(): number
  /** The width of the time field. */
  get timeBits(): number
}

/** Endless IDs. */
export interface IdIterator extends Iterator<string, never, undefined> {
  [Symbol.iterator](): IdIterator
}

/** A leased node number and how it stands. */
export interface Lease {
  /** The node number, all node fields side by side: a bigint where they have more than 53 bits. */
  readonly node: number | bigint
  /** The last instant whose IDs the lease covers as it stands; `undefined` for a disposable number, which has no end. */
  readonly bound: Date | undefined
  /** The store, without its credentials. */
  readonly store: string
  /** The namespace, which separates applications in the store. */
  readonly namespace: string
  /** True if the last attempt to reach the store succeeded. */
  readonly healthy: boolean
  /** Why it did not. */
  readonly lastError: FrazilError | undefined
  /** The number of disposable numbers that were left when this one was taken. At most `Number.MAX_SAFE_INTEGER` is reported. */
  readonly left: number | undefined
}

/**
 * A generator of IDs: unique, and strictly increasing over all handles and worker threads of the process.
 *
 * All handles on the same layout and node number share one state, also those of worker threads; an object itself stays in its thread.
 * A call waits in place for at most 2 ms, or `maxWaitMs`; where the policies would wait longer it is `WOULD_BLOCK`, which says when to come
 * back. The async forms wait off the event loop, and in no thread of libuv's pool; a signal, `maxWaitMs` and `close` end their waits. A
 * promise that waits keeps the process alive; `process.exit` and the end of a worker do not wait for it.
 *
 * @example
 * const ids = new Snowflake('twitter', { datacenter: 1, worker: 7 })
 * ids.next()                             // '2124562388358426624'
 * ids.batch(1000)                        // string[]
 * ids.fill(new BigInt64Array(1000))      // 1000
 */
export class Snowflake<P extends string = string> {
  /**
   * Opens a generator. The options are the keys of the spec line; with neither, the environment variable FRAZIL is read.
   *
   * A node number that is given without a store waits for the next tick, so that a restart cannot repeat; with a tick over 1 ms that may be
   * `WOULD_BLOCK`, and with a store it often is: use {@link Snowflake.open}.
   *
   * @throws {FrazilError} `SPEC`, `UNKNOWN_KEY`, `OUT_OF_RANGE`, `LAYOUT_INVALID`, `ID_INVALID` and `WRONG_TYPE` for what is given;
   * `NODE_MISSING`; `LAYOUT_EXPIRED` and `BEFORE_EPOCH` for a layout that does not hold now; `CONFLICT` when the number is open with other
   * policies; `NODE_IN_USE`, `NO_FREE_NODE`, `LAYOUT_MISMATCH`, `CLOCK_SKEW`, `STORE_NOT_BUILT` and the other `STORE_*` from the store.
   */
  constructor(spec?: Spec<P>, options?: SnowflakeOptions<P>)
  /**
   * Opens a generator off the event loop; the arguments and errors are the constructor's.
   *
   * With a store it may wait for a crashed holder, or for the first start on Redis (66 s): it gives up after 105 s with `LEASE_EXHAUSTED`, and
   * sooner where `maxWaitMs` or `signal` say so: with `NODE_IN_USE`, which names the holder of a held number. After a second it says for what and until when, once: `process.emitWarning` of type
   * `FrazilWarning` and code `FRAZIL_WAIT`, in this thread.
   *
   * @example
   * const ids = await Snowflake.open('standard', { store: 'local', signal: AbortSignal.timeout(10_000) })
   */
  static open<P extends string = string>(this: typeof Snowflake, spec?: Spec<P>, options?: SnowflakeOptions<P>): Promise<Snowflake<P>>
  /**
   * `new` of a class that extends this one, which waits off the event loop. Its constructor runs, with what this is given, before the generator
   * is open: it cannot use it.
   */
  static open<C extends new (...given: any) => Snowflake>(this: Extending<C, typeof Snowflake>, ...given: ConstructorParameters<C>): Promise<InstanceType<C>>
  /**
   * The next ID. The function keeps its generator alive and needs no `this`: `const next = ids.next`.
   *
   * IDs that are minted one right after the other share their memory by sixteen: one that is kept alone keeps 350 bytes, not 40.
   *
   * @throws {FrazilError} `CLOCK_BACK` and `EXHAUSTED` as the policies say, `WOULD_BLOCK`, `LAYOUT_EXPIRED`, `BEFORE_EPOCH`, `CLOSED`;
   * `NODE_IN_USE` where another process has the number that is given without a store;
   * `CLOCK_NOT_SET` under a manual clock; `LEASE_EXHAUSTED` when the store was away for longer than the lease reaches.
   */
  next(options?: WaitOptions): string
  /** The next ID as a bigint. Otherwise as `next`. */
  nextBigInt(options?: WaitOptions): bigint
  /**
   * Ascending IDs: all or nothing, at most 16,777,216.
   *
   * A batch that the layout makes within 50 ms may wait 50 ms in place: 100,000 IDs of `twitter`. A larger one is `WOULD_BLOCK`: use
   * `batchAsync`, or a longer `maxWaitMs`.
   *
   * @throws {FrazilError} As `next`; `OUT_OF_RANGE` for a larger count.
   */
  batch(count: number, options?: WaitOptions): string[]
  /** Returns a batch as bigints. */
  batchBigInt(count: number, options?: WaitOptions): bigint[]
  /**
   * Fills a buffer with ascending IDs and returns how many: without strings, and without garbage.
   *
   * No other thread may use a shared buffer meanwhile.
   *
   * @throws {FrazilError} As `next`; `written` says how many IDs are there already.
   */
  fill(buffer: BigInt64Array, options?: WaitOptions): number
  /** The next ID, waiting off the event loop if it must; `WOULD_BLOCK` after `maxWaitMs`, and `CLOSED` when the object is closed meanwhile. */
  nextAsync(options?: AsyncOptions): Promise<string>
  /** Ascending IDs, waiting off the event loop if they must: all or nothing. It ends as `nextAsync`; the IDs made until then are not used. */
  batchAsync(count: number, options?: AsyncOptions): Promise<string[]>
  /** Returns `nextAsync` as a bigint. */
  nextBigIntAsync(options?: AsyncOptions): Promise<bigint>
  /** Returns `batchAsync` as bigints. */
  batchBigIntAsync(count: number, options?: AsyncOptions): Promise<bigint[]>
  /** A new ID as text of a fixed width; in JSON an ID is what `next` gives, without leading zeros. Otherwise as `next`; it needs no `this` either. */
  text(format: TextFormat, options?: WaitOptions): string
  /**
   * Returns the counts of this process, over all handles and threads; `issued` is exact when no call is under way. Asks no store, and works on what
   * is closed.
   */
  stats(): Stats
  /**
   * The number of IDs that could be minted now with no stamp ahead of the clock: with `lag`, the credit for a burst. At most
   * `Number.MAX_SAFE_INTEGER` is reported.
   */
  credit(): number
  /**
   * Sets the time of `clock=manual`. Backwards is a rollback.
   *
   * @throws {FrazilError} `SPEC` without `clock=manual`, `OUT_OF_RANGE` outside the years 1 to 9999.
   */
  setTime(time: Instant): void
  /**
   * Never issues an ID at or below this one from now on: `after` at run time, to take over from another generator.
   *
   * Every call that begins later, in any worker thread, gives a larger ID; one that lies below the next ID changes nothing, except that a
   * sequence number may be skipped.
   *
   * @throws {FrazilError} `OUT_OF_RANGE` for an ID further ahead of the clock than D of `rollback=ahead:D` or `exhausted=ahead:D`;
   * `ID_INVALID` for one of another layout, `LAYOUT_EXPIRED` for one in its last tick; `FORKED`, `CLOSED`.
   */
  observe(id: IdLike): void
  /**
   * Releases a leased node number; the next ID leases another. A hook for machines that are about to be cloned: after it every clone
   * leases a number of its own. IDs go on increasing. The next `next` is often `WOULD_BLOCK`: `nextAsync` waits for the store.
   *
   * @throws {FrazilError} `SPEC` for a number that is given without a store; `LEASE_EXHAUSTED` or `STORE_UNREACHABLE`
   * when the store takes too long; `CLOSED`.
   */
  releaseNodeAsync(options?: AsyncOptions): Promise<void>
  /**
   * Closes this handle: every later call is `CLOSED`; the properties stay. Closing twice is harmless.
   *
   * Promises of this object that wait are rejected with `CLOSED`. The last handle of a leased number gives it back, which this waits for up
   * to 2 ms; the rest goes on in the background.
   *
   * @throws {FrazilError} `WOULD_BLOCK` where the store has not been told within a `maxWaitMs` that was given.
   */
  close(options?: WaitOptions): void
  /**
   * Closes like `close`; the promise is fulfilled when the number is given back, or the store has not answered for 5 s. A signal ends the wait, and not
   * the closing.
   */
  closeAsync(options?: AsyncOptions): Promise<void>
  /** The layout. */
  get layout(): Layout<P>
  /**
   * The node number, all node fields side by side: a bigint where they have more than 53 bits. It throws `COPIED` in a copy of the machine that
   * has issued nothing yet, as `fields` does.
   */
  get node(): Integer<P>
  /** The value of each node field, from the most significant. */
  get fields(): Fields<P>
  /** The leased node number and how it stands; `undefined` for one that is given without a store. */
  get lease(): Lease | undefined
  /** The canonical spec line, which shows no value of an environment variable. */
  get spec(): string
  /** Returns `spec`. */
  toString(): string
  /** Returns `spec`. */
  toJSON(): string
  /** Endless `next`. A refusal does not end it: the next call tries again. */
  [Symbol.iterator](): IdIterator
  /** `close`, where the runtime has `Symbol.dispose`: `using ids = new Snowflake(...)`. */
  [Symbol.dispose](): void
  /** `closeAsync`, where the runtime has `Symbol.asyncDispose`: `await using ids = await Snowflake.open(...)`. */
  [Symbol.asyncDispose](): Promise<void>
}

/** The keys of the spec line of a {@link Segment} or {@link Tickets}. */
export interface SegmentOptions {
  /** A store, as in {@link SnowflakeOptions}; several in a list, or separated by spaces: each has numbers of its own, and one that is alive is enough. */
  store?: string | readonly string[] | undefined
  /** Separates applications in a store: 1 to 64 of a-z, A-Z, 0-9, `.`, `_`, `-`. */
  namespace?: string | undefined
  /** The size of the first range, and of the smallest: 1000. Not for tickets. */
  step?: string | number | bigint | undefined
  /** The first number of a tag that is new: 1. */
  start?: string | number | bigint | undefined
  /** The distance between numbers of one store: as many as there are stores. Not for tickets. */
  increment?: string | number | bigint | undefined
  /** Which numbers each store hands out: 1, 2, ... Not for tickets. */
  offset?: string | number | bigint | readonly (string | number | bigint)[] | undefined
  /** That system's own table in PostgreSQL or MariaDB/MySQL, whose rows say the rest. Not for tickets. */
  table?: 'leaf' | 'tinyid' | undefined
  /** The longest wait of a call for a number: `'5s'`. */
  wait?: Duration | undefined
}

/** The keys of the spec line of a {@link Buffered}: the generator's, and the ring's. */
export type BufferedOptions<P extends string = string> = SnowflakeOptions<P> & {
  /** The number of prefetched IDs: 65536; at most 16,777,216. */
  size?: string | number | bigint | undefined
  /** More are made when less than so many percent are left: 50. */
  refill?: string | number | bigint | undefined
  /** The reaction of an empty ring: `'wait'` (5 s), `'wait:D'`, `'error'`. */
  empty?: 'error' | 'wait' | `wait:${Duration}` | FromEnv | undefined
}

/**
 * Numbers that a thread prepares ahead of those who take them: what {@link Segment}, {@link Tickets} and {@link Buffered} have in common.
 *
 * A number is given out once. An object stays in its thread; worker threads and child processes open their own. A call waits in place
 * for at most 2 ms; where numbers take longer it is `WOULD_BLOCK`, and the async forms wait off the event loop.
 */
export abstract class Numbers {
  protected constructor()
  /**
   * The next number. The function keeps its object alive and needs no `this`: `const next = orders.next`.
   *
   * @throws {FrazilError} Segments and tickets: `SEGMENT_EXHAUSTED` when none came in time, or none are left below 2^63; `TAG_MISSING`,
   * `SEGMENT_MISMATCH`, `STORE_*`. A ring: as its generator. `WOULD_BLOCK`; `CLOSED`.
   */
  next(options?: WaitOptions): string
  /** The next number as a bigint. */
  nextBigInt(options?: WaitOptions): bigint
  /**
   * So many numbers: all or nothing, at most 16,777,216.
   *
   * @throws {FrazilError} As `next`; what it had taken by then is a gap, so that `batchAsync` is better where numbers take long.
   */
  batch(count: number, options?: WaitOptions): string[]
  /** Returns a batch as bigints. */
  batchBigInt(count: number, options?: WaitOptions): bigint[]
  /**
   * Fills a buffer and returns how many. No other thread may use a shared one meanwhile.
   *
   * @throws {FrazilError} As `next`; `written` says how many are there already.
   */
  fill(buffer: BigInt64Array, options?: WaitOptions): number
  /** The next number, waiting off the event loop if it must. */
  nextAsync(options?: AsyncOptions): Promise<string>
  /** So many numbers, waiting off the event loop if they must: all or nothing. */
  batchAsync(count: number, options?: AsyncOptions): Promise<string[]>
  /** Returns `nextAsync` as a bigint. */
  nextBigIntAsync(options?: AsyncOptions): Promise<bigint>
  /** Returns `batchAsync` as bigints. */
  batchBigIntAsync(count: number, options?: AsyncOptions): Promise<bigint[]>
  /**
   * Drops what is prepared, so that a machine that is cloned now does not give the same numbers out twice; the leased node number of a
   * {@link Buffered} is given back, too. The next call prepares new ones.
   */
  discardAsync(options?: AsyncOptions): Promise<void>
  /**
   * Closes: what is prepared is lost, and every later call is `CLOSED`, `prepared` and `lastError` too. Closing twice is harmless.
   *
   * Promises of this object that wait are rejected with `CLOSED`. The leased node number of a {@link Buffered} is given back, which this
   * waits for up to 2 ms; the rest goes on in the background.
   *
   * @throws {FrazilError} `WOULD_BLOCK` where the store has not been told within a `maxWaitMs` that was given.
   */
  close(options?: WaitOptions): void
  /**
   * Closes like `close`; the promise is fulfilled when the number is given back, or the store has not answered for 5 s. A signal ends the wait, and not
   * the closing.
   */
  closeAsync(options?: AsyncOptions): Promise<void>
  /**
   * Returns the counts of this process, over all handles and threads; `issued` is exact when no call is under way. Asks no store, and works on what
   * is closed.
   */
  stats(): Stats
  /** The number of prefetched numbers, without those of the range being used. */
  get prepared(): number
  /** The last failure of the prefetch: one store of several is away, for example. `undefined` when all is well. */
  get lastError(): FrazilError | undefined
  /** The canonical spec line, which shows no secret. */
  get spec(): string
  /** Returns `spec`. */
  toString(): string
  /** Returns `spec`. */
  toJSON(): string
  /** Endless `next`. A refusal does not end it: the next call tries again. */
  [Symbol.iterator](): IdIterator
  /** `close`, where the runtime has `Symbol.dispose`. */
  [Symbol.dispose](): void
  /** `closeAsync`, where the runtime has `Symbol.asyncDispose`. */
  [Symbol.asyncDispose](): Promise<void>
}

/**
 * Increasing 63-bit numbers from ranges that a store hands out: Leaf-segment, Tinyid, CosId's SegmentChain.
 *
 * A range belongs to one object; the next one is fetched in the background. Numbers increase within an object; among objects and processes, and
 * with several stores, they do not. What was fetched and not used at the end is a gap.
 *
 * @example
 * const orders = await Segment.open('orders', { store: 'local' })
 * orders.next()                          // '1'
 */
export class Segment extends Numbers {
  /**
   * Opens a tag; waits for the first range for 2 ms. One that takes longer is fetched in the background, and the first call waits for it:
   * with {@link Segment.open} there is no such wait.
   *
   * @throws {FrazilError} `SPEC`, `UNKNOWN_KEY`, `OUT_OF_RANGE` and `WRONG_TYPE` for what is given; as `next`: `SEGMENT_EXHAUSTED` when no number
   * came within `wait`, or none are left below 2^63; `SEGMENT_MISMATCH` when the tag has another increment or offset; `TAG_MISSING`, `STORE_*`.
   */
  constructor(spec: string, options?: SegmentOptions & WaitOptions)
  /** Opens a tag off the event loop, waiting up to `wait`; the arguments and errors are the constructor's. */
  static open<T extends Segment>(this: new (...given: any) => T, spec: string, options?: SegmentOptions & AsyncOptions): Promise<T>
}

/**
 * Single numbers from two stores or more in turn: Flickr's ticket servers. One store that is alive is enough.
 *
 * Nothing is prepared ahead: every number costs a round trip to a store, for which `nextAsync` and `batchAsync` wait.
 *
 * @example
 * const photos = new Tickets('photos', { store: ['mysql://a/tickets', 'mysql://b/tickets'] })
 * await photos.nextAsync()
 */
export class Tickets extends Numbers {
  /**
   * Opens a tag; the stores are asked when a number is.
   *
   * @throws {FrazilError} `SPEC`, `UNKNOWN_KEY`, `OUT_OF_RANGE` and `WRONG_TYPE` for what is given.
   */
  constructor(spec: string, options?: SegmentOptions & WaitOptions)
  /** Opens like the constructor, off the event loop. */
  static open<T extends Tickets>(this: new (...given: any) => T, spec: string, options?: SegmentOptions & AsyncOptions): Promise<T>
}

/**
 * A ring of IDs that a thread prepares: UidGenerator's cached mode, over any generator.
 *
 * IDs are stamped when they are prepared, not when they are taken. The ring is dropped, and filled anew, when the clock has gone back.
 *
 * @example
 * const ids = await Buffered.open('standard', { node: 7, size: 8192 })
 * ids.layout.decode(ids.next()).node     // 7
 */
export class Buffered<P extends string = string> extends Numbers {
  /**
   * Opens the generator, and fills the ring for 2 ms; a larger ring is filled in the background. `WOULD_BLOCK` where the generator takes
   * longer: use {@link Buffered.open}.
   *
   * @throws {FrazilError} `SPEC`, `OUT_OF_RANGE`; those of {@link Snowflake}.
   */
  constructor(spec?: Spec<P>, options?: BufferedOptions<P>)
  /** Opens the generator and fills the ring off the event loop; the arguments and errors are the constructor's. */
  static open<P extends string = string>(this: typeof Buffered, spec?: Spec<P>, options?: BufferedOptions<P>): Promise<Buffered<P>>
  /** Opens like {@link Snowflake.open}, for a class that extends this one. */
  static open<C extends new (...given: any) => Buffered>(this: Extending<C, typeof Buffered>, ...given: ConstructorParameters<C>): Promise<InstanceType<C>>
  /** The generator's layout. */
  get layout(): Layout<P>
}

/**
 * Closes every generator and ring of this process that leases its number, in all threads, and releases the numbers, as the end of the process
 * does. It waits for the stores, up to 0.5 s. Every later call of such a handle is `CLOSED`.
 */
export function closeAll(): void

/**
 * Gives leased numbers back on SIGTERM, in all threads: later calls on their generators are `CLOSED`, and a ring gives out what it has
 * prepared first. It waits for the stores for half a second at most.
 *
 * A program without another listener dies by SIGTERM after that, as it would have; other listeners are called, and end the program as
 * they like. Calling it again is harmless. In a worker thread, which is told of no signal, it does nothing: call it in the main thread.
 *
 * A program that answers requests after SIGTERM needs IDs until they are done: it calls `closeAsync` then, or ends; the end of a process
 * gives numbers back.
 *
 * @example
 * closeOnSigterm()
 * const ids = await Snowflake.open('standard', { store: 'redis://...' })
 *
 * @returns A function that takes it back.
 */
export function closeOnSigterm(): () => void

/**
 * The order of two IDs, for `Array.prototype.sort`: -1, 0 or 1. IDs are strings without leading zeros, and as plain text a longer one
 * sorts before a shorter one: `'10'` before `'9'`.
 *
 * @example
 * ['10', '9', 8n].sort(compareIds)   // [8n, '9', '10']
 *
 * @throws {FrazilError} `ID_INVALID` for what is no ID, `WRONG_TYPE` for another type.
 */
export function compareIds(a: IdLike, b: IdLike): -1 | 0 | 1

/**
 * An ID as text of a fixed width. In JSON an ID is what `next` gives, or `String(bigint)`: decimal without leading zeros.
 *
 * @throws {FrazilError} `ID_INVALID` for what is no ID, `OUT_OF_RANGE` for an unknown format.
 */
export function formatId(id: IdLike, format: TextFormat): string

/**
 * Parses the text of an ID, decimal where no format is named; gives canonical decimal.
 *
 * @throws {FrazilError} `ID_INVALID` for a wrong length, a bad character, or a number above 2^63 - 1.
 */
export function parseId(text: string, format?: TextFormat): string

/**
 * Tells frazil that this process was restored from a snapshot, or copied with its machine: for a runtime's hook.
 *
 * From here on it issues nothing that another copy may issue too: leased node numbers, prefetched numbers and random bits are dropped, and the
 * next call leases anew. Generators whose numbers are given without a store, or come from `local`, `file:` or `memory`, throw `COPIED`. What the
 * program was handed before is in all copies. Holds for all threads. Not needed where the machine has a VMClock device, or where
 * `FRAZIL_GENERATION` names a file.
 */
export function restored(): void

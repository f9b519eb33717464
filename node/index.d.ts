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

/** An ID argument: decimal text, a `bigint`, or a number up to 2^53 - 1. A larger number is refused, because it has been rounded. */
export type IdLike = string | bigint | number

/** An instant: a Date, or Unix milliseconds. */
export type Instant = Date | number

/** The text forms of an ID, each of a fixed width, so that text sorts like the numbers: 19, 11, 13, 16 and 14 characters. */
export type TextFormat = 'decimal' | 'base62' | 'base32' | 'hex' | 'check'

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
 * The counts of a generator or a segment in this process at the time of the call. Values without a meaning are `undefined`: a fixed number has
 * no lease. Numbers above `Number.MAX_SAFE_INTEGER` are rounded.
 */
export interface Stats {
  /** The kind of the source. */
  readonly kind: 'snowflake' | 'segment' | 'tickets' | 'buffered'
  /** The canonical spec line with which it was opened first; it shows no secret. */
  readonly spec: string
  /** IDs issued, or numbers handed out. */
  readonly issued: number
  /** Calls that waited: for the clock, for a lease, for numbers of a store. */
  readonly waits: number
  /** The time that calls waited, in total. */
  readonly waitSeconds: number
  /** Calls that found the sequence used up, or got no number in time. */
  readonly exhausted: number
  /** Calls that ended with an error in place of IDs. */
  readonly refused: number
  /** The number of times that the clock went back by a tick or more. */
  readonly rollbacks: number
  /** The furthest that the clock went back. */
  readonly largestRollbackSeconds: number
  /** The distance by which the last ID is stamped ahead of the clock. */
  readonly driftSeconds: number
  /** Ticks that were entered before the clock reached them. */
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
  /** Prefetched numbers after that range. */
  readonly rangeReady: number | undefined
  /** The size of the next range that is fetched. */
  readonly rangeStep: number | undefined
  /** Calls that found no prefetched number. */
  readonly hungry: number | undefined
}

/** A row of the table from which exporters take names. It is the same in every language. */
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

/** The table of the values in {@link Stats}. */
export const metrics: readonly Metric[]

/**
 * The counts of every open generator and segment of the process. Includes all threads. Sorted by kind and spec; equal kind and spec share
 * one entry. A fixed number without a store stays open as long as the process runs. Asks no store.
 *
 * @example
 * for (const { kind, spec, issued } of stats()) console.log(kind, spec, issued)
 */
export function stats(): Stats[]

/** Every error, in the order of the numbers. */
export const errors: readonly ErrorRow[]

/** The version of the package. */
export const version: string

/** The limit of a call that blocks the event loop. */
export interface WaitOptions {
  /**
   * The limit in milliseconds from the call, 0 to `Infinity`, after which the call is `WOULD_BLOCK`. The default is 2 ms for a blocking call
   * (`batch` may take longer; opening with `store: 'memory'` 1 s), and the limit of the spec line for a promise.
   */
  maxWaitMs?: number | undefined
}

/** The limit of a promise's wait, and a signal that ends it. */
export interface AsyncOptions extends WaitOptions {
  /** A signal. When it aborts, the promise is rejected with its reason at once. If it has aborted before the call, nothing begins. */
  signal?: Signal | undefined
}

/** An AbortSignal, independent of its declaration. */
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

/** A spec line that begins with `P`, or is `P`: a preset, or a key and its value. The compiler refuses another word. */
export type Spec<P extends string> = Begins<P, '='> extends true ? P | `${P} ${string}` : Preset

/** True if `P` is a preset, or has the `Mark` of text that names none, or if the compiler does not know it. */
export type Begins<P extends string, Mark extends string> = string extends P ? true : P extends Preset | `${string}${Mark}${string}` ? true : false

/** A node field's number, or `'hostname'`, `'hostname+N'`. */
export type NodeValue = string | number | bigint

/** A class that extends `Base`, but not `Base` itself. */
export type Extending<C, Base> = Base extends C ? never : C

/** A value that is read from an environment variable. */
export type FromEnv = `env:${string}`

/** A duration: an integer and its unit. */
export type Duration = `${bigint}${'ms' | 's' | 'm' | 'h'}` | FromEnv

/** The reaction of a generator that has no ID for now: an error, a wait, or stamps ahead of the clock. */
export type Reaction = 'error' | 'wait' | `wait:${Duration}` | 'ahead' | `ahead:${Duration}` | FromEnv

/** The first sequence of a tick. */
export type Start = 'zero' | `${'alternate' | 'random' | 'continue'}:${bigint}` | FromEnv

/** The keys of a spec line except the node fields, and the limit of the opening's wait. */
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
  /** The longest time by which IDs may be stamped late, as a credit for bursts: `'16s'`. */
  lag?: Duration | undefined
  /** An ID of the previous system: IDs at or below it are never issued. */
  after?: IdLike | undefined
  /** `'system'`, or `'manual'`: the program sets the time with `setTime`. */
  clock?: 'system' | 'manual' | FromEnv | undefined
  /** A separate state, outside the process-wide one: for tests. */
  detached?: boolean | string | undefined
  /** Allows other processes of this machine to use the same number, for programs that never fill the same table. */
  shared?: boolean | string | undefined
  /** Only for `open`, as in {@link AsyncOptions}. A node field of that name is set in the spec line. */
  signal?: Signal | undefined
}

/**
 * The keys of a spec line: the policies, a number for each node field, and the limit of the opening's wait.
 *
 * `epoch` may be a Date, and `layout` a {@link Layout}; `undefined` leaves a key out. If the preset is known, the compiler refuses
 * all other keys.
 */
export type SnowflakeOptions<P extends string = string> = SpecOptions &
  (P extends Preset
    ? { [field in PresetFields[P]]?: NodeValue | undefined }
    : { [field: string]: string | number | bigint | boolean | Date | Layout | Signal | undefined })

/** An integer of a layout: a number if it has up to 53 bits, as in all presets; otherwise a bigint. */
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
  /** The node number: all node fields side by side. If one of several fields is named `node`, the value of that field. */
  readonly node: Integer<P>
  /** The node fields. Not enumerable, because JSON and `{ ...parts }` have them by their names. */
  readonly fields: Fields<P>
} & (P extends Preset ? Fields<P> : { readonly [field: string]: string | number | bigint | boolean | Date | Fields })

/** The widths of the node fields by their names, from the most significant. */
export type FieldBits<P extends string = string> = P extends Preset ? { readonly [field in PresetFields[P]]: number } : Record<string, number>

/** The name of a column of many IDs. */
export type Column<P extends string = string> = 'time' | 'sequence' | 'tick' | (P extends Preset ? PresetFields[P] : string)

/** Columns of many IDs, by their names. */
export type Columns<C extends string = string, A = BigInt64Array> = { [column in C]: A }

/** The input from which an ID is composed: every node field by its name, the time and the sequence. */
export type Composition<P extends string = string> = {
  /** An instant in the ID's tick. */
  time: Instant
  /** The counter within the tick. */
  sequence: number | bigint
} & (P extends Preset ? { [field in PresetFields[P]]: number | bigint } : { [field: string]: number | bigint | Date })

/** Endless IDs. */
export interface IdIterator extends Iterator<string, never, undefined> {
  [Symbol.iterator](): IdIterator
}

/** A leased node number and the state of its lease. */
export interface Lease {
  /** The node number, all node fields side by side: a bigint if they have more than 53 bits. */
  readonly node: number | bigint
  /** The last instant whose IDs the lease covers now; `undefined` for a disposable number, which has no end. */
  readonly bound: Date | undefined
  /** The store, without its credentials. */
  readonly store: string
  /** The namespace, which separates applications in the store. */
  readonly namespace: string
  /** True if the last attempt to reach the store succeeded. */
  readonly healthy: boolean
  /** The error of the last attempt that failed. */
  readonly lastError: FrazilError | undefined
  /** The number of disposable numbers that were left when this one was taken. At most `Number.MAX_SAFE_INTEGER` is reported. */
  readonly left: number | undefined
}

/**
 * Opens a generator from a spec line.
 *
 * All handles on the same layout and node number share one state, also those of worker threads; an object itself stays in its thread.
 * A call blocks for at most 2 ms, or `maxWaitMs`. If the policies would wait longer, it is `WOULD_BLOCK`, with the time after which to
 * retry. The async forms do not block the event loop or a thread of libuv's pool; a signal, `maxWaitMs` and `close` end their waits. A
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
   * Opens a generator. The options are the keys of the spec line. Without both, the environment variable FRAZIL is read.
   *
   * A fixed node number first waits for the next tick, so that a restart cannot repeat IDs. With a tick over 1 ms this may be `WOULD_BLOCK`, and
   * with a store it often is: use {@link Snowflake.open}.
   *
   * @throws {FrazilError} `SPEC`, `UNKNOWN_KEY`, `OUT_OF_RANGE`, `LAYOUT_INVALID`, `ID_INVALID` and `WRONG_TYPE` for the arguments;
   * `NODE_MISSING`; `LAYOUT_EXPIRED` and `BEFORE_EPOCH` for a layout that does not cover now; `CONFLICT` if the number is open with other
   * policies; `NODE_IN_USE`, `NO_FREE_NODE`, `LAYOUT_MISMATCH`, `CLOCK_SKEW`, `STORE_NOT_BUILT` and the other `STORE_*` from the store.
   */
  constructor(spec?: Spec<P>, options?: SnowflakeOptions<P>)
  /**
   * Opens a generator without blocking an event loop. The arguments and errors are the constructor's.
   *
   * With a store it may wait for a crashed owner, or for the first start on Redis (66 s). It fails after 105 s with `LEASE_EXHAUSTED`. `maxWaitMs`
   * and `signal` end it earlier; if the number is held, with `NODE_IN_USE`, which names the owner. After a second it emits one warning in this
   * thread with the reason and the end of the wait: `process.emitWarning` with type `FrazilWarning` and code `FRAZIL_WAIT`.
   *
   * @example
   * const ids = await Snowflake.open('standard', { store: 'local', signal: AbortSignal.timeout(10_000) })
   */
  static open<P extends string = string>(this: typeof Snowflake, spec?: Spec<P>, options?: SnowflakeOptions<P>): Promise<Snowflake<P>>
  /**
   * Constructs a subclass without blocking the event loop. The constructor gets these arguments, and runs before the generator is open, so it
   * cannot use it.
   */
  static open<C extends new (...given: any) => Snowflake>(this: Extending<C, typeof Snowflake>, ...given: ConstructorParameters<C>): Promise<InstanceType<C>>
  /**
   * The next ID. The function keeps its generator alive and needs no `this`: `const next = ids.next`.
   *
   * Sixteen consecutive IDs share their memory: keeping one of them keeps 350 bytes instead of 40.
   *
   * @throws {FrazilError} `CLOCK_BACK` and `EXHAUSTED` as the policies say, `WOULD_BLOCK`, `LAYOUT_EXPIRED`, `BEFORE_EPOCH`, `CLOSED`;
   * `NODE_IN_USE` if another process has the fixed number;
   * `CLOCK_NOT_SET` under a manual clock; `LEASE_EXHAUSTED` if the store was unreachable until the lease's bound.
   */
  next(options?: WaitOptions): string
  /** The next ID as a bigint. Otherwise as `next`. */
  nextBigInt(options?: WaitOptions): bigint
  /**
   * A batch of ascending IDs: all or nothing. At most 16,777,216.
   *
   * A batch that the layout can make within 50 ms may block for 50 ms: 100,000 IDs of `twitter`. A larger one is `WOULD_BLOCK`: use
   * `batchAsync`, or a longer `maxWaitMs`.
   *
   * @throws {FrazilError} As `next`; `OUT_OF_RANGE` for a larger count.
   */
  batch(count: number, options?: WaitOptions): string[]
  /** Returns a batch as bigints. */
  batchBigInt(count: number, options?: WaitOptions): bigint[]
  /**
   * Fills a buffer with ascending IDs. Makes no strings and no garbage, and returns how many.
   *
   * No other thread may use a shared buffer during the call.
   *
   * @throws {FrazilError} As `next`; `written` is the number of IDs in the buffer.
   */
  fill(buffer: BigInt64Array, options?: WaitOptions): number
  /**
   * The next ID, without blocking an event loop. `WOULD_BLOCK` after `maxWaitMs`, and `CLOSED` if the object is closed
   * before.
   */
  nextAsync(options?: AsyncOptions): Promise<string>
  /**
   * A batch of ascending IDs, without blocking an event loop. All or nothing. It ends as `nextAsync`; the IDs made
   * until then are not used.
   */
  batchAsync(count: number, options?: AsyncOptions): Promise<string[]>
  /** Returns `nextAsync` as a bigint. */
  nextBigIntAsync(options?: AsyncOptions): Promise<bigint>
  /** Returns `batchAsync` as bigints. */
  batchBigIntAsync(count: number, options?: AsyncOptions): Promise<bigint[]>
  /**
   * The next ID as text of a fixed width. In JSON an ID is the text of `next`, without leading zeros. Otherwise as
   * `next`; it needs no `this` either.
   */
  text(format: TextFormat, options?: WaitOptions): string
  /**
   * The counts of this process, over all handles. Includes all threads; `issued` is exact when no call is in progress.
   * Asks no store, and works after `close`.
   */
  stats(): Stats
  /**
   * The number of IDs that could be minted now with no stamp ahead of the clock. With `lag` it is the credit for a
   * burst. At most `Number.MAX_SAFE_INTEGER` is reported.
   */
  credit(): number
  /**
   * Sets the time of `clock=manual`. Backwards is a rollback.
   *
   * @throws {FrazilError} `SPEC` without `clock=manual`, `OUT_OF_RANGE` outside the years 1 to 9999.
   */
  setTime(time: Instant): void
  /**
   * Prevents IDs at or below this one from now on. Has the effect of `after=` at run time, to take over from another
   * generator.
   *
   * Every call that begins later, in any worker thread, returns a larger ID. An ID below the next one changes nothing, except that a
   * sequence may be skipped.
   *
   * @throws {FrazilError} `OUT_OF_RANGE` for an ID further ahead of the clock than D of `rollback=ahead:D` or `exhausted=ahead:D`;
   * `ID_INVALID` for an ID of another layout, `LAYOUT_EXPIRED` for one in its last tick; `FORKED`, `CLOSED`.
   */
  observe(id: IdLike): void
  /**
   * Releases a leased node number without blocking an event loop. The next ID leases another. A hook for machines that
   * are about to be cloned: after it every clone leases a different number. IDs keep increasing. The next `next` is
   * often `WOULD_BLOCK`: `nextAsync` waits for the store.
   *
   * @throws {FrazilError} `SPEC` for a fixed number; `LEASE_EXHAUSTED` or `STORE_UNREACHABLE`
   * if the store takes too long; `CLOSED`.
   */
  releaseNodeAsync(options?: AsyncOptions): Promise<void>
  /**
   * Closes the handle; the last one releases the node number. Every later call is `CLOSED`; the properties stay.
   * Closing twice is harmless.
   *
   * Waiting promises of this object are rejected with `CLOSED`. The last handle of a leased number releases it, and waits for the store up
   * to 2 ms. The release continues in the background.
   *
   * @throws {FrazilError} `WOULD_BLOCK` if the release was not written to the store within the passed `maxWaitMs`.
   */
  close(options?: WaitOptions): void
  /**
   * Closes the handle without blocking an event loop. The promise is fulfilled when the number is released, or the
   * store has not answered for 5 s. A signal ends the wait, but not the closing.
   */
  closeAsync(options?: AsyncOptions): Promise<void>
  /** The layout. */
  get layout(): Layout<P>
  /**
   * The node number: all node fields side by side. A bigint if they have more than 53 bits. It throws `COPIED` in a
   * copy of the machine that has issued nothing yet, as `fields` does.
   */
  get node(): Integer<P>
  /** The value of each node field, from the most significant. */
  get fields(): Fields<P>
  /** The leased node number and the state of its lease. `undefined` for a fixed number. */
  get lease(): Lease | undefined
  /** The canonical spec line. It shows no value of an environment variable. */
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

/**
 * Parses a layout's text or a preset's name. Immutable.
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
   * @throws {FrazilError} `LAYOUT_INVALID` for an impossible layout; `SPEC` or `OUT_OF_RANGE` for an unknown preset or a bad epoch.
   */
  constructor(text: Begins<P, ':'> extends true ? P : Preset)
  /** The canonical text, which parses to the same layout. `deepEqual` and test runners compare layouts by it. */
  readonly text: string
  /**
   * Decodes an ID.
   *
   * @throws {FrazilError} `ID_INVALID` for a value that is not an ID, or has more bits than the layout.
   */
  decode(id: IdLike): Parts<P>
  /**
   * Decodes many IDs into columns: one for each wanted part, by its name. Each is a BigInt64Array with as many rows as `ids`: `time` in Unix
   * milliseconds, the node fields, `sequence` and `tick`.
   *
   * `fields` names the wanted columns. `out` has arrays that are written and returned, such as an earlier result of as many IDs; without
   * `fields`, its names are the wanted columns. No other thread may use their memory during the call. After an error they hold no
   * particular values. The call blocks the event loop: 10 million IDs take about a tenth of a second.
   *
   * @example
   * new Layout('twitter').decodeMany(BigInt64Array.of(1541815603606036480n)).worker   // BigInt64Array [ 26n ]
   *
   * @throws {FrazilError} `ID_INVALID` as `decode`, with the first bad row and how many there are; `UNKNOWN_KEY` for a name without a column,
   * `SPEC` for one that is given twice, `WRONG_TYPE` for other arrays, for arrays of another length, and for arrays that share memory.
   */
  decodeMany<C extends Column<P> = Column<P>>(ids: BigInt64Array | BigUint64Array, options?: { readonly fields?: readonly C[] | undefined }): Columns<C>
  decodeMany<C extends Column<P>>(
    ids: BigInt64Array | BigUint64Array,
    options: { readonly fields?: readonly C[] | undefined, readonly out: Columns<C, BigInt64Array | BigUint64Array> },
  ): Columns<C, BigInt64Array | BigUint64Array>
  /**
   * Composes an ID of an instant, a sequence and every node field. Values that do not fit are errors, and are never
   * masked.
   *
   * @example
   * new Layout('twitter').compose({ time: 1656432460105, datacenter: 11, worker: 26, sequence: 0 })   // '1541815603606036480'
   *
   * @throws {FrazilError} `OUT_OF_RANGE` when a value does not fit its field, `UNKNOWN_KEY` for a field that is not in the layout,
   * `NODE_MISSING` for a missing field, `BEFORE_EPOCH` and `LAYOUT_EXPIRED` for an instant outside the layout.
   */
  compose(parts: Composition<P>): string
  /**
   * Composes an ID of each row of columns: the time, the sequence and every node field, by their names. The columns are those of
   * `decodeMany` without `tick`, and have equal lengths. Nothing is masked.
   *
   * @throws {FrazilError} Those of `compose` for the first bad row, with how many there are; `WRONG_TYPE` for other arrays, and for arrays of
   * different lengths.
   */
  composeMany(parts: Columns<'time' | 'sequence', BigInt64Array | BigUint64Array> & Columns<Exclude<Column<P>, 'tick'>, BigInt64Array | BigUint64Array>): BigInt64Array
  /**
   * The smallest ID of the tick at an instant. In a query: `id >= minId(t)`.
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
  /** The node fields and their widths in bits, from the most significant. */
  get fieldBits(): FieldBits<P>
  /** The IDs that one generator can mint in a second, sustained. */
  get idsPerSecond(): number
  /** The number of generators, each with its own node number. */
  get nodes(): bigint
  /** The width of the sequence. */
  get sequenceBits(): number
  /** The length of a tick in ms, 1 to 3,600,000. */
  get tickMs(): number
  /** The width of the time field. */
  get timeBits(): number
}

/** The keys of the spec line of a {@link Segment} or {@link Tickets}. */
export interface SegmentOptions {
  /** A store, as in {@link SnowflakeOptions}; several in a list, or separated by spaces. Each store has different numbers, and one reachable store is enough. */
  store?: string | readonly string[] | undefined
  /** Separates applications in a store: 1 to 64 of a-z, A-Z, 0-9, `.`, `_`, `-`. */
  namespace?: string | undefined
  /** The size of the first and the smallest range; the default is 1000. Not for tickets. */
  step?: string | number | bigint | undefined
  /** The first number of a new tag; the default is 1. */
  start?: string | number | bigint | undefined
  /** The distance between numbers of one store; the default is the number of stores. Not for tickets. */
  increment?: string | number | bigint | undefined
  /** The offset of each store's numbers; the default is 1, 2, ... Not for tickets. */
  offset?: string | number | bigint | readonly (string | number | bigint)[] | undefined
  /** The table of that system in PostgreSQL or MariaDB/MySQL, whose rows have the other settings. Not for tickets. */
  table?: 'leaf' | 'tinyid' | undefined
  /** The longest wait of a call for a number: `'5s'`. */
  wait?: Duration | undefined
}

/** The keys of the spec line of a {@link Buffered}: the generator's, and the ring's. */
export type BufferedOptions<P extends string = string> = SnowflakeOptions<P> & {
  /** The number of prefetched IDs: 65536; at most 16,777,216. */
  size?: string | number | bigint | undefined
  /** The percentage of remaining IDs below which the ring is refilled; the default is 50. */
  refill?: string | number | bigint | undefined
  /** The reaction of an empty ring: `'wait'` (5 s), `'wait:D'`, `'error'`. */
  empty?: 'error' | 'wait' | `wait:${Duration}` | FromEnv | undefined
}

/**
 * Numbers that a thread prefetches: the base class of {@link Segment}, {@link Tickets} and {@link Buffered}.
 *
 * A number is handed out once. An object stays in its thread; worker threads and child processes open their own. A call blocks
 * for at most 2 ms. If numbers take longer it is `WOULD_BLOCK`, and the async forms wait without blocking the event loop.
 */
export abstract class Numbers {
  protected constructor()
  /**
   * The next number. The function keeps its object alive and needs no `this`: `const next = orders.next`.
   *
   * @throws {FrazilError} Segments and tickets: `SEGMENT_EXHAUSTED` if none came in time, or none are left below 2^63; `TAG_MISSING`,
   * `SEGMENT_MISMATCH`, `STORE_*`. A ring: as its generator. `WOULD_BLOCK`; `CLOSED`.
   */
  next(options?: WaitOptions): string
  /** The next number as a bigint. */
  nextBigInt(options?: WaitOptions): bigint
  /**
   * A batch of numbers: all or nothing. At most 16,777,216.
   *
   * @throws {FrazilError} As `next`. Numbers taken so far become a gap, so `batchAsync` is better if numbers take long.
   */
  batch(count: number, options?: WaitOptions): string[]
  /** Returns a batch as bigints. */
  batchBigInt(count: number, options?: WaitOptions): bigint[]
  /**
   * Fills a buffer with numbers. Returns how many. No other thread may use a shared buffer during the call.
   *
   * @throws {FrazilError} As `next`; `written` is the number of numbers in the buffer.
   */
  fill(buffer: BigInt64Array, options?: WaitOptions): number
  /** The next number, without blocking an event loop. */
  nextAsync(options?: AsyncOptions): Promise<string>
  /** A batch of numbers, without blocking an event loop. All or nothing. */
  batchAsync(count: number, options?: AsyncOptions): Promise<string[]>
  /** Returns `nextAsync` as a bigint. */
  nextBigIntAsync(options?: AsyncOptions): Promise<bigint>
  /** Returns `batchAsync` as bigints. */
  batchBigIntAsync(count: number, options?: AsyncOptions): Promise<bigint[]>
  /**
   * Drops the prefetched numbers without blocking an event loop. Call it before a machine is cloned: the clones then
   * do not hand them out twice. The leased node number of a {@link Buffered} is also released. The next call fetches
   * new ones.
   */
  discardAsync(options?: AsyncOptions): Promise<void>
  /**
   * Closes the numbers; prefetched ones are lost. Every later call is `CLOSED`, also `prepared` and `lastError`.
   * Closing twice is harmless.
   *
   * Waiting promises of this object are rejected with `CLOSED`. The leased node number of a {@link Buffered} is released; the call
   * waits up to 2 ms. The release continues in the background.
   *
   * @throws {FrazilError} `WOULD_BLOCK` if the release was not written to the store within the passed `maxWaitMs`.
   */
  close(options?: WaitOptions): void
  /**
   * Closes without blocking the event loop. The promise is fulfilled when the number is released, or the store has not answered for 5 s. A
   * signal ends the wait, but not the closing.
   */
  closeAsync(options?: AsyncOptions): Promise<void>
  /**
   * The counts of this process, over all handles. Includes all threads; `issued` is exact when no call is in progress.
   * Asks no store, and works after `close`.
   */
  stats(): Stats
  /** The number of prefetched numbers, without those of the current range. */
  get prepared(): number
  /** The last failure of the prefetch. For example, one store of several is unreachable. `undefined` when all is well. */
  get lastError(): FrazilError | undefined
  /** The canonical spec line. It shows no secret. */
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
 * Opens a segment: increasing numbers from ranges of a tag.
 *
 * A range belongs to one object; the next one is fetched in the background. Numbers increase within an object; among objects and processes, and
 * with several stores, they do not. Fetched numbers that are not used become a gap.
 *
 * @example
 * const orders = await Segment.open('orders', { store: 'local' })
 * orders.next()                          // '1'
 */
export class Segment extends Numbers {
  /**
   * Opens a tag, and waits for the first range for 2 ms. If it takes longer, it is fetched in the background, and the first call waits for it:
   * use {@link Segment.open} to avoid this wait.
   *
   * @throws {FrazilError} `SPEC`, `UNKNOWN_KEY`, `OUT_OF_RANGE` and `WRONG_TYPE` for the arguments; as `next`: `SEGMENT_EXHAUSTED` when no number
   * came within `wait`, or none are left below 2^63; `SEGMENT_MISMATCH` when the tag has another increment or offset; `TAG_MISSING`, `STORE_*`.
   */
  constructor(spec: string, options?: SegmentOptions & WaitOptions)
  /** Opens a tag off the event loop, waiting up to `wait`; the arguments and errors are the constructor's. */
  static open<T extends Segment>(this: new (...given: any) => T, spec: string, options?: SegmentOptions & AsyncOptions): Promise<T>
}

/**
 * Opens tickets: single numbers of a tag from several stores in turn. One store that is alive is enough.
 *
 * Nothing is prefetched: every number costs a round trip to a store, for which `nextAsync` and `batchAsync` wait.
 *
 * @example
 * const photos = new Tickets('photos', { store: ['mysql://a/tickets', 'mysql://b/tickets'] })
 * await photos.nextAsync()
 */
export class Tickets extends Numbers {
  /**
   * Opens a tag. The stores are asked when a number is needed.
   *
   * @throws {FrazilError} `SPEC`, `UNKNOWN_KEY`, `OUT_OF_RANGE` and `WRONG_TYPE` for the arguments.
   */
  constructor(spec: string, options?: SegmentOptions & WaitOptions)
  /** Opens like the constructor, off the event loop. */
  static open<T extends Tickets>(this: new (...given: any) => T, spec: string, options?: SegmentOptions & AsyncOptions): Promise<T>
}

/**
 * Opens a generator and a ring of its prefetched IDs.
 *
 * IDs are stamped when they are prefetched, not when they are taken. The ring is dropped and refilled when the clock has gone back.
 *
 * @example
 * const ids = await Buffered.open('standard', { node: 7, size: 8192 })
 * ids.layout.decode(ids.next()).node     // 7
 */
export class Buffered<P extends string = string> extends Numbers {
  /**
   * Opens the generator, and fills the ring for 2 ms; a larger ring is filled in the background. `WOULD_BLOCK` if the generator takes
   * longer: use {@link Buffered.open}.
   *
   * @throws {FrazilError} `SPEC`, `OUT_OF_RANGE`; those of {@link Snowflake}.
   */
  constructor(spec?: Spec<P>, options?: BufferedOptions<P>)
  /** Opens the generator and fills the ring off the event loop; the arguments and errors are the constructor's. */
  static open<P extends string = string>(this: typeof Buffered, spec?: Spec<P>, options?: BufferedOptions<P>): Promise<Buffered<P>>
  /** Opens like {@link Snowflake.open}, for a class that extends this one. */
  static open<C extends new (...given: any) => Buffered>(this: Extending<C, typeof Buffered>, ...given: ConstructorParameters<C>): Promise<InstanceType<C>>
  /** The layout of a ring's IDs. */
  get layout(): Layout<P>
}

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
 * An error: its code is stable, and its message names the argument, the value and the allowed values.
 *
 * If a process has loaded the package several times, as test runners do, the errors of each copy are also `instanceof` the others' class.
 */
export class FrazilError extends Error {
  /**
   * Constructs an error like frazil's, for tests of a program that handles them. The default message is the meaning of the code.
   *
   * @example
   * mock.method(ids, 'next', () => { throw new FrazilError('WOULD_BLOCK', 'busy', { retryAfterMs: 5 }) })
   *
   * @throws {FrazilError} `OUT_OF_RANGE` for an unknown code, `WRONG_TYPE` for a message that is not a string.
   */
  constructor(code: ErrorCode, message?: string, details?: ErrorDetails)
  /** The stable name, for example `'CLOCK_BACK'`. */
  readonly code: ErrorCode
  /** The stable number, for example 203. */
  readonly number: number
  /** The time in ms after which a retry can succeed, rounded up, if known: `WOULD_BLOCK`, `EXHAUSTED`, `CLOCK_BACK`. Otherwise absent. */
  readonly retryAfterMs?: number
  /** The number of IDs that `fill` had written when it failed. Absent on the errors of all other calls, which are all or nothing. */
  readonly written?: number
}

/**
 * Closes every generator of the process that leases its number, and releases the numbers. Includes all threads and
 * rings, as the end of the process does. It waits for the stores, up to 0.5 s. Every later call of such a handle is
 * `CLOSED`.
 */
export function closeAll(): void

/**
 * Releases leased numbers on SIGTERM, in all threads. Later calls on their generators are `CLOSED`, and a ring first hands out its
 * prefetched IDs. It waits for the stores for half a second at most.
 *
 * A program without another listener then dies by SIGTERM as usual. Other listeners are called, and end the program as
 * they like. Calling it again is harmless. In a worker thread, which receives no signals, it does nothing: call it in the main thread.
 *
 * A program that answers requests after SIGTERM still needs IDs. It calls `closeAsync` afterwards, or ends; the end of a process
 * releases numbers.
 *
 * @example
 * closeOnSigterm()
 * const ids = await Snowflake.open('standard', { store: 'redis://...' })
 *
 * @returns A function that undoes the call.
 */
export function closeOnSigterm(): () => void

/**
 * The order of two IDs. For `Array.prototype.sort`: -1, 0 or 1. IDs are strings without leading zeros, and as plain
 * text a longer one sorts before a shorter one: `'10'` before `'9'`.
 *
 * @example
 * ['10', '9', 8n].sort(compareIds)   // [8n, '9', '10']
 *
 * @throws {FrazilError} `ID_INVALID` for a value that is not an ID, `WRONG_TYPE` for another type.
 */
export function compareIds(a: IdLike, b: IdLike): -1 | 0 | 1

/**
 * An ID as text of a fixed width, which sorts like the number. In JSON an ID is what `next` gives, or
 * `String(bigint)`: decimal without leading zeros.
 *
 * @throws {FrazilError} `ID_INVALID` for a value that is not an ID, `OUT_OF_RANGE` for an unknown format.
 */
export function formatId(id: IdLike, format: TextFormat): string

/**
 * Parses the text of an ID. The format is decimal by default, and the result is canonical decimal.
 * A prefix such as `order_` must come before the ID, in either case.
 *
 * @example
 * parseId('order_1asd-13xh-1f800k', 'check', 'order_')   // '1541815603606036480'
 *
 * @throws {FrazilError} `ID_INVALID` for a wrong length, a bad character, a wrong check symbol, another prefix, or a number above 2^63 - 1.
 */
export function parseId(text: string, format?: TextFormat, prefix?: string): string

/**
 * Notifies frazil that the process was restored from a snapshot, or copied with its machine. For a runtime's hook.
 *
 * From then on it issues no ID that a copy may also issue: leased node numbers, prefetched numbers and random bits are dropped, and the
 * next call leases again. Generators with fixed numbers, or numbers from `local`, `file:` or `memory`, throw `COPIED`. IDs that the program got
 * before are in all copies. Applies to all threads. Not needed if the machine has a VMClock device, or `FRAZIL_GENERATION` names a file.
 */
export function restored(): void

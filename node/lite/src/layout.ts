import { entries, idNumber, string, unixMs, unsigned, wrongType, type IdLike, type Instant } from './convert.js'
import { refuse } from './error.js'
import { parseLayout, showLayout } from './parse.js'
import { checkValues, endOf, lowBits, nodeFields, sequenceOf, tickOf, type Shape } from './shape.js'
import { LAST_MS } from './time.js'

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
  /** True if the ID looks as if JavaScript, a spreadsheet or a 32-bit float had rounded it. A hint, not a proof: about one ID in 256 does by chance. */
  readonly looksRounded: boolean
  /** The node number: all node fields side by side. If one of several fields is named `node`, the value of that field. */
  readonly node: Integer<P>
  /** The node fields. Not enumerable, because JSON and `{ ...parts }` have them by their names. */
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

const shapes = new WeakMap<object, Shape>()

/** Returns the parts of a layout; `WRONG_TYPE` for any other object. */
export function shapeOf(layout: unknown, name: string): Shape {
  return shapes.get(layout as object) ?? wrongType(name, layout, 'a Layout')
}

/**
 * A layout: the fields of an ID, the length of a tick, and the epoch. Immutable.
 *
 * @example
 * const layout = new Layout('time:41@1ms business:4 machine:6 sequence:12 epoch:2025-01-01')
 * layout.nodes                           // 1024n
 * layout.fieldBits                       // { business: 4, machine: 6 }
 */
export class Layout<P extends string = string> {
  /** The canonical text, which parses to the same layout. `deepEqual` and test runners compare layouts by it. */
  declare readonly text: string

  /**
   * Parses a layout's text or a preset's name.
   *
   * @throws {FrazilError} `LAYOUT_INVALID` for an impossible layout; `SPEC` or `OUT_OF_RANGE` for an unknown preset or a bad epoch.
   */
  constructor(text: P) {
    const shape = parseLayout(string('text', text, 'LAYOUT_INVALID'))
    shapes.set(this, shape)
    Object.defineProperty(this, 'text', { value: showLayout(shape), enumerable: true })
  }

  /**
   * Decodes an ID.
   *
   * @throws {FrazilError} `ID_INVALID` for a value that is not an ID, or has more bits than the layout.
   */
  decode(id: IdLike): Parts<P> {
    const shape = shapeOf(this, 'this')
    const number = idNumber('id', id)
    const double = Number(number)
    const looksRounded = number > 2n ** 53n && (String(double) === String(number) || BigInt(Math.fround(double)) === number)
    const foreign = (why: string): never => {
      const rounded = looksRounded ? '; it looks rounded, as by a JavaScript number: pass IDs as strings' : ''
      return refuse('ID_INVALID', `${number} ${why}: it is another layout's${rounded}`)
    }
    const low = lowBits(shape)
    const tick = number >> BigInt(low)
    if (tick >> BigInt(shape.timeBits)) {
      foreign(`has more bits than the layout's ${low + shape.timeBits}`)
    }
    const time = shape.epochMs + Number(tick) * shape.tickMs
    if (time > LAST_MS) {
      foreign('has a time after the year 9999 in this layout')
    }
    const values: Record<string, number | bigint> = {}
    let shift = low
    for (const { name, bits } of shape.fields) {
      shift -= bits
      values[name] = integer(BigInt.asUintN(bits, number >> BigInt(shift)), bits)
    }
    const { sequence, ...fields } = values
    const parts = { id: String(number), time: new Date(time), tick: integer(tick, shape.timeBits), ...fields, sequence: sequence!, looksRounded }
    // Not enumerable, because `compose(parts)` takes the fields by their names, one of which may be `node`.
    if (!('node' in fields)) {
      const bits = nodeFields(shape).reduce((sum, field) => sum + field.bits, 0)
      const node = nodeFields(shape).reduce((sum, field) => (sum << BigInt(field.bits)) | BigInt(fields[field.name]!), 0n)
      Object.defineProperty(parts, 'node', { value: integer(node, bits) })
    }
    return Object.defineProperty(parts, 'fields', { value: fields }) as unknown as Parts<P>
  }

  /**
   * Composes an ID of an instant, a sequence and every node field. Values that do not fit are errors, and are never masked.
   *
   * @example
   * new Layout('twitter').compose({ time: 1656432460105, datacenter: 11, worker: 26, sequence: 0 })   // '1541815603606036480'
   *
   * @throws {FrazilError} `OUT_OF_RANGE` when a value does not fit its field, `UNKNOWN_KEY` for a field that is not in the layout,
   * `NODE_MISSING` for a missing field, `BEFORE_EPOCH` and `LAYOUT_EXPIRED` for an instant outside the layout.
   */
  compose(parts: Composition<P>): string {
    const shape = shapeOf(this, 'this')
    let time: number | undefined
    const values = new Map<string, bigint>()
    for (const [name, value] of entries('parts', parts)) {
      if (name === 'time') {
        time = unixMs(name, value)
      } else {
        values.set(name, unsigned(name, value))
      }
    }
    if (time === undefined || !values.has('sequence')) {
      return refuse('WRONG_TYPE', 'parts must have time, sequence and every node field')
    }
    const tick = tickOf(shape, time)
    checkValues(shape, values)
    return String(shape.fields.reduce((id, { name, bits }) => (id << BigInt(bits)) | values.get(name)!, tick))
  }

  /**
   * The smallest ID of the tick that holds an instant: `id >= minId(t)` in a query.
   *
   * @throws {FrazilError} `BEFORE_EPOCH` and `LAYOUT_EXPIRED` for an instant outside the layout.
   */
  minId(time: Instant): string {
    const shape = shapeOf(this, 'this')
    return String(tickOf(shape, unixMs('time', time)) << BigInt(lowBits(shape)))
  }

  /**
   * The largest ID of the tick that holds an instant: `id <= maxId(t)` in a query.
   *
   * @throws {FrazilError} `BEFORE_EPOCH` and `LAYOUT_EXPIRED` for an instant outside the layout.
   */
  maxId(time: Instant): string {
    const shape = shapeOf(this, 'this')
    return String(((tickOf(shape, unixMs('time', time)) + 1n) << BigInt(lowBits(shape))) - 1n)
  }

  /** Returns whether two layouts are equal: fields, tick and epoch. */
  equals(other: Layout<any>): boolean {
    return showLayout(shapeOf(this, 'this')) === showLayout(shapeOf(other, 'other'))
  }

  /** Returns `text`. */
  toString(): string {
    return showLayout(shapeOf(this, 'this'))
  }

  /** Returns `text`, which `new Layout(...)` takes. */
  toJSON(): string {
    return showLayout(shapeOf(this, 'this'))
  }

  /** The instant at which the time field is 0. */
  get epoch(): Date {
    return new Date(shapeOf(this, 'this').epochMs)
  }

  /** The first instant that cannot be stamped; `undefined` when that is after the year 9999. */
  get expiresAt(): Date | undefined {
    const end = endOf(shapeOf(this, 'this'))
    return end <= LAST_MS ? new Date(end) : undefined
  }

  /** The width of each node field, from the most significant. */
  get fieldBits(): FieldBits<P> {
    const widths: Record<string, number> = {}
    for (const { name, bits } of nodeFields(shapeOf(this, 'this'))) {
      widths[name] = bits
    }
    return widths as FieldBits<P>
  }

  /** The IDs that one generator can mint in a second, sustained. */
  get idsPerSecond(): number {
    const shape = shapeOf(this, 'this')
    return (2 ** sequenceOf(shape).bits * 1000) / shape.tickMs
  }

  /** The number of generators, each with its own node number. */
  get nodes(): bigint {
    const shape = shapeOf(this, 'this')
    return 1n << BigInt(lowBits(shape) - sequenceOf(shape).bits)
  }

  /** The width of the sequence. */
  get sequenceBits(): number {
    return sequenceOf(shapeOf(this, 'this')).bits
  }

  /** The length of a tick in ms, 1 to 3,600,000. */
  get tickMs(): number {
    return shapeOf(this, 'this').tickMs
  }

  /** The width of the time field. */
  get timeBits(): number {
    return shapeOf(this, 'this').timeBits
  }
}

/** A number, or a bigint if the field has more bits than a number holds exactly. */
function integer(value: bigint, bits: number): number | bigint {
  return bits <= 53 ? Number(value) : value
}

// The parts of a layout, and the positions of its bits and ticks.
import { refuse, shown } from './error.js'
import { checkInstant, LAST_MS, showInstant } from './time.js'

/** A field under the time: a node field, or the sequence. */
export interface Field {
  readonly name: string
  readonly bits: number
}

/** The parts of a layout; the fields from the most significant, the sequence among them. */
export interface Shape {
  readonly timeBits: number
  readonly tickMs: number
  readonly epochMs: number
  readonly fields: readonly Field[]
}

export function sequenceOf({ fields }: Shape): Field {
  return fields.find(({ name }) => name === 'sequence')!
}

export function nodeFields({ fields }: Shape): Field[] {
  return fields.filter(({ name }) => name !== 'sequence')
}

/** The width of all fields below the time. */
export function lowBits({ fields }: Shape): number {
  return fields.reduce((sum, { bits }) => sum + bits, 0)
}

/** The first instant that the time field does not hold; exact up to the year 9999. */
export function endOf({ epochMs, timeBits, tickMs }: Shape): number {
  return epochMs + 2 ** timeBits * tickMs
}

/** The tick that holds an instant. */
export function tickOf(shape: Shape, ms: number): bigint {
  const { tickMs, epochMs } = shape
  if (ms < epochMs) {
    const where = `time=${showInstant(ms)} is before the layout's epoch, ${showInstant(epochMs)}: all its IDs are later`
    refuse('BEFORE_EPOCH', `${where}. As a query's lower bound, take 0`)
  }
  const end = endOf(shape)
  if (end <= LAST_MS && ms >= end) {
    const where = `time=${showInstant(ms)} is after the layout's last instant, ${showInstant(end - 1)}: all its IDs are earlier`
    refuse('LAYOUT_EXPIRED', `${where}. As a query's upper bound, take the largest ID of that last instant`)
  }
  return BigInt(Math.floor((checkInstant('time', ms) - epochMs) / tickMs))
}

/** Refuses names that the layout does not have, and values that do not fit. */
export function checkValues(shape: Shape, values: ReadonlyMap<string, bigint>): void {
  const nodes = nodeFields(shape)
  for (const name of values.keys()) {
    if (name !== 'sequence' && !nodes.some(field => field.name === name)) {
      const names = nodes.map(field => field.name).join(', ')
      refuse('UNKNOWN_KEY', `the layout has no node field ${shown(name)}; it has: ${names}`)
    }
  }
  for (const { name, bits } of [...nodes, sequenceOf(shape)]) {
    const value = values.get(name)
    const max = 2n ** BigInt(bits) - 1n
    if (value === undefined) {
      refuse('NODE_MISSING', `the field ${name} is not given: 0 to ${max}`)
    } else if (value > max) {
      refuse('OUT_OF_RANGE', `${name}=${value} is out of range: ${bits} bits allow 0 to ${max}`)
    }
  }
}

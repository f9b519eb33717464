/**
 * IDs in JSON, URLs and forms: a Standard Schema, which validators and frameworks accept, and JSON Schema.
 *
 * An ID is a string there, because a JSON number above 2^53 is rounded before a program sees it.
 *
 * @example
 * snowflakeId()['~standard'].validate('1541815603606036480')   // { value: '1541815603606036480' }
 * snowflakeId()['~standard'].validate(1541815603606036480)     // { issues: [{ message: 'the ID is the number 154..., which JavaScript has ...' }] }
 */
import { entries, string, unsigned, wrongType } from './convert.js'
import { FORMATS, MAX_ID, parseDigits } from './digits.js'
import { FrazilError, refuse, shown } from './error.js'
import { Layout } from './layout.js'
import { showInstant } from './time.js'

/**
 * An ID in JSON Schema and OpenAPI: a string of decimal digits without leading zeros, up to 2^63 - 1. Frozen; a copy may have more:
 * `{ ...idJsonSchema, description: 'The order' }`.
 *
 * A validator that coerces types, as Fastify's does, turns a rounded number into such a string; `frazil/fastify` refuses it.
 */
export const idJsonSchema: Text & { readonly not: Text } = Object.freeze({
  type: 'string',
  pattern: '^(0|[1-9][0-9]{0,18})$',
  not: Object.freeze({ type: 'string', pattern: aboveMax() }),
})

interface Text {
  readonly type: 'string'
  readonly pattern: string
}

/** Matches the numbers of 19 digits above the largest ID. */
function aboveMax(): string {
  const digits = String(MAX_ID)
  const larger = [...digits].flatMap((digit, place) => {
    const left = digits.length - place - 1
    return digit < '9' ? `${digits.slice(0, place)}[${Number(digit) + 1}-9]${left ? `[0-9]{${left}}` : ''}` : []
  })
  return `^(${larger.join('|')})$`
}

/** The options of {@link snowflakeId}. */
export interface SnowflakeIdOptions<As extends 'string' | 'bigint' = 'string' | 'bigint'> {
  /** The type of a valid ID: `'string'`, unchanged, or `'bigint'`. */
  as?: As | undefined
  /** The IDs' layout, or its text. A number with more bits is refused. */
  layout?: string | { readonly text: string } | undefined
  /** With a layout: the most ms by which the time of an ID may be after now. Allow for different clocks: 60_000. */
  maxAheadMs?: number | undefined
}

/** The result of `validate`: the ID, or the reason for refusing it. */
export type SnowflakeIdResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly { readonly message: string }[] }

/** A Standard Schema and Standard JSON Schema, version 1: https://standardschema.dev. Frozen, stateless, for any number of fields. */
export interface SnowflakeIdSchema<Output extends string | bigint = string> {
  readonly '~standard': {
    readonly version: 1
    readonly vendor: 'frazil'
    readonly types?: { readonly input: string; readonly output: Output } | undefined
    /** Returns whether a value of any type is an ID. */
    readonly validate: (value: unknown) => SnowflakeIdResult<Output>
    readonly jsonSchema: {
      /** {@link idJsonSchema}, for every target. */
      readonly input: (options: { readonly target: string }) => Record<string, unknown>
      /** Returns `input`'s schema; `WRONG_TYPE` for a bigint, which JSON Schema does not have. */
      readonly output: (options: { readonly target: string }) => Record<string, unknown>
    }
  }
}

/**
 * A schema for an ID: a string of decimal digits without leading zeros, 0 to 2^63 - 1. All other values are refused, also numbers of any
 * size. The message has the reason and the fix.
 *
 * @example
 * type({ id: snowflakeId({ layout: 'twitter', maxAheadMs: 60_000 }) })   // ArkType; z.object of frazil/zod; valibot, in the guide
 *
 * @throws {FrazilError} `UNKNOWN_KEY`, `WRONG_TYPE` and `OUT_OF_RANGE` for a bad option, as {@link Layout} for a bad layout.
 */
export function snowflakeId<As extends 'string' | 'bigint' = 'string'>(
  options: SnowflakeIdOptions<As> = {},
): SnowflakeIdSchema<As extends 'bigint' ? bigint : string> {
  const { as, check } = parseOptions(options)
  const validate = (value: unknown): SnowflakeIdResult<string | bigint> => {
    try {
      const id = parse(value)
      check(id)
      return { value: as === 'bigint' ? id : (value as string) }
    } catch (error) {
      if (error instanceof FrazilError) {
        return { issues: [{ message: error.message }] }
      }
      throw error
    }
  }
  const input = (): Record<string, unknown> => ({ ...idJsonSchema, not: { ...idJsonSchema.not } })
  const output = () => (as === 'bigint' ? refuse('WRONG_TYPE', 'JSON Schema has no bigint: ask for the schema of the input') : input())
  const standard = { version: 1, vendor: 'frazil', validate, jsonSchema: Object.freeze({ input, output }) } as const
  return Object.freeze({ '~standard': Object.freeze(standard) }) as SnowflakeIdSchema<As extends 'bigint' ? bigint : string>
}

function parseOptions(options: unknown): { as: unknown; check: (id: bigint) => void } {
  const given = new Map(entries('options', options))
  const names = ['as', 'layout', 'maxAheadMs']
  for (const name of given.keys()) {
    if (!names.includes(name)) {
      refuse('UNKNOWN_KEY', `the option ${shown(name)} is none of: ${names.join(', ')}`)
    }
  }
  const [as = 'string', layout, maxAheadMs] = names.map(name => given.get(name))
  if (as !== 'string' && as !== 'bigint') {
    refuse('OUT_OF_RANGE', `as=${typeof as === 'string' ? shown(as) : typeof as} is none of: string, bigint`)
  }
  const ahead = maxAheadMs === undefined ? Infinity : Number(unsigned('maxAheadMs', maxAheadMs))
  if (layout === undefined) {
    return ahead < Infinity ? refuse('SPEC', 'maxAheadMs needs a layout, from which the time of an ID is read') : { as, check: () => {} }
  }
  const parsed = new Layout(layoutText(layout))
  const check = (id: bigint): void => {
    const time = parsed.decode(id).time.getTime()
    if (time > Date.now() + ahead) {
      refuse('ID_INVALID', `${id} is not an ID yet: its time, ${showInstant(time)}, is more than ${ahead} ms after now`)
    }
  }
  return { as, check }
}

/** The text of a layout: of an object of lite or of the addon, or the text itself. */
function layoutText(layout: unknown): string {
  const text = typeof layout === 'object' && layout !== null ? (layout as { text?: unknown }).text : layout
  return typeof text === 'string' ? text : wrongType('layout', layout, 'a Layout or its text')
}

/** The number of an ID in canonical decimal. */
function parse(value: unknown): bigint {
  if (typeof value === 'number') {
    const rounded = Number.isInteger(value) && !Number.isSafeInteger(value)
    const why = rounded ? 'which JavaScript has already rounded' : 'and JavaScript rounds numbers above 2^53 - 1'
    return refuse('ID_INVALID', `the ID is the number ${value}, ${why}: send it as a string, in quotes`)
  }
  if (typeof value !== 'string') {
    return wrongType('the ID', value, 'a string of decimal digits')
  }
  // Checked first, so that a huge text costs nothing.
  if (value.length > FORMATS.decimal.width) {
    refuse('ID_INVALID', `the ID has ${value.length} characters: it must be a string of at most ${FORMATS.decimal.width} decimal digits`)
  }
  const text = string('the ID', value, 'ID_INVALID')
  if (/^0\d/.test(text)) {
    refuse('ID_INVALID', `${shown(text)} has leading zeros: in JSON and URLs an ID is written without them`)
  }
  return parseDigits(text, 'decimal')
}

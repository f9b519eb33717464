// IDs without a layout: their text and their order; and the check whether a value is an ID of a layout.
import { idNumber, string, unixMs, type IdLike, type Instant } from './convert.js'
import { FORMATS, parseDigits, printDigits, type TextFormat } from './digits.js'
import { FrazilError, refuse, shown } from './error.js'
import { shapeOf, type Layout } from './layout.js'

/**
 * An ID as text of a fixed width.
 *
 * @throws {FrazilError} `ID_INVALID` for a value that is not an ID, `OUT_OF_RANGE` for an unknown format.
 */
export function formatId(id: IdLike, format: TextFormat): string {
  const number = idNumber('id', id)
  return printDigits(number, formatNamed(format))
}

/**
 * Parses the text of an ID. The format is decimal by default, and the result is canonical decimal. A prefix such as `order_` must come
 * before the ID, in either case.
 *
 * @throws {FrazilError} `ID_INVALID` for a wrong length, a bad character, a wrong check symbol, another prefix, or a number above 2^63 - 1.
 */
export function parseId(text: string, format: TextFormat = 'decimal', prefix = ''): string {
  const given = string('text', text, 'ID_INVALID')
  const form = formatNamed(format)
  return String(parseDigits(given, form, string('prefix', prefix, 'ID_INVALID')))
}

/**
 * The order of two IDs, for `Array.prototype.sort`: -1, 0 or 1. As plain text `'9'` would come after `'10'`.
 *
 * @throws {FrazilError} `ID_INVALID` for a value that is not an ID.
 */
export function compareIds(a: IdLike, b: IdLike): -1 | 0 | 1 {
  const [left, right] = [idNumber('a', a), idNumber('b', b)]
  return left < right ? -1 : left > right ? 1 : 0
}

/**
 * Returns whether a value of any type is an ID of a layout, with a time up to `latest`. If it is not an ID, `decode` throws the reason.
 *
 * @example
 * isId(request.id, layout, Date.now() + 60_000)   // refuses IDs more than a minute ahead of this clock
 *
 * @throws {FrazilError} `WRONG_TYPE` and `OUT_OF_RANGE` for a bad `layout` or `latest`, never for the value.
 */
export function isId(value: unknown, layout: Layout, latest?: Instant): value is IdLike {
  shapeOf(layout, 'layout')
  const end = latest === undefined ? Infinity : unixMs('latest', latest)
  try {
    return layout.decode(value as IdLike).time.getTime() <= end
  } catch (error) {
    if (error instanceof FrazilError) {
      return false
    }
    throw error
  }
}

function formatNamed(format: unknown): TextFormat {
  const name = string('format', format, 'OUT_OF_RANGE')
  const names = Object.keys(FORMATS)
  return names.includes(name) ? (name as TextFormat) : refuse('OUT_OF_RANGE', `format=${shown(name)} is none of: ${names.join(', ')}`)
}

// The digits of the four text forms, in ASCII order: text sorts like the numbers.
import { refuse, shown } from './error.js'

/** The text forms of an ID, each of a fixed width, so that text sorts like the numbers: 19, 11, 13 and 16 characters. */
export type TextFormat = 'decimal' | 'base62' | 'base32' | 'hex'

/** The largest ID, 2^63 - 1. */
export const MAX_ID = 2n ** 63n - 1n

export const FORMATS: Readonly<Record<TextFormat, { width: number; alphabet: string }>> = {
  decimal: { width: 19, alphabet: '0123456789' },
  base62: { width: 11, alphabet: '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz' },
  base32: { width: 13, alphabet: '0123456789ABCDEFGHJKMNPQRSTVWXYZ' },
  hex: { width: 16, alphabet: '0123456789abcdef' },
}

/** A number in a format's full width. */
export function printDigits(number: bigint, format: TextFormat): string {
  const { width, alphabet } = FORMATS[format]
  const base = BigInt(alphabet.length)
  let text = ''
  for (let left = number; text.length < width; left /= base) {
    text = alphabet[Number(left % base)] + text
  }
  return text
}

/** The number of an ID's text; in decimal also without padding. */
export function parseDigits(text: string, format: TextFormat): bigint {
  const fail = (why: string): never => refuse('ID_INVALID', `${shown(text)} is not an ID in ${format}: ${why}`)
  const { width, alphabet } = FORMATS[format]
  let number = 0n
  let place = 0
  for (const character of text) {
    if (place === width) {
      break
    }
    const digit = alphabet.indexOf(digitOf(character, format))
    if (digit < 0) {
      fail(`the character '${JSON.stringify(character).slice(1, -1)}' at position ${place} is not a digit of it`)
    }
    number = number * BigInt(alphabet.length) + BigInt(digit)
    if (number > MAX_ID) {
      fail(`it is above ${MAX_ID}`)
    }
    place++
  }
  const length = [...text].length
  const canonical = format === 'decimal' && /^(\d|[1-9]\d{0,17})$/.test(text)
  if (length !== width && !canonical) {
    const allowed = format === 'decimal' ? '1 to 19 digits without leading zeros, or 19 with them' : `${width} characters`
    fail(`it has ${length} characters; allowed: ${allowed}`)
  }
  return number
}

/** The digit that a character stands for: Crockford reads O, I and L as 0, 1 and 1, and case matters in base62 alone. */
function digitOf(character: string, format: TextFormat): string {
  if (format === 'base32') {
    return /^[a-z]$/i.test(character) ? character.toUpperCase().replace('O', '0').replace(/[IL]/, '1') : character
  }
  return format === 'hex' && /^[A-F]$/.test(character) ? character.toLowerCase() : character
}

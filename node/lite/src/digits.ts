// The digits of the text forms, in ASCII order: text sorts like the numbers.
import { refuse, shown } from './error.js'

/** The text forms of an ID, each of a fixed width, so that text sorts like the numbers: 19, 11, 13, 16 and 14 characters. */
export type TextFormat = 'decimal' | 'base62' | 'base32' | 'hex' | 'check'

/** The largest ID, 2^63 - 1. */
export const MAX_ID = 2n ** 63n - 1n

export const FORMATS: Readonly<Record<TextFormat, { width: number; alphabet: string }>> = {
  decimal: { width: 19, alphabet: '0123456789' },
  base62: { width: 11, alphabet: '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz' },
  base32: { width: 13, alphabet: '0123456789ABCDEFGHJKMNPQRSTVWXYZ' },
  hex: { width: 16, alphabet: '0123456789abcdef' },
  check: { width: 14, alphabet: '0123456789ABCDEFGHJKMNPQRSTVWXYZ' },
}

/** A number in a format's full width. */
export function printDigits(number: bigint, format: TextFormat): string {
  if (format === 'check') {
    const digits = printDigits(number, 'base32')
    return digits + FORMATS.check.alphabet[[...digits].reduce((sum, digit) => timesX(sum ^ FORMATS.check.alphabet.indexOf(digit)), 0)]
  }
  const { width, alphabet } = FORMATS[format]
  const base = BigInt(alphabet.length)
  let text = ''
  for (let left = number; text.length < width; left /= base) {
    text = alphabet[Number(left % base)] + text
  }
  return text
}

/** A product by x in GF(32) with x^5 + x^2 + 1. */
function timesX(element: number): number {
  return ((element << 1) & 31) ^ (element >> 4) * 5
}

/** The number of an ID's text after a prefix; in decimal also without padding. */
export function parseDigits(text: string, format: TextFormat, prefix = ''): bigint {
  const fail = (why: string): never => refuse('ID_INVALID', `${shown(text)} is not an ID in ${format}: ${why}`)
  const { width, alphabet } = FORMATS[format]
  const [whole, first] = [[...text], [...prefix].length]
  const lower = (characters: string[]) => characters.join('').replace(/[A-Z]/g, letter => letter.toLowerCase())
  if (lower(whole.slice(0, first)) !== lower([...prefix])) {
    fail(`it needs the prefix ${shown(prefix)} at position 0`)
  }
  let [number, sum, count] = [0n, 0, 0]
  for (const [place, character] of whole.entries()) {
    if (place < first || (format === 'check' && (character === ' ' || character === '-'))) {
      continue
    }
    count++
    if (count > width) {
      continue
    }
    const digit = alphabet.indexOf(digitOf(character, format))
    if (digit < 0) {
      fail(`the character '${JSON.stringify(character).slice(1, -1)}' at position ${place} is not a digit of it`)
    }
    if (format === 'check') {
      sum = timesX(sum) ^ digit
    }
    if (format !== 'check' || count < width) {
      number = number * BigInt(alphabet.length) + BigInt(digit)
    }
  }
  const canonical = format === 'decimal' && /^(\d|[1-9]\d{0,17})$/.test(whole.slice(first).join(''))
  if (count !== width && !canonical) {
    const allowed = format === 'decimal' ? '1 to 19 digits without leading zeros, or 19 with them' : `${width} characters`
    fail(`it has ${count} characters and ends at position ${whole.length}; allowed: ${allowed}`)
  }
  if (sum !== 0) {
    fail('it was changed: copy it again from its source')
  }
  return number > MAX_ID ? fail(`it is above ${MAX_ID}`) : number
}

/** The digit of a character. Crockford reads O, I and L as 0, 1 and 1; case matters only in base62. */
function digitOf(character: string, format: TextFormat): string {
  if (format === 'base32' || format === 'check') {
    return /^[a-z]$/i.test(character) ? character.toUpperCase().replace('O', '0').replace(/[IL]/, '1') : character
  }
  return format === 'hex' && /^[A-F]$/.test(character) ? character.toLowerCase() : character
}

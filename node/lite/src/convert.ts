// Converts arguments: IDs, instants, integers, text. Refuses other types, and numbers that have been rounded.
import { MAX_ID, parseDigits } from './digits.js'
import { refuse, type ErrorCode } from './error.js'

/** An ID argument: decimal text, a `bigint`, or a number up to 2^53 - 1. A larger number is refused, because it has been rounded. */
export type IdLike = string | bigint | number

/** An instant: a Date, or Unix milliseconds. */
export type Instant = Date | number

/** The name of a typed array's class, from any realm. */
function typedArray(value: object): string | undefined {
  const tag = Object.getOwnPropertyDescriptor(Object.getPrototypeOf(Uint8Array.prototype), Symbol.toStringTag)
  return tag!.get!.call(value)
}

export function wrongType(name: string, value: unknown, allowed: string): never {
  let what = `a ${typeof value}`
  if (value == null) {
    what = String(value)
  } else if (typeof value === 'object') {
    const typed = typedArray(value)
    what = Array.isArray(value) ? 'an array' : typed ? `${/^I/.test(typed) ? 'an' : 'a'} ${typed}` : dateMs(value) === undefined ? 'an object' : 'a Date'
  }
  return refuse('WRONG_TYPE', `${cut(name, 60)} is ${what}: it must be ${allowed}`)
}

/** Text; `code` is the error of text that is not Unicode. */
export function string(name: string, value: unknown, code: ErrorCode): string {
  if (typeof value !== 'string') {
    return wrongType(name, value, 'a string')
  }
  if (/\p{Surrogate}/u.test(value)) {
    refuse(code, `${cut(name, 60)} is not Unicode: it has a lone surrogate`)
  }
  return value
}

/** An unsigned integer below 2^63, as a number or a bigint. */
export function unsigned(name: string, value: unknown): bigint {
  if (typeof value !== 'number' && typeof value !== 'bigint') {
    return wrongType(name, value, 'an integer')
  }
  const number = typeof value === 'number' ? BigInt(safeInteger(name, value, 'OUT_OF_RANGE')) : value
  if (number < 0n || number > MAX_ID) {
    refuse('OUT_OF_RANGE', `${cut(name, 60)}=${digits(number)} is out of range: 0 or more, below 2^63`)
  }
  return number
}

/** An ID as its number. */
export function idNumber(name: string, value: unknown): bigint {
  if (typeof value === 'string') {
    return parseDigits(string(name, value, 'ID_INVALID'), 'decimal')
  }
  if (typeof value !== 'number' && typeof value !== 'bigint') {
    return wrongType(name, value, 'a string, a BigInt or a safe integer')
  }
  const number = typeof value === 'number' ? BigInt(safeInteger(name, value, 'ID_INVALID')) : value
  if (BigInt.asIntN(64, number) !== number) {
    refuse('ID_INVALID', `${name}=${digits(number)} is not an ID: 0 to ${MAX_ID}`)
  }
  if (number < 0n) {
    refuse('ID_INVALID', `${number} is negative: an ID is 0 to ${MAX_ID}`)
  }
  return number
}

/** An instant as Unix milliseconds. */
export function unixMs(name: string, value: unknown): number {
  if (typeof value === 'number') {
    return safeInteger(name, value, 'OUT_OF_RANGE')
  }
  const ms = dateMs(value) ?? wrongType(name, value, 'a Date or Unix milliseconds')
  return isNaN(ms) ? refuse('OUT_OF_RANGE', `${name} is an invalid Date`) : ms
}

/** The own, enumerable, named properties of a plain object. A Map or an array would pass as empty options, and is refused. */
export function entries(name: string, value: unknown): [string, unknown][] {
  if (typeof value !== 'object' || value === null || !isPlain(value)) {
    return wrongType(name, value, 'a plain object')
  }
  return Object.entries(value).filter(([, given]) => given !== undefined).map(([key, given]) => [string('a key', key, 'SPEC'), given])
}

function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === null || Object.getPrototypeOf(prototype) === null
}

/** A Date's time, also that of another frame's Date; undefined for other values. */
function dateMs(value: unknown): number | undefined {
  try {
    return Date.prototype.getTime.call(value)
  } catch {
    return undefined
  }
}

/** A number that is an integer and has not been rounded. */
function safeInteger(name: string, number: number, code: ErrorCode): number {
  if (Number.isSafeInteger(number)) {
    return number
  }
  let why = 'it must be an integer'
  if (Number.isInteger(number)) {
    why = code === 'ID_INVALID'
      ? 'above 2^53 - 1 JavaScript has already rounded it: pass a string or a BigInt'
      : "it is beyond 2^53 - 1, the last of JavaScript's exact integers"
  }
  // A float is not an ID, whatever its value.
  const kind = code === 'ID_INVALID' && !Number.isInteger(number) ? 'WRONG_TYPE' : code
  return refuse(kind, `${cut(name, 60)}=${number} is refused: ${why}`)
}

function digits(number: bigint): string {
  const text = String(number)
  return text.length > 40 ? `${text.slice(0, 40)}... (${text.length} digits)` : text
}

function cut(text: string, longest: number): string {
  return text.length > longest ? [...text].slice(0, longest).join('') : text
}

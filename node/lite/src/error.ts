import { numbers } from './tables.js'

/** The name of an error: the same in every language, and in `frazil`. */
export type ErrorCode = keyof typeof numbers

/** An error: its code is stable, and its message names the argument, the value and the allowed values. */
export class FrazilError extends Error {
  /** The stable name, for example `'ID_INVALID'`. */
  readonly code: ErrorCode
  /** The stable number, for example 105. */
  readonly number: number

  private constructor(code: ErrorCode, message: string) {
    super(message)
    this.code = code
    this.number = numbers[code]
  }
}
Object.defineProperty(FrazilError.prototype, 'name', { value: 'FrazilError', configurable: true, writable: true })

export function refuse(code: ErrorCode, message: string): never {
  throw Reflect.construct(FrazilError, [code, message])
}

/** The caller's value, in quotes; cut short, so that a megabyte of nonsense does not become a megabyte of error. */
export function shown(text: string): string {
  const start = [...text.slice(0, 122)].slice(0, 60).join('')
  if (start === text) {
    return JSON.stringify(text)
  }
  const bytes = encodeURIComponent(text).replace(/%../g, '.').length
  return `${JSON.stringify(start)}... (${bytes} bytes)`
}

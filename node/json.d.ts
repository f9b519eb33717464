/**
 * Parses JSON like `JSON.parse`, but keeps integers beyond 2^53 - 1 as decimal strings, and does not round them.
 *
 * All other values are those of `JSON.parse`: integers up to 2^53 - 1 are numbers.
 *
 * @example
 * parseJson('{"id":1541815603606036481,"n":7}')   // { id: '1541815603606036481', n: 7 }
 *
 * @throws {SyntaxError} As `JSON.parse`.
 */
export function parseJson(text: string): any

/**
 * The second argument of `JSON.stringify`, by which a BigInt becomes a decimal string. Without it, `JSON.stringify` refuses a BigInt.
 *
 * @example
 * JSON.stringify({ id: 1541815603606036481n }, jsonReplacer)   // '{"id":"1541815603606036481"}'
 */
export function jsonReplacer(key: string, value: unknown): unknown

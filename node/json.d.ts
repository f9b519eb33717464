/**
 * `JSON.parse` that keeps integers beyond 2^53 - 1, as decimal strings: `JSON.parse` rounds them.
 *
 * Everything else is as `JSON.parse` gives it: also integers up to 2^53 - 1, which are numbers.
 *
 * @example
 * parseJson('{"id":1541815603606036481,"n":7}')   // { id: '1541815603606036481', n: 7 }
 *
 * @throws {SyntaxError} As `JSON.parse`.
 */
export function parseJson(text: string): any

/**
 * The second argument of `JSON.stringify`, which refuses a BigInt without it: a BigInt becomes a decimal string.
 *
 * @example
 * JSON.stringify({ id: 1541815603606036481n }, jsonReplacer)   // '{"id":"1541815603606036481"}'
 */
export function jsonReplacer(key: string, value: unknown): unknown

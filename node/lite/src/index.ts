/**
 * IDs in browsers and edge workers: decode, compare, validate, bounds for queries. Pure TypeScript, which mints nothing.
 *
 * Each function and class does the same as the one of that name in `frazil`.
 *
 * @example
 * const layout = new Layout('twitter')
 * layout.decode('1541815603606036480').time   // 2022-06-28T16:07:40.105Z
 */
export type { IdLike, Instant } from './convert.js'
export type { TextFormat } from './digits.js'
export { FrazilError, type ErrorCode } from './error.js'
export { compareIds, formatId, isId, parseId } from './ids.js'
export { Layout, type Composition, type Fields, type Integer, type Parts, type Preset, type PresetFields, type FieldBits } from './layout.js'

import type { Schema } from 'mongoose'
import type { Ids } from './adapters/source.js'

export type { Generator, Ids } from './adapters/source.js'

/**
 * A plugin that makes `_id` an ID, and gives new documents theirs.
 *
 * The database has 19 digits, with zeros in front, so that MongoDB has documents in the order of their IDs. Documents, `toJSON` and `toObject`
 * have the decimal without the zeros, which validators accept. What Mongoose leaves as the database has it (`lean`, `distinct`, the results of
 * `aggregate`) has 19 digits: `parseId` of `frazil` takes the zeros away.
 *
 * It acts where Mongoose makes documents (`new`, `create`, `save`, `insertMany`, also with `lean`), and in `bulkWrite` and upserts, for the
 * schemas that it is added to: for subdocuments by choice. `new` has the ID at once; where the generator would wait, or is not open yet, the
 * document has it when it is validated or saved, which waits. What goes past Mongoose gets none: `Model.collection`.
 *
 * Conditions take all that is an ID: text of either form, BigInts; so does `$match` in the first stages of `aggregate`. In later stages write
 * the 19 digits: `formatId(id, 'decimal')`.
 *
 * @example
 * const user = new Schema({ _id: String, name: String })
 * user.plugin(snowflakeId(ids))
 *
 * @throws {FrazilError} `WRONG_TYPE` for what is no generator, and for a schema whose `_id` is of another type; `ID_INVALID` for a replacement
 * with `upsert` whose ID MongoDB would make. What is no ID, also a number that JavaScript has rounded, is Mongoose's `CastError`.
 */
export function snowflakeId(ids: Ids): (schema: Schema<any, any, any, any, any, any, any, any, any, any, any>) => void

/**
 * The type of a field that refers to such a document: `author: { ...snowflakeType, ref: 'User' }`.
 *
 * A schema without the plugin needs `{ toJSON: { getters: true } }` for JSON without the zeros.
 */
export const snowflakeType: Readonly<{ type: StringConstructor; set: (id: unknown) => string | null | undefined; get: <T>(value: T) => T }>

import type { Schema } from 'mongoose'
import type { Ids } from './adapters/source.js'

export type { Generator, Ids } from './adapters/source.js'

/**
 * A plugin that makes `_id` an ID, and gives new documents their IDs.
 *
 * The database has 19 digits, with leading zeros, so that MongoDB orders documents by their IDs. Documents, `toJSON` and `toObject` have
 * the decimal without the zeros, which validators accept. Results that Mongoose leaves in the database's form (`lean`, `distinct`,
 * `aggregate`) have 19 digits: `parseId` of `frazil` removes the zeros.
 *
 * It works where Mongoose makes documents (`new`, `create`, `save`, `insertMany`, also with `lean`), and in `bulkWrite` and upserts. It
 * applies to the schemas that it is added to, which may be those of subdocuments. `new` has the ID at once. If the generator would wait, or
 * is not open yet, the document gets its ID when it is validated or saved. Documents that bypass Mongoose (`Model.collection`) get none.
 *
 * Conditions accept IDs as text of either form and as BigInts, also in `$match` of the first stages of `aggregate`. In later stages write
 * the 19 digits: `formatId(id, 'decimal')`.
 *
 * @example
 * const user = new Schema({ _id: String, name: String })
 * user.plugin(snowflakeId(ids))
 *
 * @throws {FrazilError} `WRONG_TYPE` for a value that is not a generator, and for a schema whose `_id` has another type; `ID_INVALID` for a
 * replacement with `upsert` whose ID MongoDB would make. Values that are not IDs, and rounded numbers, are Mongoose's `CastError`.
 */
export function snowflakeId(ids: Ids): (schema: Schema<any, any, any, any, any, any, any, any, any, any, any>) => void

/**
 * The type of a field that refers to such a document: `author: { ...snowflakeType, ref: 'User' }`.
 *
 * A schema without the plugin needs `{ toJSON: { getters: true } }` for JSON without the zeros.
 */
export const snowflakeType: Readonly<{ type: StringConstructor; set: (id: unknown) => string | null | undefined; get: <T>(value: T) => T }>

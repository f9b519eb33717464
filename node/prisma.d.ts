import type { Ids } from './adapters/source.js'

export type { Generator, Ids } from './adapters/source.js'

/** The options of {@link snowflakes}. */
export interface SnowflakesOptions {
  /**
   * The models that get IDs, each with its BigInt field: `{ User: 'id' }`. The default is each model whose key is one `BigInt @id` that has
   * no default or `@default(dbgenerated())`. The latter makes `id` optional in Prisma's types, and sets no default in the database.
   */
  models?: { readonly [model: string]: string } | undefined
}

/**
 * An extension of Prisma Client that gives new rows their IDs: `new PrismaClient({ adapter }).$extends(snowflakes(ids))`.
 *
 * It works in `create`, `createMany`, `createManyAndReturn` and `upsert`, and for all rows that they and `update` create through relations,
 * also in transactions. It waits if the generator must, and requests all IDs of a call at once. IDs are BigInts in Prisma:
 * `JSON.stringify(rows, jsonReplacer)` of `frazil/json` writes them as strings.
 *
 * Prisma calls no extensions for `$executeRaw`, nor for the client that is not extended.
 *
 * @example
 * // model User {
 * //   id BigInt @id @default(dbgenerated())
 * // }
 * const prisma = new PrismaClient({ adapter }).$extends(snowflakes(ids))
 * const { id } = await prisma.user.create({ data: {} })   // 1541815603606036481n
 *
 * @throws {FrazilError} `WRONG_TYPE` for a value that is not a generator or a Prisma Client; `OUT_OF_RANGE` and `UNKNOWN_KEY` for the
 * options, and for a schema without such a model. A query is refused with `ID_INVALID` for an ID that JavaScript has rounded, and with the
 * errors of the generator.
 */
export function snowflakes(ids: Ids, options?: SnowflakesOptions): (client: any) => {
  $extends: { extArgs: { result: {}; model: {}; query: {}; client: {} } }
}

import type { Ids } from './adapters/source.js'

export type { Generator, Ids } from './adapters/source.js'

/** The options of {@link snowflakes}. */
export interface SnowflakesOptions {
  /**
   * The models that get IDs, and in which BigInt field: `{ User: 'id' }`. Without it each model whose key is one `BigInt @id` without a
   * default, or with `@default(dbgenerated())`, which makes `id` optional in Prisma's types and leaves the database without a default.
   */
  models?: { readonly [model: string]: string } | undefined
}

/**
 * An extension of Prisma Client that gives new rows their IDs: `new PrismaClient({ adapter }).$extends(snowflakes(ids))`.
 *
 * It acts in `create`, `createMany`, `createManyAndReturn` and `upsert`, and in all that they and `update` create through relations, in
 * transactions too. It waits where the generator must, and asks for all IDs of a call at once. Prisma has IDs as BigInts:
 * `JSON.stringify(rows, jsonReplacer)` of `frazil/json` writes them as strings.
 *
 * Prisma does not ask extensions about `$executeRaw`, nor about calls of the client that is not extended.
 *
 * @example
 * // model User {
 * //   id BigInt @id @default(dbgenerated())
 * // }
 * const prisma = new PrismaClient({ adapter }).$extends(snowflakes(ids))
 * const { id } = await prisma.user.create({ data: {} })   // 1541815603606036481n
 *
 * @throws {FrazilError} `WRONG_TYPE` for what is no generator or no Prisma Client; `OUT_OF_RANGE` and `UNKNOWN_KEY` for the options, and for
 * a schema without such a model. A query is refused with `ID_INVALID` for an ID that JavaScript has rounded, and with what the generator
 * throws.
 */
export function snowflakes(ids: Ids, options?: SnowflakesOptions): (client: any) => {
  $extends: { extArgs: { result: {}; model: {}; query: {}; client: {} } }
}

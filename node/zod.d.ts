import type * as z from 'zod/v4'
import type { SnowflakeIdOptions } from './schema.js'

/**
 * zod's type of an ID: a string of decimal digits without leading zeros, 0 to 2^63 - 1. Numbers of any size are refused, with the reason.
 * Needs zod 3.25.76 or later, and uses its version 4: with `zod` 3.25, `import * as z from 'zod/v4'`.
 *
 * @example
 * const Order = z.object({ id: snowflakeId(), customer: snowflakeId({ as: 'bigint' }) })
 * z.toJSONSchema(snowflakeId())          // { type: 'string', pattern: '^(0|[1-9][0-9]{0,18})$', ... }
 *
 * @throws {FrazilError} For bad options, as `snowflakeId` of `frazil/schema`.
 */
export function snowflakeId(options?: SnowflakeIdOptions<'string'>): z.ZodString
/** A schema whose result is a bigint. */
export function snowflakeId(options: SnowflakeIdOptions<'bigint'>): z.ZodPipe<z.ZodString, z.ZodTransform<bigint, string>>

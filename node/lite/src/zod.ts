// zod's type of an ID, made by the copy of zod that the program has loaded.
import { idJsonSchema, snowflakeId, type SnowflakeIdOptions } from './schema.js'

/** The part of zod that is used. */
interface Zod {
  string(params: Explained): ZodString
}
interface ZodString {
  regex(pattern: RegExp, params: Explained & { abort: boolean }): ZodString
  refine(check: (value: string) => boolean, params: Explained): ZodString
  transform(change: (value: string) => bigint): ZodString
}
interface Explained {
  error: (issue: { readonly input?: unknown }) => string | undefined
}

export function zodType(z: Zod, options?: SnowflakeIdOptions): ZodString {
  const { validate } = snowflakeId(options)['~standard']
  const error = ({ input }: { readonly input?: unknown }): string | undefined => validate(input).issues?.[0]?.message
  const pattern = new RegExp(idJsonSchema.pattern)
  const id = z.string({ error }).regex(pattern, { error, abort: true }).refine(text => !validate(text).issues, { error })
  return options?.as === 'bigint' ? id.transform(BigInt) : id
}

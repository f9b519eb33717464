// The CommonJS entries have the same types.
import fastify = require('fastify')
import plugin = require('frazil/fastify')
import graphql = require('frazil/graphql')
import schema = require('frazil/schema')
import zod = require('frazil/zod')
import z = require('zod')

export const app = fastify()
app.register(plugin.frazilPlugin, { spec: 'standard node=7' })
export const id = (): string => app.ids.next()
export const scalar: string = graphql.GraphQLSnowflake.name
export const order: { id: string; owner: bigint } = z.object({ id: zod.snowflakeId(), owner: zod.snowflakeId({ as: 'bigint' }) }).parse({})
export const pattern: string = schema.idJsonSchema.pattern

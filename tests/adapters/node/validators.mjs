// All validators, and IDs that all of them accept. Tests of adapters send IDs through each validator, both ways. The Python suite reads the
// same vectors.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { Ajv } from 'ajv'
import { Snowflake } from 'frazil'
import { jsonReplacer } from 'frazil/json'
import { idJsonSchema, snowflakeId } from 'frazil/schema'
import './versions.mjs'

const { default: Fastify } = await import('fastify')
const graphql = await import('graphql')
const { frazilPlugin } = await import('frazil/fastify')
const { GraphQLSnowflake } = await import('frazil/graphql')
const { ParseSnowflakePipe } = await import('frazil/nestjs')
const zod = await import('frazil/zod')

const vectors = JSON.parse(readFileSync(new URL('../../vectors/adapters.json', import.meta.url), 'utf8'))

/** JSON values that each validator refuses. */
export const refused = [...vectors.refused.map(text => JSON.stringify(text)), ...vectors.refused_json]

/** The IDs that each validator accepts, with a new one. */
export const accepted = [...vectors.ids, new Snowflake('standard', { node: 5, detached: true }).next()]

const ajv = new Ajv().compile(idJsonSchema)
const pipe = new ParseSnowflakePipe()

const server = Fastify()
await server.register(frazilPlugin, { spec: 'standard node=6 detached=true' })
server.post('/', { schema: { body: { type: 'object', properties: { id: idJsonSchema } } } }, request => request.body)

const field = { type: GraphQLSnowflake, args: { id: { type: GraphQLSnowflake } }, resolve: (_, { id }) => id }
const schema = new graphql.GraphQLSchema({ query: new graphql.GraphQLObjectType({ name: 'Query', fields: { echo: field } }) })

/** The validators by name. Each takes an ID as JSON, and returns the program's value or throws. */
export const validators = new Map(Object.entries({
  async schema(json) {
    const { issues, value } = await snowflakeId()['~standard'].validate(JSON.parse(json))
    assert.equal(issues, undefined)
    return value
  },
  async 'schema as bigint'(json) {
    const { issues, value } = await snowflakeId({ as: 'bigint' })['~standard'].validate(JSON.parse(json))
    assert.equal(issues, undefined)
    return value
  },
  'JSON Schema'(json) {
    const id = JSON.parse(json)
    assert.ok(ajv(id))
    return id
  },
  zod: json => zod.snowflakeId().parse(JSON.parse(json)),
  'NestJS pipe': json => pipe.transform(JSON.parse(json), { type: 'body', data: 'id' }),
  async Fastify(json) {
    const answer = await server.inject({ method: 'POST', url: '/', headers: { 'content-type': 'application/json' }, body: `{"id":${json}}` })
    assert.equal(answer.statusCode, 200, answer.body)
    return answer.json().id
  },
  async GraphQL(json) {
    const source = 'query ($id: Snowflake!) { echo(id: $id) }'
    const { data, errors } = await graphql.graphql({ schema, source, variableValues: { id: JSON.parse(json) } })
    assert.equal(errors, undefined)
    return data.echo
  },
}))

/**
 * Sends IDs through an adapter and every validator. `write` makes a row. `read` finds it by the validator's output and returns `{ id }`,
 * whose JSON passes the validator again.
 */
export async function throughEveryValidator({ write, read }) {
  for (const id of accepted) {
    await write(id)
    for (const [name, validate] of validators) {
      const found = await read(await validate(JSON.stringify(id)))
      assert.equal(JSON.parse(JSON.stringify(found, jsonReplacer)).id, id, name)
      assert.equal(String(await validate(JSON.stringify(found.id, jsonReplacer))), id, name)
    }
  }
}

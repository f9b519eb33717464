// frazil/graphql with queries of the real graphql: literals and variables of clients, values of resolvers.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { test } from 'node:test'
import { bothVersions, install } from './installed.mjs'

const ID = '1541815603606036480'

for (const [version, installed] of bothVersions('graphql')) {
  const kinds = {
    require: () => [installed.require('graphql'), installed.require('frazil/graphql')],
    import: () => installed.import('graphql', 'frazil/graphql'),
  }
  for (const [kind, load] of Object.entries(kinds)) {
    const schemaOf = ({ GraphQLList, GraphQLObjectType, GraphQLSchema }, { GraphQLSnowflake }, stored) => new GraphQLSchema({
      query: new GraphQLObjectType({
        name: 'Query',
        fields: {
          echo: { type: GraphQLSnowflake, args: { id: { type: GraphQLSnowflake } }, resolve: (_, { id }) => id },
          all: { type: new GraphQLList(GraphQLSnowflake), args: { ids: { type: new GraphQLList(GraphQLSnowflake) } }, resolve: (_, { ids }) => ids },
          stored: { type: GraphQLSnowflake, resolve: () => stored },
        },
      }),
    })
    const ask = async (source, variableValues, stored) => {
      const [graphql, scalar] = await load()
      const { data, errors } = await graphql.graphql({ schema: schemaOf(graphql, scalar, stored), source, variableValues })
      return errors ? errors.map(({ message }) => message).join('\n') : { ...data }
    }

    test(`${version}, ${kind}: literals are read as text, with quotes and without`, async () => {
      for (const id of [ID, '0', '2147483648', '9007199254740993', '9223372036854775807']) {
        assert.deepEqual(await ask(`{ echo(id: ${id}) }`), { echo: id })
        assert.deepEqual(await ask(`{ echo(id: "${id}") }`), { echo: id })
      }
      assert.deepEqual(await ask(`{ all(ids: [${ID}, "5"]) }`), { all: [ID, '5'] })
      for (const [literal, message] of [
        ['-0', /'-' at position 0/], ['-5', /'-'/], ['9223372036854775808', /above/], ['"007"', /leading zeros/], ['1e18', /string of decimal digits/],
        ['1.0', /string of decimal digits/], ['true', /decimal digits/], ['[5, 6]', /decimal digits/], ['{ a: 5 }', /decimal digits/],
        ['"５"', /position 0/], ['""', /0 characters/], ['"""5 5"""', /position 1/],
      ]) {
        assert.match(await ask(`{ echo(id: ${literal}) }`), message)
      }
    })

    test(`${version}, ${kind}: variables are strings; a number is refused with the reason`, async () => {
      const source = 'query ($id: Snowflake) { echo(id: $id) }'
      assert.deepEqual(await ask(source, { id: ID }), { echo: ID })
      assert.deepEqual(await ask(source, { id: 2n ** 63n - 1n }), { echo: '9223372036854775807' })
      assert.deepEqual(await ask(source, { id: null }), { echo: null })
      assert.deepEqual(await ask('query ($id: Snowflake = 9007199254740993) { echo(id: $id) }'), { echo: '9007199254740993' })
      assert.match(await ask(source, JSON.parse(`{ "id": ${ID} }`)), /number 1541815603606036500, which JavaScript has already rounded: send it as a string/)
      assert.match(await ask(source, { id: 5 }), /send it as a string, in quotes/)
      for (const id of ['007', '', ' 1', '-1', '9223372036854775808', 2n ** 63n, -1n, true, [], [5, 6], {}, '1'.repeat(1_000_000)]) {
        const message = await ask(source, { id })
        assert.equal(typeof message, 'string')
        assert.match(message, /Snowflake|ID/)
      }
    })

    test(`${version}, ${kind}: a resolver's value is a string, or an error of the field`, async () => {
      for (const [stored, id] of [[ID, ID], [BigInt(ID), ID], [5, '5'], ['0000000000000000007', '7'], [2n ** 63n - 1n, '9223372036854775807'], [0, '0']]) {
        assert.deepEqual(await ask('{ stored }', {}, stored), { stored: id })
      }
      assert.match(await ask('{ stored }', {}, 1541815603606036480), /1541815603606036500 is refused: above 2\^53 - 1 JavaScript has already rounded it/)
      for (const stored of [-1, 2n ** 63n, 1.5, NaN, 'abc', '', {}, [5], true, new Date(5), Buffer.from('5'), new String('5')]) {
        assert.equal(typeof await ask('{ stored }', {}, stored), 'string')
      }
    })

    test(`${version}, ${kind}: ID_INVALID is the code of a GraphQLError, which servers do not mask`, async () => {
      const [graphql, scalar] = await load()
      const schema = schemaOf(graphql, scalar, 1541815603606036480)
      const variable = 'query ($id: Snowflake) { echo(id: $id) }'
      for (const [source, variableValues] of [
        [variable, JSON.parse(`{ "id": ${ID} }`)], [variable, { id: '1e18' }], [variable, { id: {} }],
        ['{ echo(id: "1e18") }'], ['{ echo(id: 1.5) }'], ['{ echo(id: true) }'], ['{ stored }'],
      ]) {
        const { errors: [error] } = await graphql.graphql({ schema, source, variableValues })
        // GraphQL Yoga's own check.
        const shown = each => each instanceof graphql.GraphQLError && (!each.originalError || shown(each.originalError))
        assert.ok(shown(error), source)
        // graphql 16.0 leaves the extensions of a variable's error out.
        if (variableValues === undefined || !version.endsWith(' 16.0.0')) {
          assert.equal(error.extensions.code, 'ID_INVALID', source)
        }
        assert.equal(error.locations.length, 1, 'the place in the query')
      }
    })

    test(`${version}, ${kind}: a schema written as text may name it`, async () => {
      const [{ buildSchema, printSchema }, { GraphQLSnowflake }] = await load()
      assert.equal(GraphQLSnowflake.name, 'Snowflake')
      const [graphql, scalar] = await load()
      assert.match(printSchema(schemaOf(graphql, scalar)), /echo\(id: Snowflake\): Snowflake/)
      const schema = buildSchema('scalar Snowflake\ntype Query { echo(id: Snowflake!): Snowflake }')
      for (const name of ['serialize', 'parseValue', 'parseLiteral', 'coerceOutputValue', 'coerceInputValue', 'coerceInputLiteral']) {
        if (GraphQLSnowflake[name]) {
          schema.getType('Snowflake')[name] = GraphQLSnowflake[name]
        }
      }
      const { data } = await graphql.graphql({ schema, source: `{ echo(id: ${ID}) }`, rootValue: { echo: ({ id }) => BigInt(id) } })
      assert.equal(data.echo, ID)
    })

    test(`${version}, ${kind}: graphql's own ID is exact only for strings`, async () => {
      const [{ buildSchema, graphql }] = await load()
      const schema = buildSchema('type Query { echo(id: ID!): ID }')
      const rootValue = { echo: ({ id }) => id }
      const echo = async (source, variableValues) => (await graphql({ schema, rootValue, source, variableValues })).data.echo
      assert.equal(await echo(`{ echo(id: ${ID}) }`), ID)
      assert.equal(await echo('query ($id: ID!) { echo(id: $id) }', { id: ID }), ID)
      assert.equal(await echo('query ($id: ID!) { echo(id: $id) }', JSON.parse(`{ "id": ${ID} }`)), '1541815603606036500')
    })
  }
}

test('without graphql the error names the package to install', () => {
  const { folder } = install()
  const run = (...flags) => spawnSync(process.execPath, flags, { cwd: folder, encoding: 'utf8' }).stderr
  assert.match(run('-e', "require('frazil/graphql')"), /frazil\/graphql needs graphql 16 or later: npm install graphql@latest\n/)
  assert.match(run('--input-type=module', '-e', "import 'frazil/graphql'"), /Cannot find package 'graphql'/)
})

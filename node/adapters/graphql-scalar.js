'use strict'

const { formatId, parseId } = require('../lite/cjs/index.js')
const { snowflakeId } = require('../lite/cjs/schema.js')

const { validate } = snowflakeId()['~standard']

function parseValue(value) {
  const { value: id, issues } = validate(typeof value === 'bigint' ? String(value) : value)
  if (issues) {
    throw new TypeError(issues[0].message)
  }
  return id
}

/** The scalar, made by the copy of graphql that the program has loaded: graphql refuses another's. */
module.exports = ({ GraphQLScalarType, Kind }) => new GraphQLScalarType({
  name: 'Snowflake',
  description: 'A 64-bit ID in decimal, 0 to 9223372036854775807. It is a string: a JSON number above 2^53 would be rounded.',
  // What a resolver gives: a string, a bigint, or a number that has not been rounded.
  serialize: id => parseId(formatId(id, 'decimal')),
  // What a variable holds.
  parseValue,
  // What stands in the query, where an integer is its digits as text: none is rounded.
  parseLiteral(node) {
    if (node.kind !== Kind.STRING && node.kind !== Kind.INT) {
      throw new TypeError('an ID is a string of decimal digits')
    }
    return parseValue(node.value)
  },
})

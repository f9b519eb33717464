'use strict'

const { formatId, parseId } = require('../lite/cjs/index.js')
const { snowflakeId } = require('../lite/cjs/schema.js')

const { validate } = snowflakeId()['~standard']

/** The scalar, made by the program's copy of graphql, because graphql rejects those of other copies. */
module.exports = ({ GraphQLError, GraphQLScalarType, Kind, versionInfo }) => {
  // Servers such as GraphQL Yoga mask all other errors. Version 17 takes options, and 16.0 only arguments.
  function refuse(message, node, code = 'ID_INVALID') {
    const error = new GraphQLError(message, versionInfo.major < 17 ? node : { nodes: node })
    error.extensions.code = code
    throw error
  }

  function parseValue(value, node) {
    const { value: id, issues } = validate(typeof value === 'bigint' ? String(value) : value)
    return issues ? refuse(issues[0].message, node) : id
  }

  return new GraphQLScalarType({
    name: 'Snowflake',
    description: 'A 64-bit ID in decimal, 0 to 9223372036854775807. It is a string: a JSON number above 2^53 would be rounded.',
    // The result of a resolver: a string, a bigint, or a number that was not rounded.
    serialize(id) {
      try {
        return parseId(formatId(id, 'decimal'))
      } catch ({ code, message }) {
        return refuse(message, undefined, code)
      }
    },
    // The value of a variable. Further arguments of graphql are ignored.
    parseValue: value => parseValue(value),
    // A literal in the query. Its digits are text, so it is never rounded.
    parseLiteral(node) {
      return node.kind === Kind.STRING || node.kind === Kind.INT
        ? parseValue(node.value, node)
        : refuse('an ID is a string of decimal digits', node)
    },
  })
}

import type { GraphQLScalarType } from 'graphql'

/**
 * The scalar `Snowflake`: an ID as a string in both directions. Needs graphql 16 or later.
 *
 * A variable is a string; a JSON number is refused, because it may have been rounded, which graphql's own `ID` does not notice. In the query
 * itself the digits may also be written without quotes: they are read as text. A resolver may return a string, a bigint, or a number up to 2^53 - 1;
 * a larger number is an error of the field. Errors are GraphQLErrors, which servers show, and `extensions.code` is frazil's: `ID_INVALID`.
 *
 * @example
 * const resolvers = { Snowflake: GraphQLSnowflake }   // beside `scalar Snowflake` in the schema
 */
export const GraphQLSnowflake: GraphQLScalarType<string, string>

// Not by way of graphql.js: in a bundle that would be another copy of graphql than the program's.
import * as graphql from 'graphql'
import scalar from './adapters/graphql-scalar.js'

export const GraphQLSnowflake = scalar(graphql)

// Does not import graphql.js, which would load another copy of graphql in a bundle.
import * as graphql from 'graphql'
import scalar from './adapters/graphql-scalar.js'

export const GraphQLSnowflake = scalar(graphql)

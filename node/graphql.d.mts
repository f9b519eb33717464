export * from './graphql.js'

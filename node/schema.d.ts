export * from './lite/cjs/schema.js'

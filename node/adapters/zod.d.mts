export * from './zod.js'

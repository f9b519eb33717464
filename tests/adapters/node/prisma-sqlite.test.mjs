import { alsoWithTheOldest } from './versions.mjs'

const { suite } = await import('./prisma/suite.mjs')

alsoWithTheOldest(import.meta.url)
suite('sqlite')

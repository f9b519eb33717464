// The CommonJS entry has the same types.
import frazil = require('frazil')

const ids: frazil.Snowflake = new frazil.Snowflake('twitter', { datacenter: 1, worker: 7 })
export const id: string = ids.next()
export const parts: frazil.Parts = ids.layout.decode(id)
export const orders: Promise<frazil.Segment> = frazil.Segment.open('orders', { store: 'local' })

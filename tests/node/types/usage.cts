// The CommonJS entries have the same types.
import frazil = require('frazil')
import lite = require('frazil/lite')

const ids: frazil.Snowflake = new frazil.Snowflake('twitter', { datacenter: 1, worker: 7 })
export const id: string = ids.next()
export const parts: frazil.Parts = ids.layout.decode(id)
export const orders: Promise<frazil.Segment> = frazil.Segment.open('orders', { store: 'local' })

export const time: Date = new lite.Layout('twitter').decode('1').time
export const code = (error: lite.FrazilError): lite.ErrorCode => error.code

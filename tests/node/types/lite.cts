// The CommonJS entry has the same types.
import lite = require('frazil/lite')

export const time: Date = new lite.Layout('twitter').decode('1').time
export const code = (error: lite.FrazilError): lite.ErrorCode => error.code

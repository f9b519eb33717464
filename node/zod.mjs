// Does not import zod.js, which loads another copy of zod than modules do.
import * as z from 'zod/v4'
import { zodType } from './lite/esm/zod.js'

export function snowflakeId(options) {
  return zodType(z, options)
}

// Not by way of zod.js, whose zod is another copy than the one that modules import.
import * as z from 'zod/v4'
import { zodType } from './lite/esm/zod.js'

export function snowflakeId(options) {
  return zodType(z, options)
}

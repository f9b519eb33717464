// The generator of this process: its node number is leased, as the spec line in FRAZIL says.
import { Snowflake } from 'frazil'

export let ids

export async function openIds() {
  ids = await Snowflake.open()
  return ids
}

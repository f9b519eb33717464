import { Snowflake } from 'frazil'

const ids = await Snowflake.open('standard', { store: 'local' })
console.log(ids.next())
await ids.closeAsync()

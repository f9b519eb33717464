import { Snowflake } from 'frazil'

export const ids = new Snowflake('twitter', { datacenter: 1, worker: 7, detached: true })

const { parentPort } = require('node:worker_threads')
const { Snowflake } = require('frazil')

Snowflake.open('standard', { store: 'local' }).then(async ids => {
  parentPort.postMessage([ids.next(), ...ids.batch(10)])
  await ids.closeAsync()
})

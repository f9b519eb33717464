// A server that speaks MongoDB's protocol. MongoDB's own is in no package registry; SecantusDB, on WiredTiger as MongoDB is, comes from PyPI.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'

/** Starts the server on a free port, with empty data that goes with it: `{ url, stop }`. The kernel ends it with this process. */
export async function startMongodb() {
  const program = process.env.FRAZIL_TEST_SECANTUSD
  if (!program) {
    throw new Error('FRAZIL_TEST_SECANTUSD is not set: tests/adapters/node/run.sh installs the server')
  }
  const options = ['--host', '127.0.0.1', '--port', '0', '--storage-path', ':memory:', '--standalone']
  const server = spawn('setpriv', ['--pdeathsig=KILL', '--', program, ...options], { stdio: ['ignore', 'ignore', 'pipe'] })
  const told = []
  for await (const line of createInterface(server.stderr)) {
    told.push(line)
    const [, address] = /listening on (\S+)/.exec(line) ?? []
    if (address) {
      server.stderr.resume()
      return {
        url: `mongodb://${address}/frazil`,
        async stop() {
          server.kill('SIGTERM')
          await once(server, 'exit')
        },
      }
    }
  }
  throw new Error(`SecantusDB did not start:\n${told.join('\n')}`)
}

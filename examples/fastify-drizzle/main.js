// One process that watches, and workers that serve on one port. A worker that dies is replaced.
import cluster from 'node:cluster'
import { migrateDatabase } from './database.js'
import { serve } from './server.js'

const PORT = Number(process.env.PORT ?? 8000)
const WORKERS = Number(process.env.WORKERS ?? 4)

// Each worker takes connections from the system. Those that this process has passed on to a worker would hang if the worker is killed.
cluster.schedulingPolicy = cluster.SCHED_NONE

async function watch() {
  await migrateDatabase()
  let stopping = false
  cluster.on('exit', (worker, code, signal) => {
    if (!stopping) {
      console.error(`Worker ${worker.process.pid} ended (${signal ?? code}): another takes its place`)
      // After a pause, in case each of them fails.
      setTimeout(() => stopping || cluster.fork(), code ? 1000 : 0)
    }
  })
  const stop = () => {
    stopping = true
    for (const worker of Object.values(cluster.workers)) {
      worker.process.kill('SIGTERM')
    }
  }
  process.on('SIGTERM', stop)
  process.on('SIGINT', stop)
  for (let count = 0; count < WORKERS; count++) {
    cluster.fork()
  }
}

async function work() {
  const app = await serve(PORT)
  process.once('SIGTERM', async () => {
    // The last request is answered, and the node number released.
    await app.close()
    process.exit()
  })
  // A terminal's Ctrl-C reaches all processes, but only the one that watches reacts.
  process.on('SIGINT', () => {})
}

await (cluster.isPrimary ? watch() : work())

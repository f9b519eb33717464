#!/usr/bin/env bash
# Three of four command-line parsers for Node turn an ID into a number, and lose its last digits. One keeps the text.
#
# An operator passes an ID as `--id 1541815603606036481`. minimist 1.2.8, mri 1.2.0 and getopts 2.3.0 return the number
# 1541815603606036500 in JavaScript's shortest digits, which is another ID. They do this by default, and report
# nothing. yargs-parser 22.0.0 keeps the text, because the number is not a safe integer.
# Remedy: declare the option as a string (minimist, mri and getopts have the setting `string: ['id']`).
. "$(dirname "$0")/begin.sh"
npm_packages minimist@1.2.8 mri@1.2.0 getopts@2.3.0 yargs-parser@22.0.0
cat > try.mjs <<'JS'
import minimist from 'minimist'
import mri from 'mri'
import getopts from 'getopts'
import yargs from 'yargs-parser'
const line = ['--id', '1541815603606036481']
for (const [name, parse] of Object.entries({ minimist, mri, getopts, 'yargs-parser': yargs })) {
  const { id } = parse(line)
  const declared = parse(line, { string: ['id'] }).id
  console.log(`${name}: ${typeof id} ${id}; declared as a string: ${typeof declared} ${declared}`)
}
JS
node try.mjs > seen
expect seen <<'SEEN'
minimist: number 1541815603606036500; declared as a string: string 1541815603606036481
mri: number 1541815603606036500; declared as a string: string 1541815603606036481
getopts: number 1541815603606036500; declared as a string: string 1541815603606036481
yargs-parser: string 1541815603606036481; declared as a string: string 1541815603606036481
SEEN

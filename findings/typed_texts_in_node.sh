#!/usr/bin/env bash
# Node libraries that guess types from text: three silently round an ID, one keeps the text, two throw.
#
# The same ID is read from a URL's query, a CSV file, HJSON, XML and TOML. query-string 9.5.1 (`parseNumbers`), d3-dsv 3.0.2
# (`autoType`) and hjson 3.2.2 return a rounded number. fast-xml-parser 5.12.1 keeps a text whose digits would not survive.
# smol-toml 1.9.1 and toml 5.0.1 throw. So the format decides whether an ID survives, and nothing reports a loss.
. "$(dirname "$0")/begin.sh"
npm_packages query-string@9.5.1 d3-dsv@3.0.2 hjson@3.2.2 fast-xml-parser@5.12.1 smol-toml@1.9.1 toml@5.0.1
cat > try.mjs <<'JS'
import { show } from './show.mjs'
import queryString from 'query-string'
import { csvParse, autoType } from 'd3-dsv'
import hjson from 'hjson'
import { XMLParser } from 'fast-xml-parser'
import * as smol from 'smol-toml'
import toml from 'toml'
const id = '1541815603606036481'
const readers = {
  'query-string': () => queryString.parse(`id=${id}`, { parseNumbers: true }).id,
  'd3-dsv': () => csvParse(`id\n${id}`, autoType)[0].id,
  hjson: () => hjson.parse(`{id: ${id}}`).id,
  'fast-xml-parser': () => new XMLParser().parse(`<row><id>${id}</id></row>`).row.id,
  'smol-toml': () => smol.parse(`id = ${id}`).id,
  toml: () => toml.parse(`id = ${id}`).id
}
show(readers)
JS
node try.mjs > seen
expect seen <<'SEEN'
query-string: number 1541815603606036500
d3-dsv: number 1541815603606036500
hjson: number 1541815603606036500
fast-xml-parser: string 1541815603606036481
smol-toml: an error
toml: an error
SEEN

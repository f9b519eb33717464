#!/usr/bin/env bash
# CSV on the command line: converters and statistics that round the IDs of a file.
#
# csvkit 2.2.0 recognises a column of integers, reads its values exactly, and writes them as floats: csvjson writes one and the same
# number for three IDs, csvstat reports a largest ID that is not in the file, and csvsql creates a column of floats. csvsort is exact.
# csvs-to-sqlite 1.3.1 rounds a column with an empty cell, and not the column beside it.
# datamash 1.7 groups and counts exactly, and prints the largest ID with 14 digits.
# Remedy: `csvjson -I`, `csvsql -I` with a cast in the query; `datamash --format '%.0f'`.
. "$(dirname "$0")/begin.sh"
python_packages csvkit==2.2.0 csvs-to-sqlite==1.3.1
debian_packages datamash=1.7-2
printf '%s\n' id,parent 1765646837124341761, 1765646837124341762,1765646837124341761 1765646837124341763,1765646837124341762 > orders.csv
cut -d , -f 1 orders.csv > ids.csv
bin=$work/environment/bin datamash=$unpacked/usr/bin/datamash
{
    echo "csvjson: $("$bin/csvjson" ids.csv)"
    echo "csvjson -I: $("$bin/csvjson" -I ids.csv)"
    echo "csvstat --max: $("$bin/csvstat" --max -c id ids.csv)"
    echo "csvsql: $("$bin/csvsql" --query 'SELECT count(DISTINCT id) FROM ids' ids.csv | tail -n 1) different IDs of 3"
    echo "csvsql -I: $("$bin/csvsql" -I --query 'SELECT max(CAST(id AS INTEGER)) FROM ids' ids.csv | tail -n 1)"
    echo "csvsort: $("$bin/csvsort" -r -c id ids.csv | sed -n 2p)"
    "$bin/csvs-to-sqlite" orders.csv orders.db > /dev/null 2>&1
    "$bin/python" -c 'import sqlite3; print("csvs-to-sqlite:", sqlite3.connect("orders.db").execute("SELECT * FROM orders").fetchall())'
    echo "datamash max: $(sed 1d ids.csv | "$datamash" max 1)"
    echo "datamash --format: $(sed 1d ids.csv | "$datamash" --format '%.0f' max 1)"
} > seen 2> /dev/null
expect seen <<'SEEN'
csvjson: [{"id": 1.7656468371243418e+18}, {"id": 1.7656468371243418e+18}, {"id": 1.7656468371243418e+18}]
csvjson -I: [{"id": "1765646837124341761"}, {"id": "1765646837124341762"}, {"id": "1765646837124341763"}]
csvstat --max: 1765646837124341760
csvsql: 1 different IDs of 3
csvsql -I: 1765646837124341763
csvsort: 1765646837124341763
csvs-to-sqlite: [(1765646837124341761, None), (1765646837124341762, 1765646837124341760), (1765646837124341763, 1765646837124341760)]
datamash max: 1.7656468371243e+18
datamash --format: 1765646837124341763
SEEN

#!/usr/bin/env bash
# dbt: a seed file with an ID is refused, because dbt declares a column of whole numbers as INTEGER, whatever their size.
#
# dbt-core 1.10.23 derives a type from the CSV file. dbt-duckdb 1.11.1 makes INTEGER of it, into which no ID of 19 digits fits, so `dbt
# seed` fails, although DuckDB itself would have found BIGINT, and says so in the error. Small IDs of a first test pass, and the table
# stays INTEGER until the first real ID.
# Remedy: `column_types: {id: bigint}` for the seed.
. "$(dirname "$0")/begin.sh"
python_packages dbt-core==1.10.23 dbt-duckdb==1.11.1 duckdb==2.0.1
export DBT_SEND_ANONYMOUS_USAGE_STATS=false
mkdir seeds
printf 'name: shop\nversion: 1.0.0\nprofile: shop\n' > dbt_project.yml
printf 'shop:\n  target: dev\n  outputs:\n    dev: {type: duckdb, path: shop.duckdb}\n' > profiles.yml
seed() { # WHAT
    environment/bin/dbt --no-use-colors seed --full-refresh --profiles-dir . > log || true
    echo "$1: $(grep -oE 'Set type: \w+ Sniffed type: \w+|Completed successfully' log)"
}
{
    printf 'id\n7\n' > seeds/orders.csv
    seed "a small ID"
    printf 'id\n1541815603606036481\n' > seeds/orders.csv
    seed "a real ID"
    printf 'seeds:\n  shop:\n    orders:\n      +column_types: {id: bigint}\n' >> dbt_project.yml
    seed "with column_types"
} > seen
expect seen <<'SEEN'
a small ID: Completed successfully
a real ID: Set type: INTEGER Sniffed type: BIGINT
with column_types: Completed successfully
SEEN

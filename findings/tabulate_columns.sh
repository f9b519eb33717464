#!/usr/bin/env bash
# A table on a terminal: a single price in a column makes tabulate print the column's IDs with six digits.
#
# tabulate 0.10.0 derives the type of a column from all its cells. It prints a column of IDs in full. With one float among them
# (a total, a missing ID as NaN), it prints every ID of the column as 1.54182e+18, even an ID that is a str.
# Remedy: `disable_numparse=True`, or `colalign` with texts.
. "$(dirname "$0")/begin.sh"
python_packages tabulate==0.10.0
cat > try.py <<'PY'
from tabulate import tabulate

identifier = 1541815603606036481
for name, cells in {"alone": [identifier], "beside None": [identifier, None], "beside NaN": [identifier, float("nan")],
                    "a str beside a float": [str(identifier), 2.5]}.items():
    print(f"{name}:", tabulate([[cell] for cell in cells], tablefmt="plain").split()[0])
print("disable_numparse:", tabulate([[str(identifier)], [2.5]], tablefmt="plain", disable_numparse=True).split()[0])
PY
"$python" try.py > seen
expect seen <<'SEEN'
alone: 1541815603606036481
beside None: 1541815603606036481
beside NaN: 1.54182e+18
a str beside a float: 1.54182e+18
disable_numparse: 1541815603606036481
SEEN

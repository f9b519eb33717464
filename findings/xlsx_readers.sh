#!/usr/bin/env bash
# Readers of one .xlsx file by openpyxl return two different wrong IDs, and neither is the nearest double.
#
# openpyxl 3.1.5 writes a Python int of 19 digits with 16 significant digits (1.541815603606036e+18), so the file is off by up
# to 500 before any spreadsheet opens it. pandas and python-calamine read the double of these digits, and xlsx2csv prints the
# digits with zeros. A check for "the nearest double" or for "zeros at the end" finds only one of the two errors.
# Remedy: write the cell as text.
. "$(dirname "$0")/begin.sh"
python_packages openpyxl==3.1.5 python-calamine==0.9.1 pandas==3.1.1 xlsx2csv==0.8.6
cat > try.py <<'PY'
import subprocess
import sys
from pathlib import Path

import openpyxl
import pandas
from python_calamine import CalamineWorkbook

book = openpyxl.Workbook()
book.active.append(["id"])
book.active.append([1541815603606036481])
book.save("ids.xlsx")
print("nearest double:", int(float(1541815603606036481)))
print("pandas:", pandas.read_excel("ids.xlsx", engine="openpyxl").id[0])
print("calamine:", int(CalamineWorkbook.from_path("ids.xlsx").get_sheet_by_index(0).to_python()[1][0]))
tool = Path(sys.executable).with_name("xlsx2csv")
print("xlsx2csv:", subprocess.run([tool, "ids.xlsx"], capture_output=True, text=True, check=True).stdout.split()[1])
PY
"$python" try.py > seen
expect seen <<'SEEN'
nearest double: 1541815603606036480
pandas: 1541815603606035968
calamine: 1541815603606035968
xlsx2csv: 1541815603606036000
SEEN

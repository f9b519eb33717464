#!/usr/bin/env bash
# Data files of SPSS, SAS and R store doubles, so an ID column changes when it is written and read, without a warning.
#
# pyreadstat 1.3.7 writes an int64 column to .sav and .xpt, and pyreadr 0.5.8 to .rds, as doubles. Two neighbouring IDs become
# one. Neither reports anything. pandas' own to_stata warns (PossiblePrecisionLoss). Remedy: write the column as text.
. "$(dirname "$0")/begin.sh"
python_packages pyreadstat==1.3.7 pyreadr==0.5.8 pandas==3.1.1
cat > try.py <<'PY'
import warnings

import pandas
import pyreadr
import pyreadstat

frame = pandas.DataFrame({"id": [1541815603606036481, 1541815603606036482]})


def spss():
    pyreadstat.write_sav(frame, "ids.sav")
    return pyreadstat.read_sav("ids.sav")[0]


def sas():
    pyreadstat.write_xport(frame, "ids.xpt")
    return pyreadstat.read_xport("ids.xpt")[0]


def r():
    pyreadr.write_rds("ids.rds", frame)
    return pyreadr.read_r("ids.rds")[None]


def stata():
    frame.to_stata("ids.dta", write_index=False)
    return pandas.read_stata("ids.dta")


for name, round_trip in {"SPSS": spss, "SAS": sas, "R": r, "Stata by pandas": stata}.items():
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        ids = [int(value) for value in round_trip().iloc[:, 0]]
    print(f"{name}: {ids[0]} {ids[1]}; {'a warning' if any('lossless' in str(w.message) for w in warned) else 'no warning'}")
PY
"$python" try.py > seen
expect seen <<'SEEN'
SPSS: 1541815603606036480 1541815603606036480; no warning
SAS: 1541815603606036480 1541815603606036480; no warning
R: 1541815603606036480 1541815603606036480; no warning
Stata by pandas: 1541815603606036480 1541815603606036480; a warning
SEEN

#!/usr/bin/env bash
# Shapefiles: the file holds every digit of an ID, and the readers disagree about it.
#
# geopandas 1.2.0 with pyogrio 0.13.0 (GDAL) writes an int64 of 19 digits into the .dbf file as 19 digits. Its own read_file gives
# the column back as float64, so 1541815603606036481 becomes 1541815603606036480. Nothing warns. pyshp 3.1.6 and dbfread 2.0.7 read
# the same file exactly. One longest ID is enough: the type belongs to the column's width, and 18 digits are read as int64.
# Remedy: GeoPackage or FlatGeobuf, which have 64-bit integers, or a column of texts.
. "$(dirname "$0")/begin.sh"
python_packages geopandas==1.2.0 pyogrio==0.13.0 pyshp==3.1.6 dbfread==2.0.7
cat > try.py <<'PY'
import warnings

import geopandas
import shapefile
from dbfread import DBF
from shapely.geometry import Point

warnings.simplefilter("error")
for name, ids in {"19 digits": [1541815603606036481, 9], "18 digits": [541815603606036481, 9]}.items():
    table = geopandas.GeoDataFrame({"id": ids}, geometry=[Point(1, 2)] * 2, crs="EPSG:4326")
    table.to_file("shops.shp")
    print(f"{name}, geopandas:", [int(id) for id in geopandas.read_file("shops.shp")["id"]])
    print(f"{name}, pyshp:", [record[0] for record in shapefile.Reader("shops.shp").records()])
    print(f"{name}, dbfread:", [record["id"] for record in DBF("shops.dbf")])
    for file in ("shops.gpkg", "shops.fgb"):
        table.to_file(file)
        print(f"{name}, {file}:", list(geopandas.read_file(file)["id"]) == ids)
PY
"$python" try.py > seen
expect seen <<'SEEN'
19 digits, geopandas: [1541815603606036480, 9]
19 digits, pyshp: [1541815603606036481, 9]
19 digits, dbfread: [1541815603606036481, 9]
19 digits, shops.gpkg: True
19 digits, shops.fgb: True
18 digits, geopandas: [541815603606036481, 9]
18 digits, pyshp: [541815603606036481, 9]
18 digits, dbfread: [541815603606036481, 9]
18 digits, shops.gpkg: True
18 digits, shops.fgb: True
SEEN

#!/usr/bin/env bash
# xarray: the attribute _FillValue in a NetCDF or zarr file makes a variable of IDs a variable of doubles, although no value is missing.
#
# xarray 2026.9.0 reads an int64 variable as int64. If the file names a fill value, as many writers of NetCDF do for every variable, it
# reads float64, because only floats have NaN; so two IDs become one, and nothing warns. netCDF4 1.7.5 gives the exact integers of the
# same file, as a masked array.
# Remedy: `mask_and_scale=False`, or no fill value for IDs.
. "$(dirname "$0")/begin.sh"
python_packages xarray==2026.9.0 netCDF4==1.7.5.1.post1 zarr==3.1.6
cat > try.py <<'PY'
import netCDF4
import numpy
import xarray

ids = numpy.array([1541815603606036481, 1541815603606036483])
table = xarray.Dataset({"id": ("row", ids)})
for name, encoding in {"no fill value": {}, "fill value -1": {"id": {"_FillValue": -1}}}.items():
    table.to_netcdf("ids.nc", encoding=encoding)
    table.to_zarr("ids.zarr", mode="w", zarr_format=2, encoding=encoding)
    for file in ("ids.nc", "ids.zarr"):
        read = xarray.open_dataset(file)["id"]
        print(f"{name}, {file}:", read.dtype, len(set(read.values.tolist())), "different IDs")
        read.close()
    with netCDF4.Dataset("ids.nc") as file:
        print(f"{name}, netCDF4:", file["id"][:].dtype, file["id"][:].tolist() == ids.tolist())
print("mask_and_scale=False:", (xarray.open_dataset("ids.nc", mask_and_scale=False)["id"].values == ids).all())
PY
"$python" try.py 2> warnings > seen
[ ! -s warnings ] || cat warnings >> seen
expect seen <<'SEEN'
no fill value, ids.nc: int64 2 different IDs
no fill value, ids.zarr: int64 2 different IDs
no fill value, netCDF4: int64 True
fill value -1, ids.nc: float64 1 different IDs
fill value -1, ids.zarr: float64 1 different IDs
fill value -1, netCDF4: int64 True
mask_and_scale=False: True
SEEN

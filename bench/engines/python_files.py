#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""The files of bench/python.py, written by netCDF4-python and zarr-python, and what judges the peers.

    python_files.py make '{"path": ..., "shape": [time, y, x], "chunks": [...], "filter": "deflate", "packed": false}'
    python_files.py zarr '{"path": ..., "source": ..., "chunks": [...], "filter": "zstd"}'
    python_files.py many '{"folder": ..., "files": 1000, "shape": [1, 73, 144], "zarr": true}'
    python_files.py wide '{"path": ..., "variables": 1000, "zarr": ...}'
    python_files.py same '{"mine": A.npy, "right": B.npy, "tolerance": 1e-4}'
    python_files.py written '{"target": ..., "source": ..., "chunks": [...], "filter": ...}'

Prints one JSON line; for `same` and `written` with "wrong", which is null where nothing is.
"""

import json
import os
import sys

import netCDF4
import numpy as np

FILTERS = {
    "none": {},
    "deflate": dict(zlib=True, complevel=4, shuffle=True),
    "zstd": dict(compression="zstd", complevel=3),  # netCDF4-python shuffles for deflate only
    # What Zarr's Blosc does: LZ4 level 5 after a shuffle.
    "blosc": dict(compression="blosc_lz4", complevel=5, blosc_shuffle=1),
}
SLAB = 24  # maps that are made at once


def maps(first: int, n: int, shape) -> np.ndarray:
    """Temperatures: a wave that travels, weather, and noise down to 1/256 K."""
    _, ny, nx = shape
    y, x = np.linspace(-1, 1, ny, dtype="f4")[:, None], np.linspace(0, 2 * np.pi, nx, endpoint=False, dtype="f4")
    chance = np.random.default_rng(first)
    out = np.empty((n, ny, nx), "f4")
    for k in range(n):
        wave = 288 - 30 * y**2 + 8 * np.cos(3 * x + 0.1 * (first + k)) * (1 - y**2)
        out[k] = np.round((wave + 0.3 * chance.standard_normal((ny, nx), dtype="f4")) * 256) / 256
    return out


def define(file, shape) -> None:
    for name, length in zip(("time", "y", "x"), shape):
        file.createDimension(name, length)
        file.createVariable(name, "f8", (name,))
    file["time"].units, file["time"].calendar = "hours since 2000-01-01", "standard"
    file["y"][:], file["x"][:] = np.linspace(-90, 90, shape[1]), np.arange(shape[2]) * 360 / shape[2]


def make(job) -> dict:
    shape = job["shape"]
    kind = job.get("format", "NETCDF4")
    with netCDF4.Dataset(job["path"], "w", format=kind) as file:
        define(file, shape)
        file["time"][:] = np.arange(shape[0])
        packed = job.get("packed", False)
        how = (dict(contiguous=True) if kind == "NETCDF4" else {}) if not job["chunks"] else dict(chunksizes=job["chunks"], **FILTERS[job["filter"]])
        fill = np.int16(-32768) if packed else None
        t = file.createVariable("t", "i2" if packed else "f4", ("time", "y", "x"), fill_value=fill, **how)
        t.units, t.long_name = "K", "air temperature"
        if packed:
            t.scale_factor, t.add_offset = np.float32(0.01), np.float32(273.15)
        # Whole chunks at once, or each would be filtered several times.
        slab = max(SLAB, job["chunks"][0] if job["chunks"] else 1)
        for first in range(0, shape[0], slab):
            t[first : first + slab] = maps(first, min(slab, shape[0] - first), shape)
    return {"bytes": os.path.getsize(job["path"])}


def tree_size(path) -> int:
    return sum(os.path.getsize(os.path.join(folder, name)) for folder, _, names in os.walk(path) for name in names)


def xarray_to_zarr(ds, path, encoding) -> None:
    ds.to_zarr(path, encoding=encoding, consolidated=False, zarr_format=3, mode="w")


def zarr(job) -> dict:
    import xarray as xr

    from python_peer import zarr_filter

    with xr.open_dataset(job["source"], engine="netcdf4", chunks={"time": SLAB}, mask_and_scale=False) as ds:
        for variable in ds.variables.values():
            variable.encoding.clear()
        xarray_to_zarr(ds, job["path"], {"t": {"chunks": tuple(job["chunks"]), **zarr_filter(job["filter"])}})
    return {"bytes": tree_size(job["path"])}


def many(job) -> dict:
    import xarray as xr

    paths, stores = [], []
    shape = job["shape"]
    for n in range(job["files"]):
        path = os.path.join(job["folder"], f"day{n:05d}.nc")
        with netCDF4.Dataset(path, "w") as file:
            define(file, shape)
            file["time"][:] = np.arange(shape[0]) + n * shape[0]
            t = file.createVariable("t", "f4", ("time", "y", "x"), chunksizes=shape, **FILTERS["deflate"])
            t[:] = maps(n * shape[0], shape[0], shape)
            t.units = "K"
        paths.append(path)
        if job["zarr"]:
            stores.append(path.removesuffix(".nc") + ".zarr")
            with xr.open_dataset(path, engine="netcdf4") as ds:
                loaded = ds.load()
            for variable in loaded.variables.values():
                variable.encoding.clear()
            xarray_to_zarr(loaded, stores[-1], {"t": {"chunks": tuple(shape)}})
    return {"paths": paths, "stores": stores, "bytes": sum(map(os.path.getsize, paths))}


def wide(job) -> dict:
    """Many variables with attributes, small data: what opening costs."""
    import xarray as xr

    shape = (4, 19, 36)
    with netCDF4.Dataset(job["path"], "w") as file:
        define(file, shape)
        file["time"][:] = np.arange(shape[0])
        for n in range(job["variables"]):
            v = file.createVariable(f"v{n}", "f4", ("time", "y", "x"), zlib=True, complevel=1, fill_value=np.float32(1e20))
            v.units, v.long_name, v.standard_name = "K", f"variable number {n}", "air_temperature"
            v.cell_methods, v.valid_max = "time: mean", np.float32(400)
            v[:] = n
    if job["zarr"]:
        with xr.open_dataset(job["path"], engine="netcdf4") as ds:
            loaded = ds.load()
        for variable in loaded.variables.values():
            variable.encoding.clear()
        xarray_to_zarr(loaded, job["zarr"], {})
    return {"bytes": os.path.getsize(job["path"])}


def same(job) -> dict:
    mine, right = np.load(job["mine"]), np.load(job["right"])
    if mine.shape != right.shape:
        return {"wrong": f"shape {mine.shape}, not {right.shape}"}
    off = float(np.max(np.abs(mine.astype("f8") - right.astype("f8")), initial=0))
    if not off <= job["tolerance"]:  # also where it is NaN
        return {"wrong": f"values are off by {off:g}"}
    return {"wrong": None}


def stored(variable, job) -> str | None:
    """What is other than asked for in how netCDF stored a variable."""
    if tuple(variable.chunking()) != tuple(job["chunks"]):
        return f"chunks {variable.chunking()}"
    filters = variable.filters()
    wanted = {"deflate": filters["zlib"] and filters["shuffle"] and filters["complevel"] == 4,
              "zstd": filters["zstd"] and not filters["shuffle"], "none": not (filters["zlib"] or filters["zstd"])}  # fmt: skip
    return None if wanted[job["filter"]] else f"filters {filters}"


def written(job) -> dict:
    """Reads what a peer wrote with netCDF4-python or zarr-python, and compares all values."""
    target, wrong = job["target"], None
    with netCDF4.Dataset(job["source"]) as source:
        if target.endswith(".zarr"):
            import zarr as zarr_python

            mine, size = zarr_python.open_group(target, mode="r")["t"], tree_size(target)
            if tuple(mine.chunks) != tuple(job["chunks"]):
                wrong = f"chunks {mine.chunks}"
            file = None
        else:
            file, size = netCDF4.Dataset(target), os.path.getsize(target)
            mine = file["t"]
            wrong = stored(mine, job)
        right = source["t"]
        if tuple(mine.shape) != tuple(right.shape):
            wrong = f"shape {mine.shape}"
        for first in range(0, right.shape[0] if wrong is None else 0, SLAB):
            a, b = (np.ma.getdata(v[first : first + SLAB]) for v in (mine, right))
            if a.dtype != b.dtype or not np.array_equal(a, b):
                wrong = f"other values in the maps from {first} on"
                break
        if file is not None:
            file.close()
    return {"wrong": wrong, "bytes": size}


if __name__ == "__main__":
    WORK = {f.__name__: f for f in (make, zarr, many, wide, same, written)}
    command, text = sys.argv[1:]
    print(json.dumps(WORK[command](json.loads(text))))

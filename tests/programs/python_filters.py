"""Filters on variables of strings and sequences, which netCDF-C 4.9.0 refuses and later releases take: what each
answers, and that values come back.

    python_filters.py OUT.nc
"""
import os
import sys

import netCDF4
import numpy as np

WORDS = ["one", "zwei", "", "x" * 5000]


def main(path):
    asked = [{"zlib": True}, {"zlib": True, "shuffle": False, "complevel": 9}, {"fletcher32": True},
             {"zlib": True, "fletcher32": True, "chunksizes": (3,)}]
    write_and_read(path, asked)
    if [int(n) for n in netCDF4.__version__.split(".")[:2]] >= [1, 7]:
        # Debian's ncdump, which compares the files, has no filters for these.
        write_and_read(path + ".others", [{"compression": name} for name in ("zstd", "bzip2")])
        os.remove(path + ".others")


def write_and_read(path, asked):
    made = set()
    with netCDF4.Dataset(path, "w") as d:
        d.createDimension("x", len(WORDS))
        d.createDimension("t", None)
        rows = d.createVLType("i4", "rows")
        for at, how in enumerate(asked):
            # Releases choose different chunks for sequences along an unlimited dimension.
            for kind, ty, dim in (("text", str, "x"), ("text", str, "t"), ("rows", rows, "x")):
                name = f"{kind}_{dim}_{at}"
                try:
                    v = d.createVariable(name, ty, (dim,), **how)
                except RuntimeError as error:
                    print(name, how, error)
                    continue
                made.add(name)
                print(name, how, told(v))
                values = WORDS if kind == "text" else [np.arange(n, dtype="i4") for n in (0, 1, 7, 300)]
                for i, value in enumerate(values):
                    v[i] = value
    with netCDF4.Dataset(path) as d:
        for name, v in d.variables.items():
            print(name, told(v), [len(value) for value in v[:]])
            if name in made and name.startswith("text"):
                assert list(v[:]) == WORDS, name


def told(v):
    return {key: value for key, value in v.filters().items() if value}


main(sys.argv[1])

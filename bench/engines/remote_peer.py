# SPDX-License-Identifier: MIT OR Apache-2.0
"""Python peers that read remote files: fsspec's HTTP file with h5netcdf, or with SciPy for classic files. And the files that all read.

    remote_peer.py h5netcdf|scipy header|variable|all URL [VARIABLE]     a line of JSON as the engines print it
    remote_peer.py files FOLDER NAME...                                  makes these files, by the netCDF4 wheel
"""
import json
import sys
import time

import numpy as np


def read(peer, op, url, name):
    import fsspec

    if peer == "h5netcdf":
        import h5netcdf
    else:
        from scipy.io import netcdf_file
    began, n, values = time.perf_counter(), 0, []
    with fsspec.open(url, "rb").open() as remote:
        file = h5netcdf.File(remote, "r") if peer == "h5netcdf" else netcdf_file(remote, "r", mmap=False)
        if op == "header":
            for variable in [file, *file.variables.values()]:
                attributes = variable.attrs if peer == "h5netcdf" else vars(variable)
                n += sum(1 for key in attributes if attributes[key] is not None)
        else:
            for each in [name] if op == "variable" else list(file.variables):
                values.append(np.array(file.variables[each][...]))
        file.close()
    took = time.perf_counter() - began
    # What it is worth: the sum, so that it is known to be the same.
    print(json.dumps({"seconds": took, "bytes": sum(v.nbytes for v in values), "sum": sum(float(v.astype("f8").sum()) for v in values)}))


# ---- Files. Noise in the low bits, so that filters leave about half.

def field(shape, seed):
    n = int(np.prod(shape))
    noise = np.random.default_rng(seed).normal(0, 0.3, n)
    values = 280 + 20 * np.sin(np.arange(n) / 5000) + noise
    return np.round(values * 64).astype("f4").reshape(shape) / 64


def several(path, n_variables, shape, chunks, fmt="NETCDF4", unlimited=True):
    import netCDF4

    with netCDF4.Dataset(path, "w", format=fmt) as file:
        file.title, file.institution, file.history = "a file of the bench", "nobody", "made for measuring"
        names = ("time", "y", "x")[-len(shape):]
        for name, length in zip(names, shape):
            file.createDimension(name, None if unlimited and name == "time" else length)
        options = {"zlib": True, "complevel": 4, "shuffle": True, "chunksizes": chunks} if fmt == "NETCDF4" and chunks else {}
        made = []
        for k in range(n_variables):
            variable = file.createVariable("v%d" % k, "f4", names, **options)
            variable.units, variable.long_name, variable.standard_name = "K", "variable number %d" % k, "air_temperature"
            variable.valid_range = np.array([0, 1000], "f4")
            made.append(variable)
        if unlimited and fmt != "NETCDF4":
            # Record by record, as a model writes.
            data = [field(shape, k) for k in range(n_variables)]
            for record in range(shape[0]):
                for variable, values in zip(made, data):
                    variable[record] = values[record]
        else:
            for k, variable in enumerate(made):
                variable[:] = field(shape, k)


FILES = {
    # 20 variables, and the same number again a hundred times, whose values do not matter.
    "nc4-20": lambda path: several(path, 20, (5, 180, 360), (1, 180, 360)),
    "nc4-2000": lambda path: several(path, 2000, (4, 10), None, unlimited=False),
    # One variable of 1,000 and of 10,000 chunks, 20 MB.
    "chunks-1000": lambda path: several(path, 1, (100, 400, 250), (10, 40, 25)),
    "chunks-10000": lambda path: several(path, 1, (100, 400, 250), (5, 20, 10)),
    "classic-20": lambda path: several(path, 20, (360, 640), None, "NETCDF3_64BIT_OFFSET", unlimited=False),
    "classic-2000": lambda path: several(path, 2000, (4, 10), None, "NETCDF3_64BIT_OFFSET", unlimited=False),
    # 1,900 records of 20 variables: one of them is in 1,900 places.
    "records": lambda path: several(path, 20, (1900, 10, 12), None, "NETCDF3_64BIT_OFFSET"),
}


def main():
    what, *words = sys.argv[1:]
    if what == "files":
        folder, *names = words
        for name in names:
            FILES[name]("%s/%s.nc" % (folder, name))
    else:
        op, url, name = [*words, ""][:3]
        read(what, op, url, name)


if __name__ == "__main__":
    main()

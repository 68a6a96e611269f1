"""The files that are damaged: netCDF-4 and HDF5 by several writers, and the classic formats.

Each has data in one run, in chunks with and without filters, strings, groups and attributes; every
element has a value of its own, so that none passes for another.
"""
import os
import subprocess

import h5py
import netCDF4
import numpy as np


def values(shape, kind, salt):
    n = int(np.prod(shape))
    return (np.arange(1, n + 1, dtype="f8") * 7 + salt).astype(kind).reshape(shape)


def netcdf4(path):
    """By netCDF-C: groups with dimensions, an unlimited one, strings, many attributes."""
    with netCDF4.Dataset(path, "w") as file:
        file.title = "to be damaged"
        file.createDimension("t", None)
        file.createDimension("y", 40)
        file.createDimension("x", 50)
        plain = file.createVariable("plain", "f4", ("y", "x"), contiguous=True)
        plain[:] = values((40, 50), "f4", 1)
        plain.units = "kelvin"
        packed = file.createVariable("packed", "f8", ("t", "y", "x"), zlib=True, chunksizes=(1, 20, 50),
                                     fletcher32=True)
        packed[:] = values((6, 40, 50), "f8", 2)
        chunks = file.createVariable("chunks", "i4", ("y", "x"), chunksizes=(8, 10))
        chunks[:] = values((40, 50), "i4", 3)
        for i in range(12):
            packed.setncattr("note%d" % i, "a line of some length, number %d" % i)
        words = file.createVariable("words", str, ("x",))
        words[:] = np.array(["word %d" % i for i in range(50)], dtype=object)
        for name in ("ocean", "land"):
            group = file.createGroup(name)
            group.createDimension("z", 30)
            group.about = "the group " + name
            deep = group.createVariable("deep", "i8", ("z", "x"), contiguous=True)
            deep[:] = values((30, 50), "i8", len(name))
            inner = group.createGroup("inner")
            some = inner.createVariable("some", "i2", ("x",), zlib=True)
            some[:] = values((50,), "i2", 9)


def h5(path, libver):
    """By h5py: the structures of the earliest, or of the latest version of the format."""
    with h5py.File(path, "w", libver=libver) as file:
        file.attrs["title"] = "to be damaged"
        file.create_dataset("plain", data=values((40, 50), "f4", 1))
        file.create_dataset("packed", data=values((12, 20, 50), "f8", 2), chunks=(1, 20, 50),
                            compression="gzip", maxshape=(None, 20, 50), fletcher32=True)
        file.create_dataset("chunks", data=values((40, 50), "i4", 3), chunks=(8, 10))
        file.create_dataset("words", data=["word %d" % i for i in range(50)],
                            dtype=h5py.string_dtype())
        for name in ("ocean", "land"):
            group = file.create_group(name)
            group.attrs["about"] = "the group " + name
            group.create_dataset("deep", data=values((30, 50), "i8", len(name)))
            inner = group.create_group("inner")
            for i in range(15):
                inner.create_dataset("some%02d" % i, data=values((20,), "i2", i))


def classic(path, kind):
    """Variables of fixed size, and three with records whose parts of a record have odd lengths."""
    with netCDF4.Dataset(path, "w", format=kind) as file:
        file.title = "to be damaged"
        file.createDimension("t", None)
        file.createDimension("y", 20)
        file.createDimension("x", 33)
        fixed = file.createVariable("fixed", "f8", ("y", "x"))
        fixed.units = "m"
        a = file.createVariable("a", "i2", ("t", "x"))
        b = file.createVariable("b", "f4", ("t", "y", "x"))
        c = file.createVariable("c", "i1", ("t", "x"))
        fixed[:] = values((20, 33), "f8", 1)
        a[:] = values((5, 33), "i2", 2)
        b[:] = values((5, 20, 33), "f4", 3)
        c[:] = values((5, 33), "i8", 4) % 100 + 1


def single(path):
    """One variable with records, which follow each other without padding."""
    with netCDF4.Dataset(path, "w", format="NETCDF3_CLASSIC") as file:
        file.createDimension("t", None)
        file.createDimension("x", 33)
        file.createVariable("a", "i2", ("t", "x"))[:] = values((60, 33), "i2", 2)


def make(folder, zonda):
    """All of them: paths by names."""
    at = {name: os.path.join(folder, name) for name in (
        "netcdf-c.nc", "zonda.nc", "earliest.h5", "latest.h5", "cdf1.nc", "cdf2.nc", "cdf5.nc",
        "single.nc")}
    netcdf4(at["netcdf-c.nc"])
    h5(at["earliest.h5"], "earliest")
    h5(at["latest.h5"], "latest")
    classic(at["cdf1.nc"], "NETCDF3_CLASSIC")
    classic(at["cdf2.nc"], "NETCDF3_64BIT_OFFSET")
    classic(at["cdf5.nc"], "NETCDF3_64BIT_DATA")
    single(at["single.nc"])
    subprocess.run([zonda, "copy", "-q", at["netcdf-c.nc"], at["zonda.nc"]], check=True)
    return at

# SPDX-License-Identifier: MIT OR Apache-2.0
"""Files of several ranks through the Python package, with mpi4py. For run.py, in each rank.

    dataset.py FOLDER

What ranks wrote is read by each of them, and by one process alone.
"""
import sys
from pathlib import Path

import numpy as np
import zonda
from mpi4py import MPI
from zonda import netcdf4

world = MPI.COMM_WORLD
rank, size = world.rank, world.size
FOLDER = Path(sys.argv[1])
ROWS, COLUMNS, STEPS = 3, 5, 2


def raises(kind, words, call):
    """The call fails, with an exception of this class and these words in its text."""
    try:
        call()
    except kind as error:
        assert words in str(error), "%s: %s" % (words, error)
    else:
        raise AssertionError("no %s" % kind.__name__)


def expected(steps):
    return np.arange(steps)[:, None, None] * 100.0 + np.arange(size * ROWS)[None, :, None] + np.zeros(COLUMNS)


def of_zonda(path, form, filters):
    """zonda.open: collective puts that make a variable longer, then puts of one rank alone."""
    with zonda.open(path, "w", comm=world, format=form) as ds:
        v = ds.create_variable("v", "f8", ("time", "y", "x"), sizes={"time": None, "y": size * ROWS, "x": COLUMNS}, **filters)
        alone = ds.create_variable("alone", "i4", "y", attrs={"units": "1"})
        v.set_collective(True)
        for step in range(STEPS):
            v[step, rank * ROWS : (rank + 1) * ROWS] = expected(STEPS)[step, rank * ROWS : (rank + 1) * ROWS]
        # Ranks that have nothing take part, too.
        v[STEPS, : size * ROWS if rank == 0 else 0] = 7 if rank == 0 else np.empty((0, COLUMNS))
        assert v.shape == (STEPS + 1, size * ROWS, COLUMNS)
        # A rank whose values do not fit has the error to itself, and the others do not wait for it.
        if rank == size - 1:
            raises(ValueError, "", lambda: v.__setitem__((0, slice(0, 2)), np.zeros((9, 9))))
        else:
            v[0, rank * ROWS] = expected(1)[0, rank * ROWS]
        if form != "NETCDF4":
            v.set_collective(False)
        alone[rank * ROWS : (rank + 1) * ROWS] = rank
    read(path)


def read(path):
    with zonda.open(path, comm=world) as ds:
        assert (ds["v"][:STEPS] == expected(STEPS)).all()
        assert (ds["v"][STEPS] == 7).all()
        assert (ds["alone"][:] == np.repeat(np.arange(size), ROWS)).all()
    if rank == 0:
        with zonda.open(path) as ds:
            assert (ds["v"][:STEPS] == expected(STEPS)).all()
            raises(zonda.NetCDFError, "nc_open_par", lambda: ds["v"].set_collective(True))
    world.barrier()


def of_netcdf4(path, form):
    """zonda.netcdf4: what is defined ends at once, so that one rank alone may put afterwards."""
    with netcdf4.Dataset(path, "w", format=form, parallel=True, comm=world, info=MPI.Info()) as ds:
        ds.createDimension("t", None)
        ds.createDimension("y", size)
        y = ds.createVariable("y", "i4", ("y",))
        t = ds.createVariable("t", "f4", ("t", "y"))
        y.units = "m"
        if form.startswith("NETCDF4"):
            ds.sync()
        if rank == size - 1:
            y[:] = np.arange(size)
        world.barrier()
        assert (y[:] == np.arange(size)).all()
        t.set_collective(True)
        t[0, rank] = rank
        t[3, rank] = 3 * rank
        assert t.shape == (4, size)
    with netcdf4.Dataset(path, "a", parallel=True) as ds:
        ds["t"].set_collective(True)
        ds["t"][4, rank] = 4 * rank
    with netcdf4.Dataset(path, parallel=True) as ds:
        assert ds["y"].units == "m"
        for step in (0, 3, 4):
            assert (ds["t"][step] == step * np.arange(size)).all() if step else (ds["t"][0] == np.arange(size)).all()
    world.barrier()


def hints(path):
    """Data of a classic file begin where an Info asks, and where the environment does."""
    info = MPI.Info.Create()
    info.Set("nc_var_align_size", "8192")
    info.Set("romio_cb_write", "sometimes")
    info.Set("somebody_elses", "x")
    info.Set("zonda_independent_filters", "yes")
    info.Set("zonda_\33[2Jkey", "x")
    for number, given in enumerate((info, None)):
        place = path.with_suffix(".%d.nc" % number)
        with zonda.open(place, "w", comm=world, info=given, format="CDF-5") as ds:
            v = ds.create_variable("v", "i4", "y", sizes={"y": 1000 * size})
            v[1000 * rank : 1000 * (rank + 1)] = 0x01020304
        if rank == 0:
            assert place.read_bytes().index(b"\1\2\3\4") == (8192 if given else 16384), "the hint has no effect"
    world.barrier()


def mistakes(path):
    for wrong in (3, "COMM_WORLD", MPI.INFO_NULL):
        raises(TypeError, "comm is a communicator", lambda: zonda.open(path, "w", comm=wrong))
        raises(TypeError, "comm is a communicator", lambda: netcdf4.Dataset(path, "w", parallel=True, comm=wrong))
    raises(TypeError, "info is an", lambda: zonda.open(path, "w", comm=world, info={"a": "b"}))
    raises(ValueError, "memory", lambda: zonda.open(path, "w", comm=world, memory=True))
    raises(ValueError, "in memory", lambda: netcdf4.Dataset(path, "w", parallel=True, diskless=True))
    raises(zonda.NetCDFError, "MPI_COMM_NULL", lambda: zonda.open(path, "w", comm=MPI.COMM_NULL))
    raises(FileNotFoundError, "", lambda: zonda.open(path, comm=world))
    raises(FileNotFoundError, "", lambda: netcdf4.Dataset(path, parallel=True))


def main():
    for form in ("NETCDF4", "NETCDF4_CLASSIC", "CDF-1", "CDF-5"):
        of_zonda(FOLDER / ("zonda-%s.nc" % form), form, {})
    of_zonda(FOLDER / "zonda-deflate.nc", "NETCDF4", {"compression": "zlib", "chunks": (1, 2, COLUMNS)})
    for form in ("NETCDF4", "NETCDF4_CLASSIC", "NETCDF3_CLASSIC", "NETCDF3_64BIT_DATA"):
        of_netcdf4(FOLDER / ("netcdf4-%s.nc" % form), form)
    hints(FOLDER / "hints.nc")
    mistakes(FOLDER / "mistakes.nc")
    print("ok", flush=True)


try:
    main()
except BaseException:
    import traceback

    traceback.print_exc()
    # The others may wait for this rank.
    world.Abort(1)

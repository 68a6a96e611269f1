#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""One piece of work by one Python library, in a process of its own: bench/python.py's other half.

    python_peer.py '{"peer": "netcdf4-engine", "op": "mean_time", "paths": [...], ...}'

Prints one JSON line: seconds of the work; `parts`, seconds of what it is made of; the peak of resident
memory during it, less what was resident before; the version of the library. What was read or reduced goes
to `result` as .npy, what was written to `target`. Imports, and what is made ready for writing, are not timed.

Every peer reads the variable `t` (time, y, x) as physical values: packed ones are unpacked.
"""

import gc
import json
import mmap
import sys
import time

import numpy as np

JOB: dict = {}  # filled in main()
VARIABLE = "t"


def resident(kind: str) -> int:
    """KiB of this process: VmRSS, VmHWM (the peak)."""
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith(kind + ":"))


class Clock:
    """Seconds since it was made, in named parts, and the peak of memory."""

    def __init__(self):
        gc.collect()
        with open("/proc/self/clear_refs", "w") as reset:
            reset.write("5")  # the peak is counted from here
        self.before = resident("VmRSS")
        self.parts: dict[str, float] = {}
        self.start = self.last = time.perf_counter()

    def part(self, name: str) -> None:
        now = time.perf_counter()
        self.parts[name] = self.parts.get(name, 0.0) + now - self.last
        self.last = now

    def end(self) -> dict:
        seconds = time.perf_counter() - self.start
        return {"seconds": seconds, "parts": self.parts, "peak_kib": max(0, resident("VmHWM") - self.before)}


def warm(size: int) -> None:
    """Takes and gives back as much memory: what a virtual machine has given back to its host takes seconds for
    each GB when it is touched again, and that would be the time of whoever happens to touch it."""
    if size == 0:
        return
    with mmap.mmap(-1, size) as memory:
        memory.madvise(mmap.MADV_HUGEPAGE)
        np.frombuffer(memory, np.uint8)[:: mmap.PAGESIZE] = 1


# ---- peers of xarray ------------------------------------------------------------------------------------


class Engine:
    """xarray with an engine."""

    def __init__(self, name: str):
        import xarray

        self.xr, self.name = xarray, name
        self.engine = {"h5netcdf-engine": "h5netcdf", "hidefix": "hidefix", "zarr": "zarr"}.get(name, "netcdf4")
        if name == "zonda-engine":
            import zonda.xarray_engine as zonda
            from zonda.xarray_engine import ZondaBackendEntrypoint

            self.zonda, self.engine = zonda, register(xarray, "zonda", ZondaBackendEntrypoint())
        if name == "xarray-alone":
            self.engine = register(xarray, "alone", in_memory(xarray))
        if name == "h5netcdf-engine":
            import hdf5plugin  # noqa: F401  filters for h5py

    def version(self) -> str:
        module = {"zonda-engine": "zonda", "h5netcdf-engine": "h5netcdf", "hidefix": "hidefix", "zarr": "zarr"}
        return library_version(module.get(self.name, "netCDF4"))

    def options(self) -> dict:
        return {"consolidated": False} if self.name == "zarr" else {}

    def open(self, path, chunks=None):
        return self.xr.open_dataset(path, engine=self.engine, chunks=chunks, **self.options())

    def look(self, path) -> int:
        with self.open(path) as ds:
            return len(ds.variables)

    def open_many(self, paths, parallel):
        combine = dict(combine="nested", concat_dim="time", data_vars="minimal", coords="minimal", compat="override")
        if self.name == "zonda-engine" and parallel:
            return self.zonda.open_mfdataset(paths, chunks={}, **combine)  # opens by threads of its own
        return self.xr.open_mfdataset(paths, engine=self.engine, parallel=parallel, **combine, **self.options())

    def mean(self, path, dims, chunks, clock):
        with self.open(path, chunks) as ds:
            array = ds[VARIABLE]
            if chunks is None:
                array = array.load()
                clock.part("read")
            result = array.mean(dims).values
            clock.part("mean" if chunks is None else "read and mean")
        return result

    def series(self, path, points):
        with self.open(path) as ds:
            return np.stack([ds[VARIABLE][:, y, x].values for y, x in points])

    def ready(self, source, chunks):
        """What is to be written, in memory."""
        ds = self.xr.open_dataset(source, engine="netcdf4", chunks=None).load()
        for variable in ds.variables.values():
            variable.encoding.clear()
        return ds.chunk(chunks) if chunks else ds

    def write(self, ready, target, storage):
        encoding = {VARIABLE: self.encoding(storage)}
        if self.name == "zarr":
            ready.to_zarr(target, encoding=encoding, consolidated=False, zarr_format=3)
        elif self.name == "zonda-engine":
            self.zonda.to_netcdf(ready, target, encoding=encoding)
        else:
            ready.to_netcdf(target, engine=self.engine, encoding=encoding)

    def encoding(self, storage) -> dict:
        kind, chunks = storage["filter"], storage["chunks"]
        if self.name == "zarr":
            return {"chunks": tuple(chunks), **zarr_filter(kind)}
        made = {"chunksizes": tuple(chunks), "_FillValue": None}
        if kind == "deflate":
            return {**made, "zlib": True, "complevel": 4, "shuffle": True}
        if kind == "zstd" and self.name == "h5netcdf-engine":
            import hdf5plugin

            return {**made, **hdf5plugin.Zstd(clevel=3)}
        if kind == "zstd":
            # netCDF4-python shuffles for deflate only, whatever it is told.
            return {**made, "compression": "zstd", "complevel": 3, "shuffle": False}
        return made


def register(xr, name: str, engine) -> str:
    """Gives an engine a name in this process: a checkout that is not installed has no entry point, and
    dask would pickle a class of this program anew for each file."""
    xr.backends.list_engines().setdefault(name, engine)
    return name


def zarr_filter(kind: str) -> dict:
    """What zarr-python calls the filters of the netCDF files. `default` is its own choice."""
    import zarr.codecs as codecs

    if kind == "none":
        return {"compressors": None}
    if kind == "zstd":
        return {"compressors": codecs.ZstdCodec(level=3)}
    if kind == "deflate":
        return {"compressors": codecs.GzipCodec(level=4)}
    if kind == "blosc":
        return {"compressors": codecs.BloscCodec(cname="lz4", clevel=5, shuffle="shuffle")}
    return {}


def in_memory(xr):
    """An engine that has everything in memory before the clock starts: what xarray and NumPy take anyway."""
    from xarray.backends.common import AbstractDataStore, BackendEntrypoint
    from xarray.backends.store import StoreBackendEntrypoint

    held = {}

    class Store(AbstractDataStore):
        def __init__(self, ds):
            self.ds = ds

        def get_variables(self):
            return self.ds.variables

        def get_attrs(self):
            return self.ds.attrs

        def get_dimensions(self):
            return self.ds.sizes

        def get_encoding(self):
            return {}

    class InMemory(BackendEntrypoint):
        def open_dataset(self, filename_or_obj, *, drop_variables=None, **decode):
            return StoreBackendEntrypoint().open_dataset(Store(held[str(filename_or_obj)]), **decode)

    for path in [*JOB["paths"], JOB["small"]]:
        with xr.open_dataset(path, engine="netcdf4", decode_cf=False) as ds:
            held[str(path)] = ds.load()
    return InMemory()


# ---- libraries without xarray ---------------------------------------------------------------------------


class Plain:
    """Reading and writing with slices: netCDF4, zonda.netcdf4, h5py, zonda."""

    def __init__(self, name: str):
        self.name = name
        if name in ("netcdf4", "preload"):
            import netCDF4 as module
        elif name == "zonda.netcdf4":
            import zonda.netcdf4 as module
        elif name == "h5py":
            import h5py as module
            import hdf5plugin  # noqa: F401  filters
        else:
            import zonda as module
        self.module = module

    def version(self) -> str:
        return library_version({"h5py": "h5py", "zonda": "zonda", "zonda.netcdf4": "zonda"}.get(self.name, "netCDF4"))

    def open(self, path):
        if self.name == "h5py":
            return self.module.File(path, "r")
        if self.name == "zonda":
            return self.module.open(path)
        return self.module.Dataset(path)

    def variables(self, file):
        return file if self.name == "h5py" else file.variables

    def look(self, path) -> int:
        """Opens, and asks each variable for its shape, type and attributes, as xarray does."""
        found = 0
        with self.open(path) as file:
            variables = self.variables(file)
            for name in variables:
                variable = variables[name]
                variable.shape, variable.dtype, self.attributes(variable)
                found += 1
        return found

    def attributes(self, variable) -> dict:
        if self.name in ("h5py", "zonda"):
            return dict(variable.attrs.items())
        return {name: variable.getncattr(name) for name in variable.ncattrs()}

    def values(self, variable, key):
        """Physical values, without a mask: there is none to speak of in these files."""
        if self.name in ("h5py", "zonda"):
            values = variable[key]
            if "scale_factor" in variable.attrs:
                values = values * np.float32(variable.attrs["scale_factor"]) + np.float32(variable.attrs["add_offset"])
            return values
        return np.ma.getdata(variable[key])

    def mean(self, path, dims, chunks, clock):
        with self.open(path) as file:
            values = self.values(self.variables(file)[VARIABLE], ...)
            clock.part("read")
            axes = tuple(("time", "y", "x").index(d) for d in ([dims] if isinstance(dims, str) else dims))
            result = values.mean(axes)
            clock.part("mean")
        return result

    def series(self, path, points):
        with self.open(path) as file:
            variable = self.variables(file)[VARIABLE]
            return np.stack([self.values(variable, np.s_[:, y, x]) for y, x in points])

    def ready(self, source, chunks):
        import netCDF4

        with netCDF4.Dataset(source) as file:
            return {name: np.ma.getdata(v[:]) for name, v in file.variables.items()}

    def write(self, ready, target, storage):
        kind, chunks = storage["filter"], tuple(storage["chunks"])
        sizes = dict(zip(("time", "y", "x"), ready[VARIABLE].shape))
        if self.name == "h5py":
            import hdf5plugin

            how = {"deflate": dict(compression="gzip", compression_opts=4, shuffle=True),
                   "zstd": dict(compression=hdf5plugin.Zstd(clevel=3)), "none": {}}[kind]  # fmt: skip
            with self.module.File(target, "w") as file:
                for name, values in ready.items():
                    file.create_dataset(name, data=values, **(dict(chunks=chunks, **how) if name == VARIABLE else {}))
            return
        if self.name == "zonda":
            how = {"deflate": dict(compression="deflate", level=4, shuffle=True),
                   "zstd": dict(compression="zstd", level=3, shuffle=False), "none": {}}[kind]  # fmt: skip
            with self.module.create(target) as file:
                for name, length in sizes.items():
                    file.create_dimension(name, length)
                for name, values in ready.items():
                    dims = tuple(sizes) if name == VARIABLE else (name,)
                    more = dict(chunks=chunks, **how) if name == VARIABLE else {}
                    file.create_variable(name, values.dtype, dims, **more)[...] = values
            return
        how = {"deflate": dict(zlib=True, complevel=4, shuffle=True),
               "zstd": dict(compression="zstd", complevel=3, shuffle=False), "none": {}}[kind]  # fmt: skip
        with self.module.Dataset(target, "w") as file:
            for name, length in sizes.items():
                file.createDimension(name, length)
            for name, values in ready.items():
                dims = tuple(sizes) if name == VARIABLE else (name,)
                more = dict(chunksizes=chunks, **how) if name == VARIABLE else {}
                file.createVariable(name, values.dtype, dims, **more)[:] = values


def library_version(package: str) -> str:
    if package == "zonda":
        import zonda

        return str(zonda.__version__)
    if package == "netCDF4":
        import netCDF4

        return f"{netCDF4.__version__} on netCDF-C {netCDF4.getlibversion().strip(' $')}"
    import importlib.metadata

    return importlib.metadata.version(package)


# ---- the work -------------------------------------------------------------------------------------------


def work(peer) -> tuple[dict, np.ndarray]:
    """Does the job; what the clock says, and what came out."""
    op, paths, chunks = JOB["op"], JOB["paths"], JOB.get("chunks")
    if chunks is not None:
        import dask

        dask.config.set(scheduler="threads", num_workers=JOB["threads"])
    if op == "write":
        # Once in small, as for the others: what is imported late is imported then.
        peer.write(peer.ready(JOB["small"], chunks), JOB["small_target"], {**JOB["storage"], "chunks": [1, 19, 36]})
        ready = peer.ready(paths[0], chunks)
        warm(JOB["memory"])
        clock = Clock()
        peer.write(ready, JOB["target"], JOB["storage"])
        return clock.end(), np.array(0)
    act(peer, op, [JOB["small"]], chunks, [(0, 0)], Clock())
    warm(JOB["memory"])
    clock = Clock()
    result = act(peer, op, paths, chunks, JOB.get("points"), clock)
    return clock.end(), np.asarray(result)


def act(peer, op: str, paths: list[str], chunks, points, clock: Clock):
    """What is timed, but for writing."""
    if op == "open":
        return [peer.look(paths[0]) for _ in range(JOB["cycles"])]
    if op == "open_many":
        with peer.open_many(paths, JOB["parallel"]) as ds:
            clock.part("open")
            return ds[VARIABLE].mean().values if JOB.get("mean") else ds.sizes["time"]
    if op in ("mean_time", "mean_space"):
        return peer.mean(paths[0], "time" if op == "mean_time" else ("y", "x"), chunks, clock)
    if op == "series":
        return peer.series(paths[0], points)
    raise SystemExit(f"no op {op!r}")


def main() -> None:
    JOB.update(json.loads(sys.argv[1]))
    name = JOB["peer"]
    peer = Plain(name) if name in ("netcdf4", "preload", "zonda.netcdf4", "h5py", "zonda") else Engine(name)
    if name.startswith("preload") and "Zonda" not in peer.version():
        raise SystemExit("this process does not run on Zonda")
    seen, result = work(peer)
    np.save(JOB["result"], result)
    print(json.dumps({**seen, "version": peer.version()}))


if __name__ == "__main__":
    main()

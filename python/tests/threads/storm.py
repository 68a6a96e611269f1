#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Many threads read many files at random places; every value is compared. A process of its own, since what goes
wrong here may end in a crash.

    storm.py make FOLDER FILES
    storm.py API FOLDER FILES THREADS READS [fork]

API: `engine` (xarray with engine zonda), `module` (zonda.netcdf4), `plain` (zonda.open), `wheel` and
`wheel-engine` (the netCDF4 wheel and xarray on it without its lock, for `zonda run`). All files are open at once
and shared by all threads; half of the reads open their file anew. With `fork` two children do the same, when the
library has threads already. Prints how many reads there were.
"""

import os
import random
import resource
import sys
import threading
import traceback
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

SHAPE, CHUNKS = (16, 24, 32), (4, 12, 16)
CELLS = np.arange(np.prod(SHAPE), dtype="f4").reshape(SHAPE)


def expected(number: int) -> np.ndarray:
    return CELLS + np.float32(7 * number)


def name(folder: str, number: int) -> str:
    return str(Path(folder) / f"f{number:04d}.nc")


def make(folder: str, files: int) -> None:
    try:
        import netCDF4
    except ImportError:
        import zonda.netcdf4 as netCDF4
    for number in range(files):
        with netCDF4.Dataset(name(folder, number), "w") as file:
            for dim, length in zip("tyx", SHAPE):
                file.createDimension(dim, length)
            v = file.createVariable("v", "f4", tuple("tyx"), zlib=True, complevel=1, shuffle=True, chunksizes=CHUNKS)
            v[:] = expected(number)
            v.label = f"file {number}"


def opener(api: str):
    """A function that opens a path, and one that gives values and label of what it opened."""
    if api in ("engine", "wheel-engine"):
        import xarray as xr

        # xarray closes what was used least, and without a lock does not ask whether somebody reads it.
        xr.set_options(file_cache_maxsize=4096)
        more: dict = {"engine": "netcdf4", "lock": False}
        if api == "engine":
            from zonda.xarray_engine import ZondaBackendEntrypoint

            more = {"engine": ZondaBackendEntrypoint}
        # Without its cache, or the second read of a variable would come from memory.
        return lambda path: xr.open_dataset(path, cache=False, **more), lambda ds, key: ds["v"][key].values, lambda ds: ds["v"].attrs["label"]
    if api == "plain":
        import zonda

        return zonda.open, lambda ds, key: ds["v"][key], lambda ds: ds["v"].attrs["label"]
    if api == "module":
        import zonda.netcdf4 as netCDF4
    else:
        import netCDF4

        if "Zonda" not in netCDF4.getlibversion():
            raise SystemExit("this process does not run on Zonda")
    return netCDF4.Dataset, lambda ds, key: np.ma.getdata(ds["v"][key]), lambda ds: ds["v"].label


def some_key(chance: random.Random) -> tuple:
    """A place in each dimension: a number, or a slice, backwards too."""
    key = []
    for length in SHAPE:
        kind, a, b = chance.randrange(4), chance.randrange(length), chance.randrange(1, length + 1)
        if kind == 0:
            key.append(a)
        elif kind == 1:
            key.append(slice(None))
        else:
            low, high = min(a, b), max(a, b) + 1
            key.append(slice(low, high, chance.randrange(1, 4)) if kind == 2 else slice(high - 1, low - 1 if low else None, -1))
    return tuple(key)


class Storm:
    def __init__(self, api: str, folder: str, files: int):
        self.folder, self.files = folder, files
        self.open, self.values, self.label = opener(api)
        with ThreadPoolExecutor(8) as pool:
            self.shared = list(pool.map(lambda n: self.open(name(folder, n)), range(files)))

    def look(self, ds, number: int, chance: random.Random) -> None:
        if chance.random() < 0.2 and self.label(ds) != f"file {number}":
            raise AssertionError(f"file {number}: label {self.label(ds)!r}")
        key = some_key(chance)
        got, right = self.values(ds, key), expected(number)[key]
        if got.shape != right.shape or not np.array_equal(got, right):
            said = f"shape {got.shape}" if got.shape != right.shape else f"off by {np.unique(got - right)[:9]}"
            raise AssertionError(f"file {number}, {key}: {said}")

    def work(self, seed: int, reads: int) -> None:
        chance = random.Random(seed)
        for _ in range(reads):
            number = chance.randrange(self.files)
            if chance.random() < 0.5:
                self.look(self.shared[number], number, chance)
            else:
                with self.open(name(self.folder, number)) as ds:
                    self.look(ds, number, chance)

    def run(self, threads: int, reads: int, seed: int = 0) -> None:
        start, wrong = threading.Barrier(threads), []

        def body(k: int) -> None:
            start.wait()
            try:
                self.work(seed + k, reads)
            except BaseException as why:  # told by the main thread
                wrong.append(why)

        all_of_them = [threading.Thread(target=body, args=(k,)) for k in range(threads)]
        for thread in all_of_them:
            thread.start()
        for thread in all_of_them:
            thread.join()
        if wrong:
            raise wrong[0]


def main() -> None:
    if sys.argv[1] == "make":
        make(sys.argv[2], int(sys.argv[3]))
        return
    api, folder = sys.argv[1:3]
    files, threads, reads = map(int, sys.argv[3:6])
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(max(soft, files + 256), hard), hard))
    sys.setswitchinterval(1e-5)  # threads change as often as they can
    storm = Storm(api, folder, files)
    storm.run(threads, reads)
    if sys.argv[6:] == ["fork"]:
        children = []
        for k in range(2):
            pid = os.fork()
            if pid == 0:
                code = 1
                try:
                    storm.run(threads, reads // 10, seed=1000 * (k + 1))
                    code = 0
                except BaseException:
                    traceback.print_exc()
                finally:
                    os._exit(code)
            children.append(pid)
        storm.run(threads, reads // 10, seed=5000)
        for pid in children:
            if os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) != 0:
                raise SystemExit("a child failed")
    print(f"{threads * reads} reads")


if __name__ == "__main__":
    main()

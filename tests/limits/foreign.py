#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""What is accepted of a change to a file that h5py made survives close, and leaves the rest alone.

    tests/limits/foreign.py [--quick]

Headers of version 1 (libver="earliest") have all attributes within, each in a message of less than 64 KiB; those of
version 2 go elsewhere with them. Attributes of all kinds with lengths around that limit are put, overwritten and renamed, on
the root group, a group and a variable; each put that was accepted is there after a close, for Zonda and h5py, and so is what was put
before and after one that was refused. With --quick attributes are the root group's alone.
"""
import ctypes
import sys
from pathlib import Path

sys.path.insert(1, str(Path(__file__).resolve().parents[1]))
import rig  # noqa: E402

rig.needs("h5py", "numpy")
import h5py  # noqa: E402
import numpy  # noqa: E402

WRITE, GLOBAL, BYTE, CHAR, DOUBLE, STRING = 1, -1, 1, 2, 6, 12
SIZES = {BYTE: 1, CHAR: 1, DOUBLE: 8, STRING: 16}
LIMIT = 65_520

lib = None
counts = rig.Counts()


def check(is_so, what):
    counts.check(what, None if is_so else "not so")


def put(nc, var, name, nc_type, n):
    if nc_type == CHAR:
        return lib.nc_put_att_text(nc, var, name, ctypes.c_size_t(n), b"x" * n)
    if nc_type == STRING:
        return lib.nc_put_att_string(nc, var, name, ctypes.c_size_t(n), (ctypes.c_char_p * n)(*[b"word"] * n))
    values = numpy.full(n, 7, {BYTE: "i1", DOUBLE: "f8"}[nc_type])
    return lib.nc_put_att(nc, var, name, nc_type, ctypes.c_size_t(n), values.ctypes.data_as(ctypes.c_void_p))


def length(nc, var, name):
    found = ctypes.c_size_t()
    return found.value if lib.nc_inq_attlen(nc, var, name, ctypes.byref(found)) == 0 else None


def one(path, libver, where, nc_type, n, is_long_name):
    what = f"{libver} {where} type {nc_type} x {n}"
    path.unlink(missing_ok=True)
    with h5py.File(path, "w", libver=libver) as file:
        file.create_dataset("v", (3,), "i4")
        file.create_group("g")
        file.attrs["old"] = 1
    nc, target, var = ctypes.c_int(), ctypes.c_int(), GLOBAL
    check(lib.nc_open(str(path).encode(), WRITE, ctypes.byref(nc)) == 0, f"{what}: open")
    target.value = nc.value
    if where == "group":
        lib.nc_inq_ncid(nc, b"g", ctypes.byref(target))
    if where == "variable":
        var = 0
    expected = {b"before": 3, b"after": 5}
    check(put(target, var, b"before", DOUBLE, 3) == 0, f"{what}: before")
    code = put(target, var, b"big", nc_type, n)
    name = b"big"
    if code == 0 and is_long_name:
        name = b"n" * 255
        check(lib.nc_rename_att(target, var, b"big", name) == 0, f"{what}: rename")
    if code == 0:
        expected[name] = n
    else:
        check(libver == "earliest" and n * SIZES[nc_type] > LIMIT - 400, f"{what}: refused with {code}")
        expected[name] = None
    check(put(target, var, b"after", DOUBLE, 5) == 0, f"{what}: after")
    # What was accepted grows too long, or not.
    check(put(target, var, b"after", DOUBLE, LIMIT) == 0 or libver == "earliest", f"{what}: overwrite")
    if length(target, var, b"after") == LIMIT:
        expected[b"after"] = LIMIT
    check(lib.nc_sync(nc) == 0, f"{what}: sync")
    check(lib.nc_close(nc) == 0, f"{what}: close")
    with h5py.File(path, "r") as file:
        owner = file if where == "root" else file["g" if where == "group" else "v"]
        check("old" in file.attrs and file.attrs["old"] == 1, f"{what}: old")
        for name, n_values in expected.items():
            if n_values is None:
                check(name.decode() not in owner.attrs, f"{what}: it is there")
                continue
            value = owner.attrs.get(name.decode())
            n_found = None if value is None else len(value) if nc_type == CHAR and n_values == n else numpy.size(value)
            check(n_found == n_values, f"{what}: {name.decode()[:9]} has {n_found} values, not {n_values}")


def scales(path, libver):
    """A dimension of so many variables that the list of those who use it fits into no message."""
    path.unlink(missing_ok=True)
    with h5py.File(path, "w", libver=libver) as file:
        file.create_dataset("x", (3,), "f4").make_scale("x")
    nc, var = ctypes.c_int(), ctypes.c_int()
    check(lib.nc_open(str(path).encode(), WRITE, ctypes.byref(nc)) == 0, f"scales {libver}: open")
    dims = (ctypes.c_int * 1)(0)
    accepted = sum(lib.nc_def_var(nc, b"v%d" % k, 4, 1, dims, ctypes.byref(var)) == 0 for k in range(5000))
    code = lib.nc_close(nc)
    with h5py.File(path, "r") as file:
        check(code == 0 and len(file) == accepted + 1, f"scales {libver}: close {code}, {len(file) - 1} of {accepted} variables")


def main():
    global lib
    options = rig.arguments(rig.parser(__doc__, only=None))
    lib = rig.loaded()
    with rig.scratch() as scratch:
        path = scratch / "foreign.nc"
        for libver in ("earliest", "latest"):
            for where in ("root", "group", "variable")[:options.by(1, 3, 3)]:
                for nc_type, size in SIZES.items():
                    for n in sorted({(LIMIT + more) // size for more in (-1000, -300, -120, -60, -16, 0, 40, 5000)}):
                        one(path, libver, where, nc_type, n, n % 2 == 0)
            scales(path, libver)
    return counts


if __name__ == "__main__":
    rig.main(main)

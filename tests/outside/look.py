# SPDX-License-Identifier: MIT OR Apache-2.0
"""Looks at files through the C interface: `look.py LIBRARY FILE...`. Of each file, one line of JSON with
the codes of opening, of inquiries, and of getting the variable `v`, its values, and what the library says."""
import ctypes
import json
import os
import sys

lib = ctypes.CDLL(os.path.realpath(sys.argv[1]))
try:
    said = lib.nc_zonda_last_error
    said.restype = ctypes.c_char_p
except AttributeError:
    def said():
        return b""


def look(path):
    ncid, varid, n = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
    found = {"open": lib.nc_open(os.fsencode(path), 0, ctypes.byref(ncid)), "error": ""}
    if found["open"]:
        return {**found, "error": said().decode()}
    found["inq"] = lib.nc_inq_nvars(ncid, ctypes.byref(n))
    # What it has to say of this file, which is no failure.
    found["left out"] = said().decode() if os.fsencode(path) in said() else ""
    found["varid"] = lib.nc_inq_varid(ncid, b"v", ctypes.byref(varid))
    found["why"] = said().decode() if found["varid"] else ""
    if not found["varid"]:
        ndims, dims = ctypes.c_int(), (ctypes.c_int * 1024)()
        found["inq"] = lib.nc_inq_var(ncid, varid, None, None, ctypes.byref(ndims), dims, ctypes.byref(n))
        size, length = 1, ctypes.c_size_t()
        for dim in dims[:ndims.value]:
            found["inq"] = found["inq"] or lib.nc_inq_dimlen(ncid, dim, ctypes.byref(length))
            size *= length.value
        out = (ctypes.c_double * max(size, 1))(*[-77] * max(size, 1))
        found["get"] = lib.nc_get_var_double(ncid, varid, out)
        found["error"] = said().decode() if found["get"] else ""
        found["values"] = out[:size]
        found["ones"] = []
        for i in range(size if ndims.value == 1 else 0):
            at = (ctypes.c_size_t * 1)(i)
            found["ones"].append(lib.nc_get_var1_double(ncid, varid, at, out))
        far = (ctypes.c_size_t * 4)(*[1 << 40] * 4)
        found["far"] = lib.nc_get_var1_double(ncid, varid, far, out)
    # What a group has besides.
    out = (ctypes.c_double * 2)()
    found["own"] = lib.nc_inq_varid(ncid, b"own", ctypes.byref(varid)) or lib.nc_get_var_double(ncid, varid, out)
    if not found["own"]:
        found["own"] = list(out)
    found["close"] = lib.nc_close(ncid)
    return found


def change(path):
    """The codes of defining a variable, a group, a dimension with the name of the link `v`, of renaming to it, and
    then of a change that is none of its business."""
    ncid, other = ctypes.c_int(), ctypes.c_int()
    found = {"open": lib.nc_open(os.fsencode(path), 1, ctypes.byref(ncid)), "redef": lib.nc_redef(ncid)}
    found["names"] = [lib.nc_def_var(ncid, b"v", 6, 0, None, ctypes.byref(other)),
                      lib.nc_def_grp(ncid, b"v", ctypes.byref(other)),
                      lib.nc_def_dim(ncid, b"v", ctypes.c_size_t(3), ctypes.byref(other)),
                      lib.nc_rename_var(ncid, 0, b"v")]
    found["rest"] = [lib.nc_def_var(ncid, b"w", 6, 0, None, ctypes.byref(other)),
                     lib.nc_put_att_text(ncid, -1, b"a", ctypes.c_size_t(1), b"x"), lib.nc_close(ncid)]
    return found


if sys.argv[2] == "--change":
    print(json.dumps(change(sys.argv[3])))
    sys.exit()
for path in sys.argv[2:]:
    print(json.dumps(look(path)), flush=True)

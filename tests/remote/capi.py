#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""One open and one get through the C interface, in a process of its own; what came of it, as JSON.

    capi.py LIBRARY URL [VARIABLE [COUNT]]

    open, get    codes
    path         what nc_inq_path says
    error        what nc_zonda_last_error says after the call that failed
    delivered    values of the buffer that are neither fill nor what stood there before
    fill         values that are fill
    peak         the most memory that the process had, in MiB; less what it had before the open
"""
import array
import ctypes
import json
import resource
import sys

import made

BEFORE = -7.0


def main():
    library, url, variable, count = [*sys.argv[1:], "", "0"][:4]
    nc, told = ctypes.CDLL(library), {}
    # Another library does not say it.
    last_error = getattr(nc, "nc_zonda_last_error", lambda: b"")
    last_error.restype = ctypes.c_char_p
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    ncid, varid = ctypes.c_int(), ctypes.c_int()
    told["open"] = nc.nc_open(url.encode(), 0, ctypes.byref(ncid))
    if told["open"] == 0:
        path = ctypes.create_string_buffer(4096)
        length = ctypes.c_size_t()
        nc.nc_inq_path(ncid, ctypes.byref(length), path)
        told["path"] = path.value.decode()
        if variable:
            n = int(count)
            values = (ctypes.c_float * n)(*[BEFORE] * n)
            told["inq"] = nc.nc_inq_varid(ncid, variable.encode(), ctypes.byref(varid))
            told["get"] = nc.nc_get_var_float(ncid, varid, values)
            got = array.array("f", bytes(values))
            told["fill"] = got.count(ctypes.c_float(made.FILL).value)
            told["delivered"] = n - told["fill"] - got.count(BEFORE)
    told["error"] = (last_error() or b"").decode("utf-8", "replace")
    if told["open"] == 0:
        told["close"] = nc.nc_close(ncid)
    told["peak"] = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024
    print(json.dumps(told), flush=True)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""edit4 with h5py: `--op` as there, and `--make chunks` with the oldest and the newest structures
(`--libver earliest|v110`). The dimensions are scales, and names keep their order, so that netCDF-C
may write to the file."""

import json
import sys
import time

import h5py
import numpy as np

WIDTH = 64
options = dict(zip(sys.argv[1::2], sys.argv[2::2]))
path, op = options["--file"], options.get("--op", "")
start = time.perf_counter()
if "--make" in options:
    n = int(options["--n"])
    values = (np.arange(n, dtype="f4")[:, None] + np.float32(0.5) * np.arange(WIDTH, dtype="f4")).astype("f4")
    with h5py.File(path, "w", libver=(options["--libver"], "v110"), track_order=True) as file:
        scales = [file.create_dataset("time", (n,), "f4", maxshape=(None,), chunks=(4096,)),
                  file.create_dataset("x", (WIDTH,), "f4")]
        variable = file.create_dataset("v", data=values, maxshape=(None, WIDTH), chunks=(1, WIDTH), track_order=True)
        for axis, scale in enumerate(scales):
            scale.make_scale(scale.name[1:])
            variable.dims[axis].attach_scale(scale)
elif op == "append":
    with h5py.File(path, "r+") as file:
        variable = file["v"]
        variable.resize(variable.shape[0] + 1, 0)
        variable[-1] = np.float32(-1.5) * np.arange(WIDTH, dtype="f4")
elif op == "attribute":
    with h5py.File(path, "r+") as file:
        # In the type that it has: h5py's own would put a NUL at the end.
        attribute = h5py.h5a.open(file["v"].id, b"units")
        attribute.write(np.array(b"9876543210"), mtype=attribute.get_type())
else:
    with h5py.File(path, "r+") as file:
        file.create_dataset("added", (10,), "f4", track_order=True).dims[0].attach_scale(file["x"])
print(json.dumps({"workload": op, "params": {}, "seconds": time.perf_counter() - start, "bytes": 0, "calls": 1,
                  "digest": None}))

"""Says where HDF5 finds the chunks of all datasets of the files whose names come on standard input.

A crash or an endless loop of HDF5 ends only the process of that file, which is then left out.
"""

import os
import sys

import h5py
import hdf5plugin  # noqa: F401 (filters, so that datasets open)


def describe(path):
    out, seen = [], set()

    def visit(_, item):
        if not isinstance(item, h5py.Dataset) or item.chunks is None:
            return
        address = h5py.h5o.get_info(item.id).addr
        if address in seen:
            return
        seen.add(address)
        rows = []
        item.id.chunk_iter(rows.append)
        name = item.name.encode("unicode_escape").decode()
        out.append(f"D\t{path}\t{name}\t{address}\t-\t0")
        for row in rows:
            coords = [o // c for o, c in zip(row.chunk_offset, item.chunks)]
            coords = ",".join(str(coord) for coord in coords)
            out.append(f"C\t{coords}\t{row.byte_offset}\t{row.size}\t{row.filter_mask}")

    with h5py.File(path, "r", locking=False) as file:
        file.visititems(visit)
    return out


for line in sys.stdin:
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        status = 0
        try:
            sys.stdout.write("".join(f"{row}\n" for row in describe(line.rstrip("\n"))))
            sys.stdout.flush()
        except Exception as error:
            sys.stderr.write(f"{line.rstrip()}: {error}\n")
            status = 1
        os._exit(status)
    os.waitpid(child, 0)

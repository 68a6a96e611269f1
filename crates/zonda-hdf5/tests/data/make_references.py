"""References to objects and regions, and what HDF5 says they refer to.

    python make_references.py FOLDER

writes references.h5 and references.tsv into FOLDER: for each element of a dataset of references the
address of the object, and the row-major numbers of the elements that the region has, in order.
"""

import sys

import h5py
import numpy as np

folder = sys.argv[1]
with (
    h5py.File(f"{folder}/references.h5", "w", libver=("earliest", "v110")) as file,
    open(f"{folder}/references.tsv", "w") as out,
):
    grid = file.create_dataset("grid", data=np.arange(63, dtype="i4").reshape(7, 9))
    line = file.create_dataset("line", data=np.arange(20, dtype="i4"))
    group = file.create_group("group")
    objects = [grid.ref, line.ref, group.ref, h5py.Reference()]
    mask = np.zeros((7, 9), dtype=bool)
    mask[[0, 3, 3, 6], [8, 1, 5, 0]] = True
    corners = h5py.h5s.create_simple((7, 9))
    corners.select_hyperslab((0, 0), (2, 3))
    corners.select_hyperslab((1, 2), (3, 4), op=h5py.h5s.SELECT_OR)
    corner = h5py.h5r.create(file.id, b"grid", h5py.h5r.DATASET_REGION, corners)
    regions = [
        grid.regionref[1:5:2, 2:4],
        grid.regionref[...],
        grid.regionref[mask],
        line.regionref[3:17:4],
        corner,
        h5py.RegionReference(),
    ]
    for name, kind, elements in [
        ("objects", h5py.ref_dtype, objects),
        ("regions", h5py.regionref_dtype, regions),
    ]:
        made = file.create_dataset(name, (len(elements),), dtype=kind)
        for i, element in enumerate(elements):
            made[i] = element
        address, offset = h5py.h5o.get_info(made.id).addr, made.id.get_offset()
        out.write(f"D\t{name}\t{address}\t{offset}\n")
        for element in elements:
            if not element:
                out.write("R\t-\t-\n")
                continue
            target = h5py.h5r.dereference(element, file.id)
            region = "-"
            if name == "regions":
                # Points come in their own order, everything else in that of the elements.
                numbers = file[element][element]
                region = ",".join(str(number) for number in np.ravel(numbers))
            out.write(f"R\t{h5py.h5o.get_info(target).addr}\t{region}\n")

"""Checks a written file with netCDF4 and h5py, and changes it with netCDF4."""
import sys

import h5py
import netCDF4


def check(objects, group, path):
    for dim in group.dimensions.values():
        scale = objects[dim.name]
        assert scale.attrs["CLASS"] == b"DIMENSION_SCALE", (path, dim.name)
        assert scale.attrs["_Netcdf4Dimid"] == dim._dimid, (path, dim.name)
    for name, var in group.variables.items():
        first = var.dimensions[:1]
        hidden = name in group.dimensions and first != (name,)
        dataset = objects["_nc4_non_coord_" + name if hidden else name]
        for axis, references in enumerate(dataset.attrs.get("DIMENSION_LIST", ())):
            (reference,) = references
            scale = objects.file[reference]
            assert scale.name.split("/")[-1] == var.dimensions[axis], (path, name)
            users = scale.attrs["REFERENCE_LIST"]
            assert any(objects.file[user[0]] == dataset and user[1] == axis for user in users)
        for att in var.ncattrs():
            var.getncattr(att)
    for name, inner in group.groups.items():
        check(objects[name], inner, path + "/" + name)


for path in sys.argv[1:]:
    with netCDF4.Dataset(path) as nc, h5py.File(path) as h5:
        check(h5, nc, path)
    with netCDF4.Dataset(path, "a") as nc:
        nc.createDimension("added", 5)
        nc.createVariable("values", "f4", ("added",))[:] = range(5)
        nc.note = "changed"
        for name in [name for name in nc.dimensions if name != "added"]:
            nc.renameDimension(name, "new_" + name)
    with netCDF4.Dataset(path) as nc:
        assert list(nc["values"][:]) == [0, 1, 2, 3, 4] and nc.note == "changed", path

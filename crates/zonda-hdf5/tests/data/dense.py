"""Reads and changes the files of `tests/dense.rs`: python3 dense.py COMMAND FILE (h5py, netCDF4).

Prints as JSON what it leaves: names of links by group, attributes by object, each as name, seed
and length. Where a group or an object keeps the order of creation, they are in that order.
"""

import json
import sys

import numpy as np


def link_name(i):
    return f"link_{i}" + ("x" * 200 if i % 50 == 7 else "")


def data(seed, length):
    return ((seed + np.arange(length)) % 251).astype(np.uint8)


def attributes(count):
    """Name, seed and length of each attribute of an object."""
    out = []
    for i in range(count):
        length = i % 30
        if i % 100 == 42:
            length = 4000 + i % 200
        if i == 5 and count in (9, 70):
            length = 70_000
        if i == 8 and count in (70, 3000):
            length = 5 << 20
        out.append((f"attribute_{i}", i, length))
    return out


def count_of(name):
    return int(name[1:])


def listed_links(group):
    tracked = group.id.get_create_plist().get_link_creation_order() != 0
    names = []
    kind = h5py.h5.INDEX_CRT_ORDER if tracked else h5py.h5.INDEX_NAME
    group.id.links.iterate(lambda name: names.append(name.decode()), idx_type=kind)
    return names, tracked


def listed_attributes(group):
    tracked = group.id.get_create_plist().get_attr_creation_order() != 0
    names = []
    kind = h5py.h5.INDEX_CRT_ORDER if tracked else h5py.h5.INDEX_NAME
    h5py.h5a.iterate(group.id, lambda name: names.append(name.decode()), index_type=kind)
    return names, tracked


def check_links(path, want):
    """Compares what groups have with lists in the order of creation, and gives what they have."""
    out = {}
    with h5py.File(path, "r") as f:
        for group, names in want.items():
            found, tracked = listed_links(f[group])
            assert found == (names if tracked else sorted(names)), group
            assert len(f[group]) == len(names), group
            for name in names:
                assert isinstance(f[group][name], h5py.Group), name
            assert "link" not in f[group]
            out[group] = found
    return out


def check_attributes(path, want):
    """The same for attributes, their order being whatever it is."""
    out = {}
    with h5py.File(path, "r") as f:
        for name, items in want.items():
            found, _ = listed_attributes(f[name])
            items = {item[0]: item for item in items}
            assert sorted(found) == sorted(items), name
            for attribute, seed, length in items.values():
                value = f[name].attrs[attribute]
                assert np.array_equal(value, data(seed, length)), (name, attribute)
            out[name] = [items[attribute] for attribute in found]
    return out


def all_links(path):
    with h5py.File(path, "r") as f:
        return {group: [link_name(i) for i in range(count_of(group))] for group in f}


def read_links(path):
    return check_links(path, all_links(path))


def change_links(path):
    want = all_links(path)
    with h5py.File(path, "r+") as f:
        for group, names in want.items():
            for i in range(50):
                name = f"new_{i}" + "y" * (i * 7)
                if i % 2:
                    f[group].create_group(name)
                else:
                    f[group][name] = h5py.SoftLink("/" + group)
                names.append(name)
    check_links(path, want)
    with h5py.File(path, "r+") as f:
        for group, names in want.items():
            for name in names[::3]:
                del f[group][name]
            del names[::3]
            for name in names[4:400:10]:
                f[group].move(name, "renamed_" + name)
                names.remove(name)
                names.append("renamed_" + name)
    check_links(path, want)
    with h5py.File(path, "r+") as f:
        # Few enough for the header, none at all, none and then some.
        for group, keep in ("g9", 3), ("g65", 0), ("g1000", 0):
            names = want[group]
            for name in names[keep:]:
                del f[group][name]
            del names[keep:]
        for i in range(20):
            f["g1000"].create_group(f"again_{i}")
            want["g1000"].append(f"again_{i}")
    return check_links(path, want)


def change_ends(path):
    with h5py.File(path, "r") as f:
        want = {group: listed_links(f[group])[0] for group in f}
    check_links(path, want)
    for added in 5, 300:
        with h5py.File(path, "r+") as f:
            for group, names in want.items():
                for i in sorted({0, len(names) // 2, len(names) - 1}, reverse=True):
                    del f[group][names[i]]
                    del names[i]
                for i in range(added):
                    name = f"{added}_{i}_".ljust(475, "z")
                    f[group][name] = h5py.SoftLink("/")
                    names.append(name)
        check_links(path, want)
    return want


def change_long(path):
    with h5py.File(path, "r") as f:
        want = {"long": listed_links(f["long"])[0]}
    assert [len(name) for name in want["long"]] == [1500 * i + 1 + len(str(i)) for i in range(40)]
    with h5py.File(path, "r+") as f:
        for name in want["long"][::3]:
            del f["long"][name]
        del want["long"][::3]
        for i in range(10):
            name = "m" * (1 + 1700 * i)
            f["long"][name] = h5py.SoftLink("/")
            want["long"].append(name)
    return check_links(path, want)


def all_attributes(path):
    with h5py.File(path, "r") as f:
        return {name: attributes(count_of(name)) for name in f}


def read_attributes(path):
    want = all_attributes(path)
    assert check_attributes(path, want) == want
    return {}


def change_attributes(path):
    want = all_attributes(path)
    with h5py.File(path, "r+") as f:
        for name, items in want.items():
            for i in range(50):
                item = (f"new_{i}", 1000 + i, {7: 6000, 8: 70_000}.get(i, i * 60))
                f[name].attrs[item[0]] = data(*item[1:])
                items.append(item)
            # In place, long ones too.
            for i in range(0, len(items), 4):
                attribute, seed, length = items[i]
                if length:
                    f[name].attrs.modify(attribute, data(seed + 1, length))
                    items[i] = (attribute, seed + 1, length)
    check_attributes(path, want)
    with h5py.File(path, "r+") as f:
        for name, items in want.items():
            for attribute, _, _ in items[::3]:
                del f[name].attrs[attribute]
            del items[::3]
            for i in range(2, len(items), 10):
                attribute, seed, length = items[i]
                renamed = "renamed_" + attribute
                h5py.h5a.rename(f[name].id, attribute.encode(), renamed.encode())
                items[i] = (renamed, seed, length)
    check_attributes(path, want)
    with h5py.File(path, "r+") as f:
        for attribute, _, _ in want["o9"][4:]:
            del f["o9"].attrs[attribute]
        del want["o9"][4:]
        for attribute, _, _ in want["o70"]:
            del f["o70"].attrs[attribute]
        want["o70"] = []
    return check_attributes(path, want)


def netcdf_groups(path):
    with netCDF4.Dataset(path) as f:
        for name, group in f.groups.items():
            assert list(group.groups) == [link_name(i) for i in range(count_of(name))], name
    # It finds its way when it adds, too.
    with netCDF4.Dataset(path, "a") as f:
        for name, group in f.groups.items():
            group.createGroup("last").createDimension("d", 3)
    with netCDF4.Dataset(path) as f:
        for name, group in f.groups.items():
            assert list(group.groups)[-1] == "last" and len(group.groups) == count_of(name) + 1
    return {}


def netcdf_attributes(path):
    with netCDF4.Dataset(path) as f:
        for name, group in f.groups.items():
            items = attributes(count_of(name))
            assert group.ncattrs() == [item[0] for item in items]
            for attribute, seed, length in items:
                value = np.atleast_1d(group.getncattr(attribute))
                assert np.array_equal(value, data(seed, length)), (name, attribute)
    with netCDF4.Dataset(path, "a") as f:
        for group in f.groups.values():
            group.setncattr("last", data(1, 10))
            group.delncattr("attribute_3")
    with netCDF4.Dataset(path) as f:
        for name, group in f.groups.items():
            names = [item[0] for item in attributes(count_of(name)) if item[0] != "attribute_3"]
            assert group.ncattrs() == names + ["last"]
    return {}


command = sys.argv[1]
# The two bring libhdf5 along each, and do not share a process.
if command.startswith("netcdf"):
    import netCDF4
else:
    import h5py
json.dump(globals()[command.replace("-", "_")](sys.argv[2]), sys.stdout)

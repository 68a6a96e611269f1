"""Reads a file that tests/old_structures.rs edited, changes it, and reads it again.

At the end it prints the names in the group "many".
"""

import sys

import h5py
import numpy as np

path, count = sys.argv[1], int(sys.argv[2])
names = {f"name {i:05}" + "x" * (i % 30) for i in range(count)}


def check(file, names):
    assert set(file["many"]) == names, set(file["many"]) ^ names
    assert file["a dataset"][()] == 42
    for i in range(20):
        assert file.attrs[f"added {i}"] == i
    assert file["chunks"][:400].tolist() == [i // 4 for i in range(400)]
    assert file["texts"].asstr()[:].tolist() == [f"text {i}" for i in range(300)]
    for i in range(500):
        assert file["dense"][f"name {i:05}" + "x" * (i % 30)][()] == 42
    for i in range(200):
        assert file["dense"].attrs[f"added {i}"] == i


with h5py.File(path, "r") as file:
    before = {name: value for name, value in file.attrs.items()}
    check(file, names)
    assert list(file["empty"]) == []
    for i, name in enumerate(sorted(names)):
        assert file["many"][name][()] == 42
        kind = h5py.SoftLink if i % 3 == 0 else h5py.HardLink
        assert file["many"].get(name, getclass=True, getlink=True) is kind, name
    hard = count - (count + 2) // 3
    assert h5py.h5o.get_info(file["a dataset"].id).rc == hard + 1

with h5py.File(path, "r+") as file:
    many = file["many"]
    for i in range(100):
        many.create_group(f"new {i * 37 % 100}")
        names.add(f"new {i * 37 % 100}")
    for name in sorted(names)[::3]:
        del many[name]
        names.remove(name)
    for name in sorted(names)[::7]:
        many.move(name, "moved " + name)
        names.remove(name)
        names.add("moved " + name)
    for i in range(20):
        file["empty"].create_group(f"{i}")
        file["many"].attrs[f"{i}"] = np.arange(i)
    file["more"] = np.arange(5)
    for i in range(10):
        file.attrs[f"more {i}"] = i
    file["a dataset"].attrs["text"] = "of h5py"
    file["chunks"].resize((4000,))
    file["chunks"][400:] = np.arange(3600)
    for i in range(100):
        file["dense"].create_group(f"new {i}")
        file["dense"].attrs[f"new {i}"] = f"value {i}"
    file.create_group("sub/sub/sub")

with h5py.File(path, "r") as file:
    check(file, names)
    for name, value in before.items():
        assert np.array_equal(file.attrs[name], value), name
    assert len(file.attrs) == len(before) + 10
    assert set(file["empty"]) == {f"{i}" for i in range(20)}
    assert file["many"].attrs["7"].tolist() == list(range(7))
    assert file["more"][:].tolist() == [0, 1, 2, 3, 4]
    assert file["a dataset"].attrs["text"] == "of h5py"
    assert "sub/sub/sub" in file
    assert np.array_equal(file["chunks"][400:], np.arange(3600))
    assert len(file["dense"]) == 600
    assert file["dense"].attrs["new 99"] == "value 99"

for name in names:
    print(name)

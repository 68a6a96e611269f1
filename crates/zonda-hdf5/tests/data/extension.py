"""Makes the files that tests/extension.rs edits (make FOLDER), and goes on with them (check FILE).

What h5py does not offer is called in the libhdf5 that it has loaded.
"""

import ctypes
import sys
from pathlib import Path

import h5py
import numpy as np
from h5py import h5f, h5p


class ImageConfig(ctypes.Structure):
    _fields_ = [
        ("version", ctypes.c_int32),
        ("generate_image", ctypes.c_bool),
        ("save_resize_status", ctypes.c_bool),
        ("entry_ageout", ctypes.c_int),
    ]


def create(path, version, strategy, persist, image):
    fcpl = h5p.create(h5p.FILE_CREATE)
    fcpl.set_file_space_strategy(strategy, persist, 1)
    fapl = h5p.create(h5p.FILE_ACCESS)
    fapl.set_libver_bounds(version, h5f.LIBVER_LATEST)
    if image:
        with open("/proc/self/maps") as maps:
            hdf5 = next(line.split()[-1] for line in maps if "libhdf5-" in line or "libhdf5.so" in line)
        set_image = ctypes.CDLL(hdf5).H5Pset_mdc_image_config
        config = ImageConfig(1, True, False, -1)
        assert set_image(ctypes.c_int64(fapl.id), ctypes.byref(config)) >= 0
    return h5py.File(h5f.create(bytes(path), h5f.ACC_TRUNC, fcpl=fcpl, fapl=fapl))


def values(i):
    return np.arange(i, i + 1000 + i)


def fill(file):
    for i in range(30):
        file[f"d{i}"] = values(i)
        file[f"d{i}"].attrs["i"] = i
    chunked = file.create_dataset("chunked", (0,), dtype="i8", chunks=(50,), maxshape=(None,))
    chunked.resize((500,))
    chunked[:] = values(0)[:500]
    for i in range(0, 30, 3):
        del file[f"d{i}"]


def make(folder):
    strategies = {
        "managers": h5f.FSPACE_STRATEGY_FSM_AGGR,
        "pages": h5f.FSPACE_STRATEGY_PAGE,
        "aggregators": h5f.FSPACE_STRATEGY_AGGR,
    }
    versions = {"earliest": h5f.LIBVER_EARLIEST, "latest": h5f.LIBVER_LATEST}
    for name, strategy in strategies.items():
        for libver, version in versions.items():
            for persist in [False, True]:
                # An image needs version 3 of the superblock.
                for image in [False] if libver == "earliest" else [False, True]:
                    if name == "aggregators" and persist:
                        continue
                    kept = "kept" if persist else "forgotten"
                    image_name = "image" if image else "metadata"
                    path = folder / f"{name}-{libver}-{kept}-{image_name}.h5"
                    with create(path, version, strategy, persist, image) as file:
                        fill(file)
                    print(path)


def check(file, grown):
    for i in range(30):
        if i % 3:
            assert np.array_equal(file[f"d{i}"][:], values(i)), i
            assert file[f"d{i}"].attrs["i"] == i
    assert np.array_equal(file["chunked"][:500], values(0)[:500])
    if grown:
        assert np.array_equal(file["chunked"][500:], np.arange(4500))
        for i in range(40):
            assert np.array_equal(file[f"new/{i}"][:], np.full(300 + 200 * i, i)), i


def go_on(path):
    with h5py.File(path, "r") as file:
        check(file, False)
    with h5py.File(path, "r+") as file:
        file["chunked"].resize((5000,))
        file["chunked"][500:] = np.arange(4500)
        for i in range(40):
            file[f"new/{i}"] = np.full(300 + 200 * i, i)
        file["gone"] = values(7)
        del file["gone"]
    for _ in range(2):
        with h5py.File(path, "r+") as file:
            check(file, True)
            file["twice"] = values(9)
            del file["twice"]
    with h5py.File(path, "r") as file:
        check(file, True)


if sys.argv[1] == "make":
    make(Path(sys.argv[2]))
else:
    go_on(sys.argv[2])

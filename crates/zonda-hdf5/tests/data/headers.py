"""Makes the files of superblocks and headers: python3 headers.py (h5py 3.16, HDF5 2.0).

What h5py does not offer is called in the libhdf5 that it has loaded.
"""

import ctypes

import h5py
import numpy as np
from h5py import h5f, h5p

with open("/proc/self/maps") as maps:
    HDF5 = next(line.split()[-1] for line in maps if "libhdf5-" in line or "libhdf5.so" in line)
lib = ctypes.CDLL(HDF5)
H = ctypes.c_int64


class ImageConfig(ctypes.Structure):
    _fields_ = [
        ("version", ctypes.c_int32),
        ("generate_image", ctypes.c_bool),
        ("save_resize_status", ctypes.c_bool),
        ("entry_ageout", ctypes.c_int),
    ]


# Closed with an image of the metadata cache: all metadata are in it, none at their addresses.
fapl = h5p.create(h5p.FILE_ACCESS)
fapl.set_libver_bounds(h5f.LIBVER_LATEST, h5f.LIBVER_LATEST)
assert lib.H5Pset_mdc_image_config(H(fapl.id), ctypes.byref(ImageConfig(1, True, False, -1))) >= 0
f = h5py.File(h5f.create(b"cache_image.h5", h5f.ACC_TRUNC, fapl=fapl))
f.attrs["title"] = np.bytes_("image")
f["data"] = np.arange(3, dtype="i2")
f.close()

# Addresses and lengths of 4 bytes, behind a user block of 1024; an old-style group, a heap.
fcpl = h5p.create(h5p.FILE_CREATE)
fcpl.set_sizes(4, 4)
fcpl.set_userblock(1024)
f = h5py.File(h5f.create(b"narrow.h5", h5f.ACC_TRUNC, fcpl=fcpl))
text = h5py.string_dtype()
words = f.create_dataset("words", data=["one", "", "three"], dtype=text, track_times=True)
assert lib.H5Oset_comment(H(words.id.id), b"what is it?") >= 0
f["type"] = np.dtype([("a", "<i4"), ("b", ">f8", (2, 3))])
f.create_dataset("committed", (2,), dtype=f["type"], chunks=(1,), compression=5, shuffle=True)
f.close()

# Addresses of 4 bytes and lengths of 8 behind a user block, and all as old as it can be: version 0
# of the superblock, version 1 headers, a symbol table.
fcpl = h5p.create(h5p.FILE_CREATE)
fcpl.set_sizes(4, 8)
fcpl.set_userblock(512)
fapl = h5p.create(h5p.FILE_ACCESS)
fapl.set_libver_bounds(h5f.LIBVER_EARLIEST, h5f.LIBVER_LATEST)
f = h5py.File(h5f.create(b"old_narrow.h5", h5f.ACC_TRUNC, fcpl=fcpl, fapl=fapl))
f.attrs["title"] = np.bytes_("old")
f["words"] = np.arange(3, dtype="i2")
f["soft"] = h5py.SoftLink("/words")
f.close()

# SPDX-License-Identifier: MIT OR Apache-2.0
"""Arrays that several threads read and decode together: the same bits as xarray's decoders give on netCDF4-python."""

import os
import subprocess
import sys

import netCDF4
import numpy as np
import pytest
import xarray as xr

import zonda
from zonda.xarray_engine import _arrays

# Above 16 MiB of any type that is read, and no multiple of what a thread takes.
SHAPE = (37, 351, 372)
DIMS = ("time", "y", "x")
LAYOUTS = {
    "CDF-2": dict(format="NETCDF3_64BIT_OFFSET"),
    "CDF-2, records": dict(format="NETCDF3_64BIT_OFFSET", unlimited=True),
    "netCDF-4": dict(contiguous=True),
    "netCDF-4, chunks": dict(chunksizes=(5, 100, 372), zlib=True, complevel=1),
}
PACKINGS = {
    "i2 to f4": ("i2", np.float32(0.01), np.float32(273.15), np.int16(-7), None),
    "i2 to f4, scaled only": ("i2", np.float32(-0.5), None, np.int16(-7), None),
    "i2 to f8": ("i2", 0.1, None, np.int16(-7), None),
    "i2 to f8, moved only": ("i2", None, 1000.25, np.int16(-7), None),
    "u1 to f4, masked only": ("u1", None, None, np.uint8(7), None),
    "i4 to f8": ("i4", np.float32(0.3), np.float32(2.0), np.int32(-7), None),
    "f4, masked only": ("f4", None, None, np.float32(-7), None),
    "f4, a fill value of another type": ("f4", None, None, None, np.float64(-7)),
    # No number of four bytes: NumPy compares in eight.
    "f4, a fill value that is no f4": ("f4", np.float32(0.1), np.float32(3.0), None, np.float64(0.1)),
    "f4, scaled": ("f4", np.float32(0.1), np.float32(-0.0), np.float32(-7), None),
    "f4 to f8": ("f4", np.float32(0.1), 5.0, np.float32(-7), None),
    "f8, scaled by another type": ("f8", np.float32(0.1), np.int16(3), np.float64(-7), None),
    "i1, unsigned": ("i1", np.float32(0.5), np.float32(1), np.int8(-7), None),
    "u2 to f4": ("u2", np.float32(0.01), np.float32(-1), np.uint16(64536), None),
    "i8 to f8": ("i8", 0.25, None, np.int64(-7), None),
    "u8 to f8": ("u8", None, np.float64(0.5), np.uint64(2**64 - 1000), None),
}
# Classic files have no such types.
OF_NETCDF4 = ("u2", "i8", "u8")
PAIRS = [(layout, packing) for layout in LAYOUTS for packing in PACKINGS if not (layout.startswith("CDF") and PACKINGS[packing][0] in OF_NETCDF4)]


def values_of(kind, shape=SHAPE):
    """Numbers of a type, fill values and what is odd in floats among them."""
    numbers = np.arange(np.prod(shape)) % 30011 - 1000
    if kind == "u1":
        numbers = numbers % 256
    if kind == "i1":
        numbers = numbers % 256 - 128
    values = numbers.astype("i8").astype(kind).reshape(shape)
    values[::3, 5, 7] = 7 if kind[0] == "u" else -7
    if kind[0] == "f":
        values[1, :3, 0] = np.nan, -0.0, np.inf
        values[2, 2, :2] = 0.1
    return values


def make(path, kind, *, format="NETCDF4", unlimited=False, attributes=None, fill=None, **storage):
    with netCDF4.Dataset(path, "w", format=format) as file:
        for name, length in zip(DIMS, SHAPE, strict=True):
            file.createDimension(name, None if unlimited and name == "time" else length)
        if unlimited:
            file.createVariable("other", "i4", ("time", "x"))  # between the records
        variable = file.createVariable("v", kind, DIMS, fill_value=fill, **storage)
        variable.set_auto_maskandscale(False)
        variable.setncatts(attributes or {})
        variable[:] = values_of(kind)
    return path


def same_bits(mine, right):
    assert mine.dtype == right.dtype and mine.shape == right.shape
    assert mine.tobytes() == right.tobytes()


@pytest.mark.parametrize("layout, packing", PAIRS)
def test_masks_and_scales(tmp_path, layout, packing):
    kind, scale, offset, fill, missing = PACKINGS[packing]
    given = {"scale_factor": scale, "add_offset": offset, "missing_value": missing, "_Unsigned": "true" if "unsigned" in packing else None}
    if layout.startswith("CDF") and kind == "u1":
        kind, fill = "i1", np.int8(7)  # nor this one
    attributes = {name: value for name, value in given.items() if value is not None}
    path = make(tmp_path / "large.nc", kind, attributes=attributes, fill=fill, **LAYOUTS[layout])
    with xr.open_dataset(path, engine="zonda") as mine, xr.open_dataset(path, engine="netcdf4") as right:
        for key in (np.s_[...], np.s_[1:, :, ::-1], np.s_[:, [5, 1, 350]]):
            same_bits(mine["v"][key].values, right["v"][key].values)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_values_as_they_are(tmp_path, layout):
    path = make(tmp_path / "large.nc", "f4", **LAYOUTS[layout])
    right = values_of("f4")
    with zonda.open(path) as file:
        variable = file["v"]
        same_bits(variable[...], right)
        same_bits(variable[1:, ::2], right[1:, ::2].copy())
        same_bits(variable[::2, 1:], right[::2, 1:].copy())
        wide = np.empty(SHAPE, "f8")
        variable.read_into(wide)
        same_bits(wide, right.astype("f8"))


def test_values_of_other_files(tmp_path):
    """A virtual dataset, whose parts are chunks of another file."""
    h5py = pytest.importorskip("h5py")
    right = values_of("i4")
    with h5py.File(tmp_path / "source.h5", "w") as file:
        file.create_dataset("v", data=right, chunks=(20, 351, 93), compression="gzip", compression_opts=1)
    layout = h5py.VirtualLayout(SHAPE, "i4")
    layout[...] = h5py.VirtualSource(str(tmp_path / "source.h5"), "v", SHAPE)
    with h5py.File(tmp_path / "virtual.h5", "w") as file:
        file.create_virtual_dataset("v", layout)
    with zonda.open(tmp_path / "virtual.h5") as file:
        same_bits(file["v"][...], right)


def test_values_that_do_not_fit_are_counted_over_all_parts(tmp_path):
    path, right = make(tmp_path / "large.nc", "f8", contiguous=True), values_of("f8") * 1e6
    with netCDF4.Dataset(path, "a") as file:
        file["v"][:] = right
    outside = int(np.sum((right >= 2**31) | (right < -(2**31))))  # NaN is neither
    out = np.empty(SHAPE, "i4")
    with zonda.open(path) as file, pytest.raises(zonda.NetCDFError, match=f": {outside} values do not fit") as told:
        file["v"].read_into(out)
    assert told.value.code == -60
    fits = np.abs(right) < 2**31
    np.testing.assert_array_equal(out[fits], right[fits].astype("i4"))


@pytest.mark.parametrize("layout", ["CDF-2", "netCDF-4"])
def test_a_file_that_ends_early_is_an_error_of_each_read(tmp_path, layout):
    path = make(tmp_path / "large.nc", "f8", **LAYOUTS[layout])
    with zonda.open(path) as file:
        # The last of the parts only.
        os.truncate(path, os.path.getsize(path) - (1 << 20))
        for _ in range(3):
            if layout == "CDF-2":
                # As in netCDF-C, what lies behind the end of a classic file is zeros.
                got = file["v"][...]
                right = values_of("f8")
                same_bits(got[:30], right[:30])
                assert not got[-1, -1].any()
            else:
                with pytest.raises(OSError):
                    file["v"][...]


def test_one_thread_gives_the_same(tmp_path):
    path = make(tmp_path / "large.nc", "i2", attributes={"scale_factor": np.float32(0.01), "add_offset": np.float32(1)}, fill=np.int16(-7), contiguous=True)
    program = """
import hashlib, sys, zonda, xarray
from zonda.xarray_engine import ZondaBackendEntrypoint
with xarray.open_dataset(sys.argv[1], engine=ZondaBackendEntrypoint) as ds:
    print(zonda._zonda.threads(), hashlib.sha256(ds["v"].values.tobytes()).hexdigest())
"""
    said = []
    for threads in ("1", "3"):
        done = subprocess.run([sys.executable, "-c", program, path], env={**os.environ, "ZONDA_THREADS": threads}, capture_output=True, text=True, check=True)
        said.append(done.stdout.split())
    assert [threads for threads, _ in said] == ["1", "3"]
    assert said[0][1] == said[1][1]


def test_who_decodes():
    """The engine where NumPy would calculate in the type of the result, too; NumPy where it would not."""
    single, double = np.dtype("f4"), np.dtype("f8")

    def by_engine(dtype, fill=None, scale=None, offset=None, stored=None):
        return _arrays.Decoding(dtype, fill, dtype.type("nan"), scale, offset).by_engine(stored or dtype)

    assert by_engine(single, np.int16(-7), np.float32(0.5), np.int16(2)) == (-7.0, 0.5, 2.0)
    assert by_engine(double, np.int32(-7), np.float32(0.5), 0.25) == (-7.0, 0.5, 0.25)
    assert by_engine(single) == (None, None, None)
    assert by_engine(single, scale=np.float64(0.5)) is None
    assert by_engine(single, offset=np.int32(5)) is None
    assert by_engine(single, np.float64(0.1)) is None
    assert by_engine(single, np.float64(1e300)) is None
    assert by_engine(single, np.float64(0.5)) == (0.5, None, None)
    assert by_engine(single, stored=np.dtype("i2")) is None
    assert by_engine(np.dtype("f2"), stored=np.dtype("f2")) is None


def test_the_engine_refuses_to_decode_what_is_no_float(tmp_path):
    path = make(tmp_path / "large.nc", "i2", contiguous=True)
    with zonda.open(path) as file:
        opened = file["v"]._file
        with pytest.raises(TypeError, match="f4 or f8, not of int16"):
            opened.get(0, 0, (0, 0, 0), (1, 1, 4), None, np.empty((1, 1, 4), "i2"), (None, 2.0, None))
        out = np.empty((1, 1, 4), "f4")
        opened.get(0, 0, (1, 0, 0), (1, 1, 4), None, out, (None, 2.0, 1.0))
        np.testing.assert_array_equal(out, values_of("i2")[1:2, :1, :4] * 2.0 + 1.0)

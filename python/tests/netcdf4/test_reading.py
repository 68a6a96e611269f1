# SPDX-License-Identifier: MIT OR Apache-2.0
"""Random indices of random variables with random attributes, read by the netCDF4 module and zonda.netcdf4."""

import random

import numpy as np
import pytest
from differential import FORMATS, compare, random_key, random_values, types_of

reference = pytest.importorskip("netCDF4")
ours = pytest.importorskip("zonda.netcdf4")


def make(path, format, seed):
    """A file of variables whose attributes ask for masks and scaling."""
    rng, numbers = random.Random(seed), np.random.default_rng(seed)
    with reference.Dataset(path, "w", format=format) as ds:
        ds.createDimension("t", None)
        ds.createDimension("y", 5)
        ds.createDimension("x", 7)
        for dtype in types_of(format):
            for n, dims in enumerate([("t", "y", "x"), ("y", "x"), ("x",), (), ("t",)]):
                fill = rng.choice([None, None, False, "some"])
                if fill == "some":
                    fill = random_values(numbers, dtype, (1,))[0]
                big = format.startswith("NETCDF4") and dtype != "S1" and rng.random() < 0.3
                name = f"{dtype}_{n}"
                var = ds.createVariable(name, dtype, dims, fill_value=fill, endian="big" if big else "native")
                var.set_auto_maskandscale(False)
                attribute = rng.choice(["", "", "missing_value", "valid_min", "valid_max", "valid_range", "missing"])
                shape = {"valid_range": (2,), "missing": (3,)}.get(attribute, ())
                if attribute:
                    wrong = rng.random() < 0.1 and dtype != "S1"
                    value = np.array(0.5 if wrong else random_values(numbers, dtype, (1,) + shape)[0])
                    name = "missing_value" if attribute == "missing" else attribute
                    var.setncattr(name, value if dtype != "S1" else value.tobytes())
                for scaling in ("scale_factor", "add_offset"):
                    if dtype != "S1" and rng.random() < 0.3:
                        var.setncattr(scaling, rng.choice([np.float64(0.5), np.float32(0.25), np.int16(2), 1.0, 0.0]))
                if dtype[0] == "i" and rng.random() < 0.3:
                    var.setncattr("_Unsigned", rng.choice(["true", "false"]))
                if dtype == "S1" and dims and rng.random() < 0.5:
                    var.setncattr("_Encoding", rng.choice(["ascii", "utf-8", "bytes"]))
                var.set_auto_chartostring(False)
                if fill is False or rng.random() < 0.85:
                    sizes = {"t": 4, "y": 5, "x": 7}
                    var[...] = random_values(numbers, dtype, tuple(sizes[d] for d in dims))


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("seed", range(4))
def test_random_reads(tmp_path, format, seed):
    path = tmp_path / f"reads-{seed}.nc"
    make(path, format, seed)
    rng = random.Random(seed + 1000)
    with reference.Dataset(path) as a, ours.Dataset(path) as b:
        assert list(a.variables) == list(b.variables)
        for name, var in a.variables.items():
            other = b.variables[name]
            assert (var.shape, var.dtype, var.dimensions, var.ndim, var.size) == (
                other.shape, other.dtype, other.dimensions, other.ndim, other.size)  # fmt: skip
            for _ in range(12):
                scale, mask, always, text = (rng.random() < 0.7 for _ in range(4))
                for v in (var, other):
                    v.set_auto_scale(scale)
                    v.set_auto_mask(mask)
                    v.set_always_mask(always)
                    v.set_auto_chartostring(text)
                key = random_key(rng, var.shape)
                what = f"{path} {name}[{key!r}] scale={scale} mask={mask} always={always} text={text} {var.__dict__}"
                compare(what, lambda v=var, k=key: v[k], lambda v=other, k=key: v[k])


@pytest.mark.parametrize("format", FORMATS)
def test_descriptions(tmp_path, format):
    """What variables and files tell of themselves."""
    path = tmp_path / "told.nc"
    make(path, format, 7)
    with reference.Dataset(path) as a, ours.Dataset(path) as b:
        for what in ("data_model", "file_format", "disk_format", "path", "name", "parent"):
            assert getattr(a, what) == getattr(b, what), what
        assert str(a).replace("netCDF4.", "zonda.netcdf4.") == str(b)
        for name, var in a.variables.items():
            other = b.variables[name]
            calls = ["filters", "chunking", "endian", "quantization", "ncattrs"]
            if var.dtype.isnative:
                calls.append("get_fill_value")  # the reference's bytes are swapped for the other order
            for call in calls:
                compare(f"{path} {name}.{call}", getattr(var, call), getattr(other, call))
            for attribute in var.ncattrs():
                compare(f"{name}.{attribute}", lambda v=var, n=attribute: v.getncattr(n),
                        lambda v=other, n=attribute: v.getncattr(n))  # fmt: skip
            assert str(var).replace("netCDF4.", "zonda.netcdf4.") == str(other)
            compare(f"len({name})", lambda v=var: len(v), lambda v=other: len(v))
        for name, dim in a.dimensions.items():
            assert str(dim).replace("netCDF4.", "zonda.netcdf4.") == str(b.dimensions[name])
            assert (len(dim), dim.isunlimited(), dim.name) == (
                len(b.dimensions[name]), b.dimensions[name].isunlimited(), b.dimensions[name].name)  # fmt: skip


def test_large_arrays_meet_every_rule(tmp_path):
    """Arrays of several blocks: values to mask in the first, the last and no block."""
    path = tmp_path / "large.nc"
    size = 900_001
    with reference.Dataset(path, "w") as ds:
        ds.createDimension("x", size)
        for name, places in {"none": (), "first": (0,), "last": (size - 1,), "some": (5, 300_000, 899_999)}.items():
            for dtype in ("f4", "i2"):
                var = ds.createVariable(f"{name}_{dtype}", dtype, ("x",), fill_value=99)
                var.scale_factor, var.add_offset, var.valid_max = 0.5, 3.0, np.array(500, dtype)
                var.set_auto_maskandscale(False)
                values = (np.arange(size) % 90).astype(dtype)
                for n, place in enumerate(places):
                    values[place] = (99, 501, 99)[n]
                var[:] = values
    with reference.Dataset(path) as a, ours.Dataset(path) as b:
        for name in a.variables:
            for key in (slice(None), slice(None, None, -3)):
                compare(f"{path} {name}", lambda n=name, k=key: a[n][k], lambda n=name, k=key: b[n][k])

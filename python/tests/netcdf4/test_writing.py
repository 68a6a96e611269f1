# SPDX-License-Identifier: MIT OR Apache-2.0
"""Random writes by the netCDF4 module and by zonda.netcdf4, each into its own file: the files hold the same."""

import random

import numpy as np
import pytest
from differential import FORMATS, compare, random_key, random_values, same_value, types_of
from numpy import ma

reference = pytest.importorskip("netCDF4")
ours = pytest.importorskip("zonda.netcdf4")


def define(module, path, format, seed):
    rng, numbers = random.Random(seed), np.random.default_rng(seed)
    ds = module.Dataset(path, "w", format=format)
    ds.createDimension("t", None)
    ds.createDimension("y", 3)
    ds.createDimension("x", 4)
    ds.title = "written"
    for dtype in types_of(format):
        for n, dims in enumerate([("t", "y"), ("y", "x"), ("t",), (), ("x",)]):
            fill = rng.choice([None, None, "some"])
            if fill == "some":
                fill = random_values(numbers, dtype, (1,))[0]
            options = {"fill_value": fill}
            if format.startswith("NETCDF4") and dtype != "S1":
                options["endian"] = rng.choice(["native", "big", "little"])
                options["zlib"] = rng.random() < 0.5
                options["least_significant_digit"] = rng.choice([None, None, 1]) if dtype[0] == "f" else None
            var = ds.createVariable(f"{dtype}_{n}", dtype, dims, **options)
            var.units = "m"
            if dtype != "S1" and rng.random() < 0.3:
                var.missing_value = random_values(numbers, dtype, (1,))[0]
            if dtype != "S1" and rng.random() < 0.3:
                var.scale_factor = rng.choice([0.5, 2.0])
            if dtype != "S1" and rng.random() < 0.3:
                var.add_offset = rng.choice([1.0, 3.0])
    return ds


def random_data(rng, numbers, dtype, shape):
    """Data for a selection of a shape; often of another shape that may fit or not."""
    kind = rng.randrange(8)
    if kind == 0:
        return random_values(numbers, dtype, (1,))[0]
    if kind == 1:
        shape = shape[1:]
    elif kind == 2:
        shape = (1, *shape)
    elif kind == 3:
        shape = tuple(n + rng.choice([0, 0, 1]) for n in shape)
    data = random_values(numbers, rng.choice([dtype, dtype, "f8"]) if dtype != "S1" else dtype, shape)
    if kind == 4 and dtype != "S1":
        return np.nan_to_num(data).tolist()
    if kind == 5 and dtype != "S1":
        return ma.masked_array(np.nan_to_num(data), mask=numbers.random(shape) < 0.4)
    return np.nan_to_num(data) if dtype[0] in "iu" else data


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("seed", range(4))
def test_random_writes(tmp_path, format, seed):
    paths = tmp_path / "reference.nc", tmp_path / "ours.nc"
    a, b = define(reference, paths[0], format, seed), define(ours, paths[1], format, seed)
    rng, numbers = random.Random(seed + 500), np.random.default_rng(seed + 500)
    for step in range(300):
        name = rng.choice(list(a.variables))
        var, other = a.variables[name], b.variables[name]
        key = random_key(rng, var.shape, beyond=2 if var.dimensions[:1] == ("t",) else 0)
        try:
            shape = np.shape(np.empty(var.shape)[key])
        except (IndexError, TypeError, ValueError):
            shape = tuple(rng.randint(1, 3) for _ in var.shape)
        data = random_data(rng, numbers, str(var.dtype.str[1:]), shape)
        # Unpacked, a masked element alone is written as zero there, and as what is under the mask here.
        scale = ma.isMA(data) or rng.random() < 0.7
        var.set_auto_scale(scale)
        other.set_auto_scale(scale)
        what = f"step {step}: {name}{var.shape}[{key!r}] = {data!r}, {var.__dict__}"

        def put(v, key=key, data=data):
            v[key] = data.copy() if hasattr(data, "copy") else data

        kind, _, _ = compare(what, lambda: put(var), lambda: put(other))
        assert kind == "raises" or var.shape == other.shape, what
        var.set_auto_maskandscale(False)
        other.set_auto_maskandscale(False)
        if kind == "gives":
            assert not same_value(var[...], other[...]), what
        else:
            # What a refused write leaves may differ in elements, not in what is told of it.
            other[...] = var[...]
    a.close()
    b.close()
    with reference.Dataset(paths[0]) as a, reference.Dataset(paths[1]) as b:
        for name, var in a.variables.items():
            other = b.variables[name]
            assert var.__dict__.keys() == other.__dict__.keys()
            for attribute, value in var.__dict__.items():
                assert not same_value(value, other.__dict__[attribute]), f"{paths} {name}.{attribute}"
            assert (var.filters(), var.endian(), var.dtype) == (other.filters(), other.endian(), other.dtype)
            var.set_auto_maskandscale(False)
            other.set_auto_maskandscale(False)
            assert not same_value(var[...], other[...]), f"{paths} {name}"


def test_arrays_that_are_not_aligned(tmp_path):
    values = np.frombuffer(b"x" + np.arange(6.0).tobytes(), "f8", offset=1).reshape(2, 3)
    assert not values.flags.aligned
    with ours.Dataset(tmp_path / "a.nc", "w") as ds:
        ds.createDimension("y", None)
        ds.createDimension("x", 3)
        ds.createVariable("v", "f8", ("y", "x"))[:] = values
    with reference.Dataset(tmp_path / "a.nc") as ds:
        assert (ds["v"][:] == values).all()

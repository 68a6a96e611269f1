# SPDX-License-Identifier: MIT OR Apache-2.0
"""Files of which a part is damaged: that part is told, the rest is there."""

import io
import re
import warnings

import netCDF4
import numpy as np
import pytest
import xarray as xr

import zonda
import zonda.netcdf4
from zonda import NetCDFError
from zonda._zonda import File


@pytest.fixture
def strings(tmp_path):
    """A file whose strings cannot be read, and which has other attributes before and behind."""
    path = tmp_path / "strings.nc"
    with netCDF4.Dataset(path, "w") as file:
        file.title = "a title"
        file.createDimension("n", 3)
        for name in ("whole", "broken"):
            variable = file.createVariable(name, "i2", ("n",), fill_value=-1)
            variable[:] = [1, 2, 3]
            variable.units = "K"
            if name == "broken":
                variable.setncattr_string("story", ["once", "upon"])
            variable.scale_factor = np.float32(2)
    data = bytearray(path.read_bytes())
    assert data.count(b"GCOL") == 1
    place = data.index(b"GCOL")
    data[place : place + 4] = b"GONE"
    path.write_bytes(data)
    return path


def test_the_module_gives_the_error_in_its_place(strings):
    file = File.open(strings)
    found = {name: value for name, _, value in file.atts(0, 1)}
    assert list(found) == ["_FillValue", "units", "story", "scale_factor"]
    assert isinstance(found["story"], NetCDFError) and found["story"].code == -101
    assert found["units"] == b"K" and found["scale_factor"] == np.float32(2)
    *_, variables, _, own, faults = file.contents(0)
    assert own == {"title": "a title"}
    assert variables[0][10] == variables[1][10] == {"_FillValue": -1, "units": "K", "scale_factor": 2}
    assert [(number, name) for number, name, _ in faults] == [(1, "story")]
    assert str(strings) in str(faults[0][2])
    with pytest.raises(NetCDFError):
        file.att(0, 1, "story")


def test_the_engine_leaves_it_out_with_a_warning(strings):
    with pytest.warns(RuntimeWarning, match="attribute 'story' of variable 'broken' left out"):
        ds = xr.open_dataset(strings, engine="zonda")
    assert ds["broken"].attrs == ds["whole"].attrs == {"units": "K"}
    assert ds["broken"].values.tolist() == ds["whole"].values.tolist() == [2, 4, 6]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert list(xr.open_dataset(strings, engine="zonda", drop_variables="broken")) == ["whole"]


def test_the_interfaces_give_the_others(strings):
    with zonda.open(strings) as ds:
        attrs = ds["broken"].attrs
        with pytest.warns(RuntimeWarning, match="'story' left out"):
            assert attrs.as_dict() == {"_FillValue": -1, "units": "K", "scale_factor": 2}
        assert attrs.get_many("units", "nowhere") == ("K", None)
        assert "story" in attrs and attrs["units"] == "K"
        for ask in (lambda: attrs["story"], lambda: attrs.get_many("units", "story")):
            with pytest.raises(NetCDFError):
                ask()
    with zonda.netcdf4.Dataset(strings) as ds:
        variable = ds["broken"]
        assert variable.ncattrs() == ["_FillValue", "units", "story", "scale_factor"]
        assert variable.units == "K" and variable.scale_factor == 2
        with pytest.raises(AttributeError, match="global heap"):
            variable.getncattr("story")


def test_a_list_of_attributes_that_cannot_be_read(tmp_path):
    h5py = pytest.importorskip("h5py")
    path = tmp_path / "matrix.nc"
    with h5py.File(path, "w") as file:
        for name in ("whole", "odd"):
            file[name] = np.ones(3)
            file[name].attrs["units"] = "K"
        # netCDF has no attributes of two dimensions, and then gives none of the variable.
        file["odd"].attrs["matrix"] = np.ones((2, 2))
    with pytest.warns(RuntimeWarning, match="all attributes of variable 'odd' left out"):
        ds = xr.open_dataset(path, engine="zonda")
    assert ds["odd"].attrs == {} and ds["whole"].attrs == {"units": "K"}


def test_a_damaged_variable_can_be_dropped(tmp_path):
    path = tmp_path / "variables.nc"
    with netCDF4.Dataset(path, "w") as file:
        file.createDimension("n", 3)
        for name in ("a", "b", "c"):
            file.createVariable(name, "f4", ("n",))[:] = [1, 2, 3]
    data = bytearray(path.read_bytes())
    # The root group's, the dimension's, then the variables'.
    headers = [found.start() for found in re.finditer(b"OHDR", data)]
    data[headers[-2] + 30] ^= 0xFF
    path.write_bytes(data)
    with pytest.raises(NetCDFError, match="/b: object header at byte"):
        xr.open_dataset(path, engine="zonda")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ds = xr.open_dataset(path, engine="zonda", drop_variables=["b"])
    assert list(ds) == ["a", "c"] and ds["c"].values.tolist() == [1, 2, 3]


class Failing(io.BytesIO):
    """Bytes whose reader is told of a failure once, in one of its reads."""

    def __init__(self, data, at):
        super().__init__(data)
        self.left = at

    def read(self, *count):
        self.left -= 1
        if self.left == 0:
            raise ConnectionError("the line is cut")
        return super().read(*count)


def test_a_failing_device_is_no_damage(strings):
    """It ends the opening: nothing is left out because it could not be read just now."""
    data = strings.read_bytes().replace(b"GONE", b"GCOL")
    whole = str(File.open_bytes(data).contents(0))
    failures = 0
    for at in range(1, 1000):
        source = Failing(data, at)
        try:
            found = File.open_object(source).contents(0)
        except ConnectionError:
            failures += 1
            continue
        # What failed was read once more.
        assert str(found) == whole
        if source.left > 0:
            break
    assert failures >= 3 and source.left > 0

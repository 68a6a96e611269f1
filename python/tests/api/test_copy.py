# SPDX-License-Identifier: MIT OR Apache-2.0
"""Copies, judged by netCDF4-python."""

import netCDF4
import numpy as np
import pytest

import zonda


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "source.nc"
    with netCDF4.Dataset(path, "w") as ds:
        ds.title = "maps"
        ds.createDimension("time", None)
        ds.createDimension("x", 60)
        t = ds.createVariable("t", "f4", ("time", "x"), chunksizes=(1, 60), zlib=True, fill_value=-1)
        t.units = "K"
        t[:] = np.arange(2400, dtype="f4").reshape(40, 60)
        ds.createVariable("x", "f8", ("x",))[:] = np.arange(60)
        ocean = ds.createGroup("ocean")
        ocean.createVariable("s", "i2", ("x",))[:] = np.arange(60)
    return path


def test_all_stays_as_it_is(source, tmp_path):
    copied = zonda.copy(source, tmp_path / "same.nc")
    assert copied.ways == {"/t": "stored", "/x": "values", "/ocean/s": "values"} and copied.notes == []
    assert copied.sizes["/t"] == 9600
    with netCDF4.Dataset(source) as a, netCDF4.Dataset(tmp_path / "same.nc") as b:
        assert b.title == "maps" and b.dimensions["time"].isunlimited() and b["t"].units == "K"
        assert b["t"].filters() == a["t"].filters() and b["t"].chunking() == [1, 60]
        np.testing.assert_array_equal(a["t"][:], b["t"][:])
        np.testing.assert_array_equal(a["ocean/s"][:], b["ocean/s"][:])


def test_other_chunks_filters_and_kinds(source, tmp_path):
    path = tmp_path / "other.nc"
    with zonda.open(source) as ds:
        # A dataset that is open stays so.
        zonda.copy(ds, path, chunks={"time": 0, "x": 10, "x*": {"x": 30}}, filters={"t": ["shuffle", ("deflate", 9)], "x": []},
                   fix_unlimited=True, exclude=["s"], memory=1 << 20)  # fmt: skip
        assert ds["t"].shape == (40, 60)
    with netCDF4.Dataset(source) as a, netCDF4.Dataset(path) as b:
        assert not b.dimensions["time"].isunlimited() and not b.groups, "a group that nothing is left of"
        assert b["t"].chunking() == [40, 10] and b["t"].filters()["complevel"] == 9 and b["t"].filters()["shuffle"]
        np.testing.assert_array_equal(a["t"][:], b["t"][:])
    zonda.copy(source, path, format="CDF-5", variables=["t"], replace=True)
    with netCDF4.Dataset(path) as b:
        assert b.data_model == "NETCDF3_64BIT_DATA" and set(b.variables) == {"t", "x"}
    zonda.copy(source, path, group="/ocean", replace=True, contiguous=["*"])
    with netCDF4.Dataset(path) as b:
        assert set(b.variables) == {"s"} and b["s"].chunking() == "contiguous"


def test_progress_and_its_end(source, tmp_path):
    path = tmp_path / "told.nc"
    told = []
    zonda.copy(source, path, progress=lambda *now: told.append(now))
    assert [now[1] for now in told] == sorted(now[1] for now in told)
    assert told[-1][1] == told[-1][2] == 9600 + 480 + 120 and {now[0] for now in told} >= {"/t"}
    before = path.read_bytes()

    def stop(*_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        zonda.copy(source, path, replace=True, progress=stop)
    assert path.read_bytes() == before, "the target that was there stays"
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["source.nc", "told.nc"], "nothing else is left"
    pytest.importorskip("tqdm")
    zonda.copy(source, path, replace=True, progress=True)


def test_refusals(source, tmp_path):
    (tmp_path / "there.nc").write_bytes(b"mine")
    with pytest.raises(FileExistsError):
        zonda.copy(source, tmp_path / "there.nc")
    assert (tmp_path / "there.nc").read_bytes() == b"mine"
    for replace in (False, True):
        with pytest.raises(zonda.NetCDFError, match="the target is the source"):
            zonda.copy(source, source, replace=replace)
    with pytest.raises(FileNotFoundError):
        zonda.copy(tmp_path / "none.nc", tmp_path / "a.nc")
    for wrong in [{"format": "PDF"}, {"chunks": {"x": -1}}, {"filters": ["none such"]}]:
        with pytest.raises(ValueError):
            zonda.copy(source, tmp_path / "a.nc", **wrong)
    for wrong in [{"variables": ["nope"]}, {"group": "/nope"}]:
        with pytest.raises(KeyError):
            zonda.copy(source, tmp_path / "a.nc", **wrong)
    with pytest.raises(zonda.NetCDFError, match="ocean"):
        zonda.copy(source, tmp_path / "a.nc", format="CDF-5")
    assert not (tmp_path / "a.nc").exists()

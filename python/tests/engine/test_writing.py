# SPDX-License-Identifier: MIT OR Apache-2.0
"""Files that the engine writes, judged by the engines netcdf4 and h5netcdf."""

import io
import os
import stat
import threading

import numpy as np
import pytest
import xarray as xr

from zonda.xarray_engine import ZondaDataStore, _streaming, enable_writing, to_netcdf

enable_writing()
FORMATS = ["NETCDF4", "NETCDF4_CLASSIC", "NETCDF3_64BIT", "NETCDF3_CLASSIC", "NETCDF3_64BIT_DATA"]
ENCODING = {
    "field": {"zlib": True, "complevel": 2, "chunksizes": (4, 10, 30), "_FillValue": np.float32(-9e9)},
    "time": {"units": "hours since 2000-01-01", "dtype": "i4"},
}


def judged(path, expected, **kwargs):
    """What netCDF4-python and, of HDF5, h5netcdf read is what was meant."""
    engines = ["netcdf4"]
    with open(path, "rb") as file:
        if file.read(4) == b"\x89HDF":
            engines.append("h5netcdf")
    for engine in engines:
        with xr.open_dataset(path, engine=engine, **kwargs) as ds:
            xr.testing.assert_equal(ds.load(), expected)


@pytest.mark.parametrize("format", FORMATS)
def test_every_format(data, tmp_path, format):
    path = tmp_path / "data.nc"
    if format != "NETCDF4":
        data = data.assign(count=data["count"].astype("i4"))
        data.attrs["several"] = "one two"
    assert to_netcdf(data, path, format=format, encoding=ENCODING, unlimited_dims="time") is None
    judged(path, data)
    with xr.open_dataset(path, engine="netcdf4") as ds:
        assert ds.encoding["unlimited_dims"] == {"time"}
        assert ds.attrs["title"] == data.attrs["title"] and ds.attrs["number"] == 3.5
        assert ds["field"].attrs["units"] == "K" and ds["field"].attrs["valid"].tolist() == [1, 2]
        assert ds["time"].encoding["units"] == "hours since 2000-01-01"
        if format.startswith("NETCDF4"):
            assert ds["field"].encoding["chunksizes"] == (4, 10, 30) and ds["field"].encoding["complevel"] == 2


@pytest.mark.parametrize("format", ["NETCDF4", "NETCDF3_64BIT"])
def test_dask_arrays_by_threads(data, tmp_path, format):
    path = tmp_path / "data.nc"
    data = data.drop_vars("label").assign(count=data["count"].astype("i4"))
    data.attrs.pop("several")
    to_netcdf(data.chunk(time=5, lat=7), path, format=format)
    judged(path, data)


def _grid():
    dask = pytest.importorskip("dask.array")
    base = dask.arange(60 * 40, chunks=400).reshape(60, 40).rechunk((13, 17))
    # Both variables need `base`; a block that is not the first may come first.
    return xr.Dataset({"a": (("y", "x"), base), "b": (("y", "x"), base.astype("f4") * 0.5)})


def test_processes(tmp_path):
    import dask

    path = tmp_path / "p.nc"
    grid = _grid()
    with dask.config.set(scheduler="processes", num_workers=2):
        to_netcdf(grid, path)
    judged(path, grid.compute())
    with dask.config.set(scheduler="processes", num_workers=2):
        with xr.open_dataset(path, engine="zonda", chunks={"y": 20}) as ds:
            assert int(ds["a"].sum()) == sum(range(2400))


def test_delayed_by_processes(tmp_path):
    import dask

    path = tmp_path / "pd.nc"
    grid = _grid()
    with dask.config.set(scheduler="processes", num_workers=2):
        to_netcdf(grid, path, compute=False).compute()
    judged(path, grid.compute())


def test_cluster(tmp_path):
    distributed = pytest.importorskip("distributed")
    path, delayed, again = (str(tmp_path / name) for name in ("c.nc", "d.nc", "e.nc"))
    grid = _grid()
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=2, dashboard_address=None) as cluster,
        distributed.Client(cluster),
    ):
        to_netcdf(grid, path)
        with xr.open_dataset(path, engine="zonda", chunks={"y": 20}) as ds:
            assert int(ds["a"].sum()) == sum(range(2400))
            to_netcdf(ds, again)
        to_netcdf(grid, delayed, compute=False).compute()
        bad = grid.assign(c=grid["a"].copy(data=grid["a"].data.map_blocks(_fail, dtype=grid["a"].dtype)))
        with pytest.raises(ZeroDivisionError):
            to_netcdf(bad, str(tmp_path / "bad.nc"))
    expected = _grid().compute(scheduler="threads")
    for written in (path, delayed, again):
        judged(written, expected)
    assert sorted(os.listdir(tmp_path)) == ["c.nc", "d.nc", "e.nc"]


def _fail(block):
    raise ZeroDivisionError("a block that cannot be computed")


def test_blocks_are_put_by_several_threads_and_without_a_lock(tmp_path, monkeypatch):
    import dask
    import dask.array as da

    inside, most, guard = 0, 0, threading.Lock()
    gate = threading.Barrier(2, timeout=30)
    plain = ZondaDataStore.write

    def counted(self, target, *args):
        nonlocal inside, most
        with guard:
            inside += 1
            most = max(most, inside)
        if target.name == "a":
            gate.wait()  # passes only when two are in it
        plain(self, target, *args)
        with guard:
            inside -= 1

    monkeypatch.setattr(ZondaDataStore, "write", counted)
    grid = xr.Dataset({"a": (("x",), da.arange(80, chunks=10))})
    with dask.config.set(scheduler="threads", num_workers=2):
        to_netcdf(grid, tmp_path / "t.nc")
    assert most == 2
    judged(tmp_path / "t.nc", grid.compute())


def test_delayed(data, tmp_path):
    path = tmp_path / "delayed.nc"
    writing = to_netcdf(data.chunk(time=5), path, compute=False)
    assert path.exists()
    writing.compute()
    judged(path, data)


def test_to_memory_and_to_file_objects(data):
    for target in (None, io.BytesIO()):
        got = to_netcdf(data, target)
        content = bytes(got) if target is None else target.getvalue()
        with xr.open_dataset(io.BytesIO(content), engine="h5netcdf") as ds:
            xr.testing.assert_equal(ds.load(), data)
    with pytest.raises(NotImplementedError):
        to_netcdf(data, None, compute=False)


def test_to_file_objects_through_xarray(data):
    target = io.BytesIO()
    data.to_netcdf(target, engine="zonda")
    with xr.open_dataset(io.BytesIO(target.getvalue()), engine="h5netcdf") as ds:
        xr.testing.assert_equal(ds.load(), data)
    content = data.to_netcdf(engine="zonda")
    with xr.open_dataset(content, engine="zonda") as ds:
        xr.testing.assert_equal(ds.load(), data)


def test_append_groups(data, tmp_path):
    path = tmp_path / "groups.nc"
    small = xr.Dataset({"v": ("k", np.arange(3))})
    to_netcdf(data, path)
    to_netcdf(small, path, "a", group="/one/two")
    to_netcdf(small.rename(v="w"), path, "a", group="/one/two")
    judged(path, data)
    judged(path, small.assign(w=small["v"]), group="one/two")
    with pytest.raises(OSError):
        to_netcdf(small, tmp_path / "none.nc", "r+")
    assert os.listdir(tmp_path) == ["groups.nc"]


def test_tree(tmp_path):
    tree = xr.DataTree.from_dict(
        {
            "/": xr.Dataset({"a": ("x", [1, 2])}, coords={"x": [5, 6]}, attrs={"of": "root"}),
            "/one": xr.Dataset({"b": ("x", [3.0, 4.0])}),
            "/one/two": xr.Dataset({"c": (("x", "y"), np.ones((2, 3)))}),
        }
    )
    to_netcdf(tree, tmp_path / "tree.nc", encoding={"/one/two": {"c": {"zlib": True}}})
    for engine in ("netcdf4", "h5netcdf"):
        with xr.open_datatree(tmp_path / "tree.nc", engine=engine) as ds:
            xr.testing.assert_identical(ds.load(), tree)
            assert ds["/one/two/c"].encoding.get("zlib") or ds["/one/two/c"].encoding.get("compression")
    tree.to_netcdf(tmp_path / "tree2.nc", engine="zonda")
    with xr.open_datatree(tmp_path / "tree2.nc", engine="netcdf4") as ds:
        xr.testing.assert_identical(ds.load(), tree)
    with pytest.raises(ValueError, match="nowhere"):
        to_netcdf(tree, tmp_path / "t.nc", encoding={"/nowhere": {}})


def test_array(tmp_path):
    array = xr.DataArray(np.arange(3), dims="x", name="x")
    to_netcdf(array, tmp_path / "a.nc")
    with xr.open_dataarray(tmp_path / "a.nc", engine="netcdf4") as got:
        xr.testing.assert_identical(got.load(), array)


def test_through_xarray(data, tmp_path):
    data.to_netcdf(tmp_path / "x.nc", engine="zonda", encoding=ENCODING)
    judged(tmp_path / "x.nc", data)
    parts = [data.isel(time=slice(0, 6)).chunk(time=2), data.isel(time=slice(6, 12)).chunk(time=2)]
    xr.save_mfdataset(parts, [tmp_path / "m0.nc", tmp_path / "m1.nc"], engine="zonda")
    for number, part in enumerate(parts):
        judged(tmp_path / f"m{number}.nc", part.compute())


REGIONS = [{"time": slice(3, 7)}, {"time": "auto"}, "auto", {"time": slice(-9, -5), "lat": "auto"}]


@pytest.mark.parametrize("region", REGIONS, ids=str)
def test_regions(data, tmp_path, region):
    path = tmp_path / "region.nc"
    packed = {"dtype": "i2", "scale_factor": 0.01, "_FillValue": -32767}
    to_netcdf(data, path, encoding={"field": packed, "time": ENCODING["time"]})
    part = (data[["field"]].isel(time=slice(3, 7)) * 0 + 1.25).drop_vars("area")
    part = part.drop_vars([name for name in ("lat", "lon") if region != "auto" and name not in region])
    to_netcdf(part.chunk(time=1), path, "r+", region=region)
    with xr.open_dataset(path, engine="netcdf4") as ds:
        expected = data["field"].copy()
        expected[3:7] = part["field"].values
        np.testing.assert_allclose(ds["field"], expected, atol=0.006)
        assert ds["field"].encoding["dtype"] == np.dtype("i2")
        xr.testing.assert_equal(ds["time"], data["time"])
        xr.testing.assert_equal(ds["area"].load(), data["area"])


def test_region_with_a_step_and_one_that_grows(tmp_path):
    path = tmp_path / "grow.nc"
    ds = xr.Dataset({"v": (("t", "x"), np.zeros((4, 3)))}, coords={"t": np.arange(4)})
    to_netcdf(ds, path, unlimited_dims="t")
    to_netcdf((ds + 1).isel(t=[0, 1]).assign_coords(t=[0, 2]), path, "r+", region={"t": slice(0, 4, 2)})
    to_netcdf((ds + 2).assign_coords(t=np.arange(4, 8)), path, "r+", region={"t": slice(4, 8)})
    with xr.open_dataset(path, engine="netcdf4") as got:
        assert got["v"][:, 0].values.tolist() == [1, 0, 1, 0, 2, 2, 2, 2]
        assert got["t"].values.tolist() == list(range(8))


def test_regions_that_do_not_fit(data, tmp_path):
    path = tmp_path / "region.nc"
    to_netcdf(data, path)
    before = path.read_bytes()
    part = data[["count"]].isel(time=slice(0, 4))
    for region, change, says in [
        ({"time": slice(0, 3)}, part, "4 elements"),
        ({"time": slice(10, 14)}, part, "not unlimited"),
        ({"depth": slice(0, 3)}, part, "depth"),
        ({"time": "auto"}, part.assign_coords(time=part["time"] + np.timedelta64(1, "h")), "time"),
        ({"time": "auto"}, part.isel(time=[0, 2]), "one run"),
        ({"time": slice(0, 4)}, part.rename(count="new"), "new"),
        ({"time": slice(0, 4)}, part.assign(alone=("z", [1])), "alone"),
        ("everywhere", part, "everywhere"),
    ]:
        with pytest.raises(ValueError, match=says):
            to_netcdf(change, path, "r+", region=region)
    with xr.open_dataset(path, engine="netcdf4") as ds:
        xr.testing.assert_equal(ds.load(), data)
    assert len(before) == path.stat().st_size


def test_unknown_encoding_is_listed(data, tmp_path):
    with pytest.raises(ValueError, match=r"unexpected encoding parameters .*'colour'.*'zlib'"):
        to_netcdf(data, tmp_path / "x.nc", encoding={"field": {"colour": 3}})
    with pytest.raises(ValueError, match="compression"):
        to_netcdf(data, tmp_path / "x.nc", encoding={"field": {"compression": "none such"}})
    with pytest.raises(ValueError, match="nothing"):
        to_netcdf(data, tmp_path / "x.nc", encoding={"nothing": {}})
    with pytest.raises(ValueError, match="format"):
        to_netcdf(data, tmp_path / "x.nc", format="NETCDF5")
    with pytest.raises(ValueError, match="mode"):
        to_netcdf(data, tmp_path / "x.nc", "q")
    assert os.listdir(tmp_path) == []


def test_a_write_that_fails_leaves_the_old_file(data, tmp_path):
    import dask.array as da

    path = tmp_path / "old.nc"
    to_netcdf(data, path)
    os.chmod(path, 0o640)
    before = path.read_bytes()
    bad = xr.Dataset({"v": (("x",), da.arange(40, chunks=4).map_blocks(_fail, dtype=int))})
    with pytest.raises(ZeroDivisionError):
        to_netcdf(bad, path)
    assert path.read_bytes() == before and os.listdir(tmp_path) == ["old.nc"]
    with xr.open_dataset(path, engine="zonda", chunks={}) as ds:  # onto the file it is read from
        to_netcdf(ds, path)
    judged(path, data)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    link = tmp_path / "link.nc"
    link.symlink_to(path)
    to_netcdf(data[["count"]], link)
    assert link.is_symlink()
    with xr.open_dataset(path, engine="netcdf4") as ds:
        assert list(ds.data_vars) == ["count"]


def test_lazy_arrays_are_written_in_parts(tmp_path, monkeypatch):
    monkeypatch.setattr(_streaming, "_PART_BYTES", 4000)
    values = np.random.default_rng(0).random((50, 100))
    source = xr.Dataset({"v": (("t", "x"), values), "s": ((), 3)})
    to_netcdf(source, tmp_path / "a.nc", encoding={"v": {"chunksizes": (4, 100)}})
    puts = []
    with xr.open_dataset(tmp_path / "a.nc", engine="zonda", cache=False) as ds:
        to_netcdf(ds, tmp_path / "b.nc", progress=puts.append)
    assert max(puts) <= 4000 and sum(puts) == values.nbytes + 8
    judged(tmp_path / "b.nc", source)


def test_progress(data, tmp_path, capfd):
    pytest.importorskip("tqdm")
    to_netcdf(data.drop_vars("label").chunk(time=3), tmp_path / "x.nc", progress=True)
    assert "x.nc" in capfd.readouterr().err


def test_enum_and_complex(tmp_path):
    kind = np.dtype("u1", metadata={"enum": {"clear": 0, "cloudy": 1}, "enum_name": "cloud_t"})
    ds = xr.Dataset({"c": ("x", np.array([0, 1, 1], "u1"))})
    ds["c"].encoding["dtype"] = kind
    to_netcdf(ds, tmp_path / "e.nc")
    with xr.open_dataset(tmp_path / "e.nc", engine="netcdf4") as got:
        assert got["c"].encoding["dtype"].metadata == kind.metadata
        xr.testing.assert_equal(got.load(), ds)
    ds["c"][0] = 7
    with pytest.raises(ValueError, match="Enum"):
        to_netcdf(ds, tmp_path / "e.nc")
    z = xr.Dataset({"z": ("x", np.array([1 + 2j, 3 - 4j]))})
    with pytest.raises(ValueError, match="auto_complex"):
        to_netcdf(z, tmp_path / "z.nc")
    to_netcdf(z, tmp_path / "z.nc", auto_complex=True)
    for engine in ("netcdf4", "zonda"):
        with xr.open_dataset(tmp_path / "z.nc", engine=engine, auto_complex=True) as got:
            xr.testing.assert_equal(got.load(), z)


def test_strings_and_characters(tmp_path):
    ds = xr.Dataset(
        {
            "u": ("x", np.array(["a", "bcd", "é"])),
            "s": ("x", np.array([b"a", b"bcd", b""])),
            "o": ("x", np.array(["one", None, "three"], object)),
        }
    )
    to_netcdf(ds, tmp_path / "s.nc")
    ds.to_netcdf(tmp_path / "r.nc", engine="netcdf4")
    with (
        xr.open_dataset(tmp_path / "s.nc", engine="netcdf4") as ours,
        xr.open_dataset(tmp_path / "r.nc", engine="netcdf4") as theirs,
    ):
        xr.testing.assert_identical(ours.load(), theirs.load())
    to_netcdf(ds[["s"]], tmp_path / "s3.nc", format="NETCDF3_CLASSIC")
    with xr.open_dataset(tmp_path / "s3.nc", engine="netcdf4") as ours:
        assert ours["s"].values.tolist() == [b"a", b"bcd", b""]

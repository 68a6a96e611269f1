# SPDX-License-Identifier: MIT OR Apache-2.0
"""Files behind URLs, in all the ways that Python opens them."""

from __future__ import annotations

import pickle
import socket
import threading

import numpy as np
import pytest
import zonda
import zonda.netcdf4

SECRET = "s3cret"


def test_values_are_those_of_the_path(server, each_format, served):
    url = served(format=each_format)
    for name in (url, f"{url}#mode=bytes", f"[bytes]{url}"):
        with zonda.open(name) as ds, zonda.open(server.folder / "a.nc") as local:
            assert ds.format == local.format
            assert ds.attrs["title"] == "on a server"
            for one in ("v", "plain"):
                np.testing.assert_array_equal(ds[one][:], local[one][:])
            assert ds["v"][7, 3] == 703
            assert not ds.is_writable


def test_chunks_are_read_and_names_have_no_secrets(server, served):
    url = served(chunked=True)
    server.user = ("me", SECRET)
    whole = url.replace("http://", f"http://me:{SECRET}@") + f"?signature={SECRET}#mode=bytes"
    with zonda.open(whole) as ds:
        np.testing.assert_array_equal(ds["v"][:], np.arange(4000.0).reshape(40, 100))
        assert ds.file_path == url
        assert SECRET not in repr(ds)
        again = pickle.loads(pickle.dumps(ds))
        assert again["v"][1, 1] == 101
        again.close()


@pytest.mark.parametrize("package", ["zonda", "netcdf4"])
def test_errors_have_their_kinds_and_no_secrets(server, package, served):
    url = served()
    opened = zonda.open if package == "zonda" else zonda.netcdf4.Dataset
    secret = f"?signature={SECRET}"

    def fails(name, kind, **keys):
        with pytest.raises(kind) as caught:
            opened(name, **keys)
        text = "".join(f"{error}" for error in (caught.value, caught.value.__cause__))
        assert SECRET not in text, text
        return caught.value

    missing = fails(f"{server.url}/none.nc{secret}", FileNotFoundError)
    assert missing.errno == 2
    if package == "zonda":
        assert missing.path == f"{server.url}/none.nc" and "404" in str(missing)
    (server.folder / "text.nc").write_text("no netCDF at all\n" * 50)
    assert not isinstance(fails(f"{server.url}/text.nc{secret}", OSError), FileNotFoundError)
    server.user = ("me", "other")
    # netCDF4-python has the number of netCDF, which no exception of the system belongs to.
    fails(url.replace("http://", f"http://me:{SECRET}@"), PermissionError if package == "zonda" else OSError)
    server.user = None
    fails(url + secret, OSError, mode="a")
    fails(url + secret, OSError, mode="w")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        fails(f"http://127.0.0.1:{free.getsockname()[1]}/a.nc{secret}", OSError)


def test_a_get_that_fails_gives_no_values_and_a_later_one_does(server):
    with zonda.create(server.folder / "big.nc", format="CDF-5") as ds:
        ds.create_variable("v", "f8", "x", sizes={"x": 1_000_000})[:] = np.arange(1e6)
    with zonda.open(f"{server.url}/big.nc") as ds:
        server.broken = 403
        with pytest.raises(OSError) as caught:
            ds["v"][900_000:]
        assert f"{server.url}/big.nc" in str(caught.value)
        server.broken = None
        assert ds["v"][900_000] == 900_000


def test_options_are_of_one_opening(server, served):
    url = served()
    server.user = ("me", SECRET)
    right = {"username": "me", "password": SECRET}
    with zonda.open(url, storage_options=right) as ds:
        assert ds["v"][1, 2] == 102
        with pickle.loads(pickle.dumps(ds)) as again:
            assert again["v"][1, 2] == 102
        with pytest.raises(PermissionError):
            zonda.open(url)
        with pytest.raises(PermissionError):
            zonda.open(url, storage_options={**right, "password": "wrong"})
        assert ds["v"][2, 2] == 202
    with zonda.open(url, storage_options={"auth": ("me", SECRET)}) as ds:
        assert ds["v"][1, 2] == 102
    with zonda.open(url, storage_options={"client_kwargs": {"auth": ("me", SECRET)}}) as ds:
        assert ds["v"][1, 2] == 102


def test_options_of_threads_do_not_mix(server, served):
    url = served()
    server.user = ("me", SECRET)
    found = []

    def one(password):
        try:
            with zonda.open(url, storage_options={"username": "me", "password": password}) as ds:
                found.append((password, ds["v"][3, 3]))
        except PermissionError:
            found.append((password, None))

    threads = [threading.Thread(target=one, args=(word,)) for word in [SECRET, "wrong"] * 8]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found, key=str) == sorted([(SECRET, 303)] * 8 + [("wrong", None)] * 8, key=str)


def test_headers(server, served):
    url = served()
    server.header = ("Authorization", f"Bearer {SECRET}")
    with pytest.raises(PermissionError):
        zonda.open(url)
    for options in ({"headers": {"Authorization": f"Bearer {SECRET}"}}, {"client_kwargs": {"headers": {"authorization": f"Bearer {SECRET}"}}}):
        with zonda.open(url, storage_options=options) as ds:
            assert ds["v"][1, 2] == 102


def test_s3_by_options(server, make):
    (server.folder / "bucket" / "deep").mkdir(parents=True)
    make(server.folder / "bucket" / "deep" / "a.nc")
    server.access_key = "AKID"
    options = {"key": "AKID", "secret": SECRET, "endpoint_url": server.url}
    with zonda.open("s3://bucket/deep/a.nc", storage_options=options) as ds:
        assert ds["v"][1, 2] == 102
    nested = {"key": "AKID", "secret": SECRET, "client_kwargs": {"endpoint_url": server.url, "region_name": "here-1"}}
    with zonda.open("s3://bucket/deep/a.nc", storage_options=nested) as ds:
        assert ds["v"][1, 2] == 102
    with pytest.raises(PermissionError):
        zonda.open("s3://bucket/deep/a.nc", storage_options={"anon": True, "endpoint_url": server.url})
    with pytest.raises(PermissionError):
        zonda.open("s3://bucket/deep/a.nc", storage_options={**options, "key": "OTHER"})


def test_copy_to_s3(server, tmp_path, monkeypatch, make):
    make(tmp_path / "a.nc")
    server.access_key = "AKID"
    for name, value in (("AWS_ACCESS_KEY_ID", "AKID"), ("AWS_SECRET_ACCESS_KEY", SECRET), ("AWS_ENDPOINT_URL", server.url)):
        monkeypatch.setenv(name, value)
    zonda.copy(tmp_path / "a.nc", "s3://bucket/new/a.nc", format="CDF-5")
    with zonda.open(server.folder / "bucket" / "new" / "a.nc") as ds:
        assert ds.format == "CDF-5" and ds["v"][1, 2] == 102
    with pytest.raises(FileExistsError):
        zonda.copy(tmp_path / "a.nc", "s3://bucket/new/a.nc")
    with pytest.raises(OSError, match="only be read"):
        zonda.copy(tmp_path / "a.nc", f"{server.url}/bucket/b.nc")
    assert sorted(path.name for path in server.folder.rglob("*.nc")) == ["a.nc"]


def test_unknown_options_are_named_and_not_their_values():
    url = "http://127.0.0.1:1/a.nc"
    with pytest.raises(ValueError, match="block_size.*client_kwargs.loop") as caught:
        zonda.open(url, storage_options={"block_size": SECRET, "client_kwargs": {"loop": SECRET}})
    assert SECRET not in str(caught.value)
    for options in ({"key": b"bytes"}, {"headers": SECRET}, {"auth": SECRET}, {"client_kwargs": SECRET}, {"verify": 3}):
        with pytest.raises(TypeError) as caught:
            zonda.open(url, storage_options=options)
        assert SECRET not in str(caught.value)
    with pytest.raises(ValueError, match="for URLs"):
        zonda.open("a.nc", storage_options={"key": "x"})


def test_netcdf4_reads_urls(server, each_format, served):
    url = served(format=each_format)
    with zonda.netcdf4.Dataset(f"{url}#mode=bytes") as ds:
        assert ds.variables["v"][5, 5] == 505
        assert ds.filepath() == url
    with zonda.netcdf4.Dataset(url, diskless=True) as ds:
        assert ds.variables["plain"][77] == 77


def test_xarray(server, served):
    xr = pytest.importorskip("xarray")
    import zonda.xarray_engine

    url = served(chunked=True)
    other = served("b.nc", chunked=True)
    engine = zonda.xarray_engine.ZondaBackendEntrypoint
    with xr.open_dataset(url, engine=engine) as ds, xr.open_dataset(server.folder / "a.nc", engine=engine) as local:
        xr.testing.assert_identical(ds.load(), local.load())
    assert engine().guess_can_open(url) and engine().guess_can_open(f"{server.url}/x#mode=bytes")
    for name, may_be in {"/dods": True, "/x?y[0:1]": True, "/a.zarr": False, "/a#mode=zarr": False}.items():
        assert engine().guess_can_open(f"{server.url}{name}") == may_be
    assert engine().guess_can_open("dap4://h/a") and engine().guess_can_open("[dap4]http://h/a")
    assert engine().guess_can_open("s3://b/a.nc") and not engine().guess_can_open("s3://b/a")
    assert not engine().guess_can_open("gs://a/b.nc")
    with zonda.open_mfdataset([url, other], combine="nested", concat_dim="time") as many:
        assert many.sizes["time"] == 80
    with xr.open_datatree(url, engine=engine) as tree:
        assert tree["v"].shape == (40, 100)
    server.user = ("me", SECRET)
    options = {"username": "me", "password": SECRET}
    with xr.open_dataset(f"{url}?x={SECRET}", engine=engine, storage_options=options) as ds:
        assert float(ds.v[1, 2]) == 102
        assert ds.encoding["source"] == url
        assert float(pickle.loads(pickle.dumps(ds)).v[3, 2]) == 302
    with pytest.raises(PermissionError):
        xr.open_dataset(url, engine=engine)
    with pytest.raises(ValueError, match="copy"):
        zonda.to_netcdf(xr.Dataset(), "s3://bucket/x.nc")

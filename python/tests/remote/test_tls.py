# SPDX-License-Identifier: MIT OR Apache-2.0
"""Files behind https://, and servers that are not trusted."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import zonda
import zonda.netcdf4


@pytest.fixture
def trusted(certificates, monkeypatch):
    """The authority of the server is trusted."""
    monkeypatch.setenv("SSL_CERT_FILE", str(certificates / "ca.pem"))


@pytest.fixture
def url(secure, make):
    make(secure.folder / "a.nc", chunked=True)
    return f"{secure.url}/a.nc"


def test_values_are_those_of_the_path(secure, trusted, each_format, make):
    make(secure.folder / "a.nc", each_format)
    with zonda.open(f"{secure.url}/a.nc") as ds, zonda.open(secure.folder / "a.nc") as local:
        assert ds.format == local.format and ds.attrs["title"] == "on a server"
        for one in ("v", "plain"):
            np.testing.assert_array_equal(ds[one][:], local[one][:])
        again = pickle.loads(pickle.dumps(ds))
        assert again["v"][7, 3] == 703
        again.close()
    # It did come from there.
    assert any(asked for _, _, asked in secure.requests)


def test_netcdf4(secure, trusted, url):
    with zonda.netcdf4.Dataset(f"{url}#mode=bytes") as ds:
        assert ds.filepath() == url
        np.testing.assert_array_equal(ds.variables["v"][:], np.arange(4000).reshape(40, 100))


def test_xarray(secure, trusted, url):
    xr = pytest.importorskip("xarray")
    import zonda.xarray_engine

    engine = zonda.xarray_engine.ZondaBackendEntrypoint
    with xr.open_dataset(url, engine=engine) as ds, xr.open_dataset(secure.folder / "a.nc", engine=engine) as local:
        xr.testing.assert_identical(ds.load(), local.load())
        assert ds.v.attrs["units"] == "K"


def opened_by_xarray(url):
    xr = pytest.importorskip("xarray")
    import zonda.xarray_engine

    return xr.open_dataset(url, engine=zonda.xarray_engine.ZondaBackendEntrypoint)


OPENED = {"zonda": zonda.open, "netcdf4": zonda.netcdf4.Dataset, "xarray": opened_by_xarray}


def refused(how, url):
    """What the error says."""
    with pytest.raises(OSError) as caught:
        OPENED[how](url)
    assert not isinstance(caught.value, (FileNotFoundError, PermissionError)), caught.value
    return str(caught.value)


@pytest.mark.parametrize("how", list(OPENED))
def test_a_server_that_nobody_vouches_for(secure, url, certificates, monkeypatch, how):
    monkeypatch.setenv("SSL_CERT_FILE", str(certificates / "other-ca.pem"))
    said = refused(how, url)
    assert url in said and "the certificate of the server is not trusted" in said, said
    assert not secure.requests


@pytest.mark.parametrize("how", list(OPENED))
def test_a_server_of_another_name(misnamed, trusted, make, how):
    make(misnamed.folder / "a.nc")
    said = refused(how, f"{misnamed.url}/a.nc")
    assert f"{misnamed.url}/a.nc" in said and "127.0.0.1 is asked for" in said and "nobody.invalid" in said, said
    assert not misnamed.requests


def test_whom_options_trust(secure, url, certificates):
    with zonda.open(url, storage_options={"verify": str(certificates / "ca.pem")}) as ds:
        assert ds["v"][1, 2] == 102
    with pytest.raises(OSError, match="not trusted"):
        zonda.open(url, storage_options={"verify": str(certificates / "other-ca.pem")})
    # Options are of one opening.
    with pytest.raises(OSError, match="ertificate"):
        zonda.open(url)


def test_a_file_of_certificates_that_is_not_there(secure, url, tmp_path, monkeypatch):
    missing = tmp_path / "none.pem"
    monkeypatch.setenv("SSL_CERT_FILE", str(missing))
    said = refused("zonda", url)
    assert url in said and str(missing) in said, said


def test_http_where_https_is_asked_for(server, trusted, make):
    make(server.folder / "a.nc")
    url = server.url.replace("http://", "https://") + "/a.nc"
    said = refused("zonda", url)
    assert url in said and "http:// instead of https://" in said, said

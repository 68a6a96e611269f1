# SPDX-License-Identifier: MIT OR Apache-2.0
"""Servers of ranges by HTTP and HTTPS, and files behind them."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path

import numpy as np
import pytest

import zonda

_RIG = Path(__file__).resolve().parents[3] / "tests" / "rig"


def _of_rig(name):
    spec = importlib.util.spec_from_file_location(name, _RIG / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


_RANGES, _CERTIFICATES = _of_rig("ranges"), _of_rig("certificates")

FORMATS = ["NETCDF4", "NETCDF4_CLASSIC", "CDF-1", "CDF-2", "CDF-5"]


@pytest.fixture(autouse=True)
def alone(monkeypatch, tmp_path):
    """Nothing of the user's own settings counts."""
    for name in (
        "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE", "AWS_REGION", "AWS_DEFAULT_REGION",
        "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY",
        "ALL_PROXY", "NETRC", "ZONDA_REMOTE_CACHE", "SSL_CERT_FILE", "SSL_CERT_DIR", "CURL_CA_BUNDLE",
    ):  # fmt: skip
        monkeypatch.delenv(name, raising=False)
    empty = tmp_path / "home"
    empty.mkdir()
    monkeypatch.setenv("HOME", str(empty))


@pytest.fixture
def server(tmp_path):
    folder = tmp_path / "served"
    folder.mkdir()
    with _RANGES.RangeServer(folder) as server:
        yield server


@pytest.fixture(scope="session")
def certificates(tmp_path_factory):
    """A folder with `ca.pem`, `server.pem` (127.0.0.1), `misnamed.pem` and `other-ca.pem`."""
    if shutil.which("openssl") is None:
        pytest.skip("no openssl")
    folder = tmp_path_factory.mktemp("certificates")
    _CERTIFICATES.make(folder)
    return folder


@pytest.fixture
def secure(tmp_path, certificates):
    """The same by HTTPS, with a certificate of an authority of its own."""
    with _secure(tmp_path / "secure", certificates / "server.pem") as server:
        yield server


@pytest.fixture
def misnamed(tmp_path, certificates):
    """The same, with a certificate for another name."""
    with _secure(tmp_path / "misnamed", certificates / "misnamed.pem") as server:
        yield server


def _secure(folder, certificate):
    folder.mkdir()
    return _RANGES.RangeServer(folder, certificate)


@pytest.fixture(params=FORMATS)
def each_format(request):
    return request.param


@pytest.fixture
def make():
    """Makes a file with a record variable, a plain one and, in netCDF-4, chunks."""
    return _make


@pytest.fixture
def served(server):
    """Makes such a file behind the server, and gives its URL."""

    def serve(name="a.nc", **how):
        _make(server.folder / name, **how)
        return f"{server.url}/{name}"

    return serve


def _make(path, format="NETCDF4", chunked=False):
    with zonda.create(path, format=format) as ds:
        ds.attrs["title"] = "on a server"
        ds.create_dimension("time", None)
        kind = {"chunks": (4, 25), "compression": "zlib"} if chunked else {}
        v = ds.create_variable("v", "f4", ("time", "x"), sizes={"x": 100}, attrs={"units": "K"}, **kind)
        v[:40] = np.arange(4000).reshape(40, 100)
        ds.create_variable("plain", "i4", "y", sizes={"y": 5000})[:] = np.arange(5000)
    return path

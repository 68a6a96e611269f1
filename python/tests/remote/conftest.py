# SPDX-License-Identifier: MIT OR Apache-2.0
"""A server of ranges, and files behind it."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

_PLACE = Path(__file__).resolve().parents[3] / "tests" / "rig" / "ranges.py"
_SPEC = importlib.util.spec_from_file_location("ranges", _PLACE)
_RANGES = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(_RANGES)

FORMATS = ["NETCDF4", "NETCDF4_CLASSIC", "CDF-1", "CDF-2", "CDF-5"]


@pytest.fixture(autouse=True)
def alone(monkeypatch, tmp_path):
    """Nothing of the user's own settings counts."""
    for name in (
        "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE", "AWS_REGION", "AWS_DEFAULT_REGION",
        "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY",
        "ALL_PROXY", "NETRC", "ZONDA_REMOTE_CACHE",
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


@pytest.fixture(params=FORMATS)
def each_format(request):
    return request.param

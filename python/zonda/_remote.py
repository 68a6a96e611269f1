# SPDX-License-Identifier: MIT OR Apache-2.0
"""Files on servers: URLs, and what the ``storage_options`` of fsspec mean for them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any, Union

from . import _zonda

__all__ = ["is_url", "settings", "shown"]

Settings = list[tuple[str, str]]

_S3 = {
    "key": "aws.access_key_id",
    "secret": "aws.secret_access_key",
    "token": "aws.session_token",
    "profile": "aws.profile",
    "endpoint_url": "aws.endpoint",
    "region": "aws.region",
    "region_name": "aws.region",
    "aws_access_key_id": "aws.access_key_id",
    "aws_secret_access_key": "aws.secret_access_key",
    "aws_session_token": "aws.session_token",
}
_HTTP = {
    "username": "http.credentials.user",
    "user": "http.credentials.user",
    "password": "http.credentials.password",
    "proxy": "http.proxy.server",
    "timeout": "http.timeout",
    "cookies_file": "http.cookiejar",
}


def is_url(source: object) -> bool:
    """Whether it is a URL that the engine itself reads: ``http``, ``https``, ``s3``, ``dods``, ``dap4``."""
    return isinstance(source, (str, bytes, os.PathLike)) and bool(_zonda.is_url(os.fsencode(source)))


def shown(source: Union[str, bytes, os.PathLike[str]]) -> str:
    """A path or a URL as messages may have it: without user, password, query and settings."""
    return str(_zonda.shown_name(os.fsencode(source)))


def settings(options: Mapping[str, Any] | None) -> Settings:
    """Settings of the engine for keys of fsspec's file systems for HTTP and S3.

    Parameters
    ----------
    options
        ``key``, ``secret``, ``token``, ``anon``, ``profile``, ``endpoint_url``, ``region`` (s3fs); ``username``, ``password``,
        ``auth``, ``headers``, ``proxy``, ``timeout`` (HTTP); ``verify``, ``ssl``, ``cert``; ``client_kwargs`` with any of them.
        Keys with a dot are those of the engine, such as ``"http.ssl.cainfo"``.

    Raises
    ------
    ValueError
        For keys that mean nothing here, by name.
    TypeError
        For values that are none. Values are not repeated: they may be secrets.
    """
    found: Settings = []
    unknown: list[str] = []
    _take(options or {}, "", found, unknown)
    if unknown:
        known = ", ".join(sorted({*_S3, *_HTTP, "anon", "auth", "headers", "verify", "ssl", "cert", "client_kwargs"}))
        raise ValueError(f"storage_options: {', '.join(unknown)}: not known for files on servers; known are {known}")
    return found


def _take(options: Mapping[str, Any], above: str, found: Settings, unknown: list[str]) -> None:
    if not isinstance(options, Mapping):
        raise TypeError(f"{above.rstrip('.') or 'storage_options'} is a mapping, not {type(options).__name__}")
    for key, value in options.items():
        name = f"{above}{key}"
        if value is None:
            continue
        if key in _S3:
            found.append((_S3[key], _text(name, value)))
        elif key in _HTTP:
            found.append((_HTTP[key], _text(name, value)))
        elif key == "anon":
            if value:
                found.append(("aws.anonymous", "1"))
        elif key == "auth":
            user, password = _pair(name, value)
            found += [("http.credentials.user", user), ("http.credentials.password", password)]
        elif key == "headers":
            found += _headers(name, value)
        elif key in ("verify", "ssl"):
            found += _verify(name, value)
        elif key == "cert":
            certificate, private = (value, None) if isinstance(value, (str, os.PathLike)) else _pair(name, value)
            found.append(("http.ssl.certificate", os.fspath(certificate)))
            if private is not None:
                found.append(("http.ssl.key", private))
        elif key == "client_kwargs" and not above:
            _take(value, "client_kwargs.", found, unknown)
        elif isinstance(key, str) and key.lower().startswith(("http.", "aws.", "zonda.remote.")) and not above:
            found.append((key.lower(), _text(name, value)))
        else:
            unknown.append(name)


def _text(name: str, value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise TypeError(f"storage_options: {name} is text, not {type(value).__name__}")
    return str(value)


def _pair(name: str, value: Any) -> tuple[str, str]:
    # aiohttp.BasicAuth is a tuple of login, password and encoding.
    items: Iterable[Any] = value if isinstance(value, (tuple, list)) else ()
    pair = [str(item) for item in items][:2]
    if len(pair) != 2:
        raise TypeError(f"storage_options: {name} is a pair of texts, not {type(value).__name__}")
    return pair[0], pair[1]


def _headers(name: str, value: Any) -> Settings:
    if not isinstance(value, Mapping):
        raise TypeError(f"storage_options: {name} is a mapping, not {type(value).__name__}")
    return [(f"http.header.{str(header).lower()}", _text(f"{name}.{header}", text)) for header, text in value.items()]


def _verify(name: str, value: Any) -> Settings:
    if isinstance(value, bool):
        return [] if value else [("http.ssl.validate", "0")]
    if isinstance(value, (str, os.PathLike)):
        return [("http.ssl.cainfo", os.fspath(value))]
    raise TypeError(f"storage_options: {name} is a bool or a path, not {type(value).__name__}")

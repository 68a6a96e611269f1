"""Encoding keys of a variable, and what they ask of the file.

The keys are those of xarray's netCDF4 engine. Meanings: the documentation of xarray (``Dataset.to_netcdf``)
and of netCDF4-python (``Dataset.createVariable``).
"""

from __future__ import annotations

from typing import Any, Iterable

from xarray import Variable

from zonda import _zonda

__all__ = ["apply", "extract"]

_DROPPED = frozenset({"original_shape", "preferred_chunks", "source", "unlimited_dims"})
_FLAGS = ("zlib", "szip", "bzip2", "blosc", "zstd")
VALID = frozenset(
    {
        "_FillValue",
        "blosc",
        "blosc_shuffle",
        "bzip2",
        "chunksizes",
        "complevel",
        "compression",
        "contiguous",
        "dtype",
        "endian",
        "fletcher32",
        "least_significant_digit",
        "quantize_mode",
        "shuffle",
        "significant_digits",
        "szip",
        "szip_coding",
        "szip_pixels_per_block",
        "zlib",
        "zstd",
    }
)
_BLOSC_IDS = {"blosc_lz": 0, "blosc_lz4": 1, "blosc_lz4hc": 2, "blosc_zlib": 4, "blosc_zstd": 5}
_BLOSC_FILTER = 32001
_SZIP_CODING = {"ec": 4, "nn": 32}  # option masks of the filter


def extract(
    variable: Variable, *, check: bool = False, unlimited_dims: Iterable[Any] | None = None
) -> dict[str, Any]:
    """The keys that count for the file.

    Parameters
    ----------
    variable : xarray.Variable
        With its encoding; ``dtype`` and ``_FillValue`` are xarray's own affair and are passed over.
    check : bool
        The encoding was given by the caller: an unknown key is an error. Otherwise it is one that was read
        from some file, and what does not fit is dropped.

    Raises
    ------
    ValueError
        With ``check``, for keys that are unknown; it lists them.
    """
    encoding = {key: value for key, value in variable.encoding.items() if value is not None}
    unlimited = set(unlimited_dims or ())
    if not check:
        chunks = encoding.get("chunksizes")
        if chunks is not None:
            too_big = any(
                c > n and dim not in unlimited
                for c, n, dim in zip(chunks, variable.shape, variable.dims, strict=False)
            )
            changed = "original_shape" in encoding and tuple(encoding["original_shape"]) != variable.shape
            if too_big or changed or len(chunks) != variable.ndim:
                del encoding["chunksizes"]
        if unlimited.intersection(variable.dims):
            encoding.pop("contiguous", None)
    if check:
        unknown = [key for key in encoding if key not in VALID and key not in _DROPPED]
        if unknown:
            raise ValueError(
                f"unexpected encoding parameters for 'zonda' backend: {unknown!r}. Valid encodings are: {set(VALID)!r}"
            )
    encoding = {key: value for key, value in encoding.items() if key in VALID}

    # What `filters` of a variable tells (zlib=True, szip={...}) becomes one `compression`.
    compression = None
    for flag in _FLAGS:
        value = encoding.pop(flag, False)
        if not value:
            continue
        compression = flag
        if flag == "szip" and isinstance(value, dict):
            encoding.setdefault("szip_coding", value["coding"])
            encoding.setdefault("szip_pixels_per_block", value["pixels_per_block"])
        if flag == "blosc":
            compression = "blosc_lz"
            if isinstance(value, dict):
                compression = value["compressor"]
                encoding.setdefault("blosc_shuffle", value["shuffle"])
    if compression is not None:
        encoding.setdefault("compression", compression)
    return encoding


def apply(file: _zonda.File, group: int, var: int, variable: Variable, encoding: dict[str, Any], size: int) -> None:
    """Define chunks, filters, byte order and quantisation of a variable of a netCDF-4 file.

    Parameters
    ----------
    encoding : dict
        What `extract` gave.
    size : int
        Bytes of one value.

    Raises
    ------
    ValueError
        For a compression that there is not.
    NetCDFError
        For what the format does not allow.
    """
    endian = encoding.get("endian")
    if endian not in (None, "native"):
        file.def_var_endian(group, var, endian)
    if not variable.dims:
        return  # one value has neither chunks nor filters
    compression = encoding.get("compression")
    level = encoding.get("complevel", 4)
    if compression in ("zlib", "gzip") and level == 0:
        compression = None
    filtered = compression is not None or encoding.get("fletcher32", False)
    chunks = encoding.get("chunksizes")
    if encoding.get("contiguous") and not filtered:
        file.def_var_chunking(group, var, None)
    elif chunks is not None:
        file.def_var_chunking(group, var, tuple(int(n) for n in chunks))
    if compression is not None:
        _compress(file, group, var, compression, level, encoding, size)
    if encoding.get("fletcher32"):
        file.def_var_fletcher32(group, var, True)
    digits = encoding.get("significant_digits")
    if digits:
        file.def_var_quantize(group, var, encoding.get("quantize_mode", "BitGroom"), int(digits))


def _compress(
    file: _zonda.File, group: int, var: int, name: str, level: int, encoding: dict[str, Any], size: int
) -> None:
    if name in ("zlib", "gzip"):
        file.def_var_deflate(group, var, int(level), bool(encoding.get("shuffle", True)))
        return
    if name in ("zstd", "bzip2"):
        # Unlike netCDF4-python, which passes it over, a shuffle that is asked for is done.
        if encoding.get("shuffle"):
            file.def_var_deflate(group, var, None, True)
        file.def_var_filter(group, var, name, [int(level) & 0xFFFFFFFF])
    elif name == "szip":
        coding = encoding.get("szip_coding", "nn")
        if coding not in _SZIP_CODING:
            raise ValueError(f"unknown szip_coding {coding!r}; codings are: {sorted(_SZIP_CODING)}")
        pixels = int(encoding.get("szip_pixels_per_block", 8))
        file.def_var_filter(group, var, "szip", [_SZIP_CODING[coding], pixels])
    elif name in _BLOSC_IDS:
        shuffle = int(encoding.get("blosc_shuffle", 1))
        params = [0, 0, size, 0, int(level), shuffle, _BLOSC_IDS[name]]
        file.def_var_filter(group, var, _BLOSC_FILTER, params)
    else:
        known = ["zlib", "szip", "zstd", "bzip2", *_BLOSC_IDS]
        raise ValueError(f"unknown compression {name!r}; compressions are: {known}")

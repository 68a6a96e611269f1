# SPDX-License-Identifier: MIT OR Apache-2.0
"""What a variable tells of its storage: filters, chunks, quantization, byte order, chunk cache."""

from __future__ import annotations

from typing import Any

from ._handle import Handle
from ._tables import (
    BLOSC_NAMES,
    FILTER_BLOSC,
    FILTER_BZIP2,
    FILTER_DEFLATE,
    FILTER_FLETCHER32,
    FILTER_SHUFFLE,
    FILTER_SZIP,
    FILTER_ZSTD,
)


class Described:
    """The methods of Variable about its storage."""

    __slots__ = ()

    _handle: Handle
    _grpid: int
    _varid: int
    ndim: int

    def _info(self) -> dict[str, Any]:
        return self._handle.file.var_info(self._grpid, self._varid)

    def filters(self) -> dict[str, Any] | None:
        """The filters of the variable, by netCDF4-python's names; None for formats without."""
        if self._handle.netcdf3:
            return None
        found: dict[str, Any] = {
            "zlib": False, "szip": False, "zstd": False, "bzip2": False, "blosc": False,
            "shuffle": False, "complevel": 0, "fletcher32": False,
        }  # fmt: skip
        for number, _, params in self._info()["filters"]:
            first = params[0] if params else 0
            if number == FILTER_DEFLATE:
                found["zlib"], found["complevel"] = True, first
            elif number == FILTER_ZSTD:
                # Levels below zero are stored as what C makes of them.
                found["zstd"], found["complevel"] = True, first - (1 << 32) if first >> 31 else first
            elif number == FILTER_BZIP2:
                found["bzip2"], found["complevel"] = True, first
            elif number == FILTER_BLOSC and len(params) >= 7:
                codec = BLOSC_NAMES.get(params[6], str(params[6]))
                found["blosc"], found["complevel"] = {"compressor": codec, "shuffle": params[5]}, params[4]
            elif number == FILTER_SZIP and len(params) >= 2:
                coding = "ec" if first & 4 else "nn"
                found["szip"] = {"coding": coding, "pixels_per_block": params[1]}
            elif number == FILTER_SHUFFLE:
                found["shuffle"] = True
            elif number == FILTER_FLETCHER32:
                found["fletcher32"] = True
        return found

    def quantization(self) -> tuple[int, str] | None:
        """Significant digits (bits for BitRound) and algorithm, None if values are kept exactly."""
        if self._handle.netcdf3:
            return None
        quantize = self._info()["quantize"]
        if quantize is None:
            return None
        mode, digits = quantize
        names = {1: "BitGroom", 2: "GranularBitRound", 3: "BitRound"}
        return int(digits), str(names.get(mode, mode))

    def endian(self) -> str:
        """Byte order in the file: `little`, `big` or `native`."""
        return "native" if self._handle.netcdf3 else str(self._info()["endian"])

    def chunking(self) -> Any:
        """The lengths of a chunk, `"contiguous"` if there are none, None for formats without."""
        if self._handle.netcdf3:
            return None
        chunks = self._info()["chunks"]
        return "contiguous" if chunks is None else list(chunks)[: self.ndim]

    def get_var_chunk_cache(self) -> tuple[int, int, float]:
        """Size in bytes, number of slots and preemption of the variable's chunk cache."""
        size, slots, preemption = self._info()["chunk_cache"]
        return int(size), int(slots), float(preemption)

    def set_var_chunk_cache(self, size: Any = None, nelems: Any = None, preemption: Any = None) -> None:
        """Sets the variable's chunk cache; what is None stays."""
        now = self.get_var_chunk_cache()
        self._handle.file.set_var_chunk_cache(
            self._grpid,
            self._varid,
            now[0] if size is None else int(size),
            now[1] if nelems is None else int(nelems),
            now[2] if preemption is None else float(preemption),
        )

"""The engine as Python sees it: what the Rust crate `zonda` does, call by call, and no policy.

Ids are those of netCDF: groups are numbers of the file (0 is the root), variables and dimensions and types
as in the C library: a variable by its number within its group, dimensions and types by numbers of the file;
variable -1 stands for the group itself where attributes are meant (NC_GLOBAL). Types 1..12 are NC_BYTE ..
NC_STRING, user types have ids from 32 on as in the C library.

Every call that touches the file gives up the GIL meanwhile; no call takes a lock that two files share; all
methods may be called from several threads.
"""
from typing import Any, Callable, Literal, final

import numpy as np

from .errors import NetCDFError as NetCDFError

Format = Literal["CDF-1", "CDF-2", "CDF-5", "NETCDF4", "NETCDF4_CLASSIC", "npy"]


# Description of a group in one call (plain tuples: fast to make, nothing lazy).
#   dims   [(dimid, name, length, is_unlimited)]      those defined in this group
#   vars   [(varid, name, typeid, (dimid, ...), (length, ...))]
#   types  [typeid]   groups [groupid]
#   see `File.type_info`, `File.atts`, `File.var_info`
GroupInfo = tuple[str, str, int | None, list[int], list[tuple[Any, ...]], list[tuple[Any, ...]], list[int]]  # name, path, parent, groups, dims, vars, types

# The same with all that `xarray.open_dataset` shows of it. Tuples and what they hold are shared between variables that
# are alike; dicts and lists are not.
#   vars   [(varid, name, typeid, (dimid, ...), (length, ...), (dimension, ...), storage, chunks | None,
#            ((filter id, name | None, (parameter, ...)), ...), endian, {attribute: value}, rules)]
#          of a variable that is damaged `storage` is the NetCDFError
#   atts   {attribute: value} of the group
#          `rules` are those of xarray for numbers with a mask or a scale: (dtype of values, fill value | None,
#          scale | None, offset | None), or () where xarray has to decode; None for all other variables
#   faults [(varid, attribute | None, NetCDFError)]   attributes that cannot be read (None: all of it); -1: of the group
# Values of attributes are as netCDF4-python gives them: text is `str` without nulls (`_FillValue` keeps them; what is no
# UTF-8 is replaced), one number a NumPy scalar, several an array, one string a `str`, several a list.
Contents = tuple[str, str, int | None, list[int], list[tuple[Any, ...]], list[tuple[Any, ...]], list[int], dict[str, Any], list[tuple[int, str | None, NetCDFError]]]

@final
class File:
    # ---- open, create, end -------------------------------------------------------------------------
    @staticmethod
    def open(path: str | bytes, *, write: bool = False, share: bool = False, io: str | None = None,
             in_memory: bool = False, persist: bool = False, write_behind: str | None = None,
             remote: list[tuple[str, str]] | None = None) -> File:
        """`remote`: settings for a file on a server, for this opening alone."""
    @staticmethod
    def open_bytes(data: bytes | bytearray | memoryview, *, write: bool = False) -> File:
        """A file that is in memory (the buffer is kept or copied once; never changed)."""
    @staticmethod
    def open_object(file: Any) -> File:
        """Any Python object with `read(n)`, `seek(offset, whence)` (fsspec, open(..., "rb"), zipfile ...), for reading.
        Its methods are called under the GIL and one at a time; of a file of fsspec that is not on this machine, `cat_ranges`
        of its file system is called, for many ranges at once. Exceptions they raise come out unchanged."""
    @staticmethod
    def create(path: str | bytes, format: Format, *, exclusive: bool = False, share: bool = False, io: str | None = None,
               in_memory: bool = False, persist: bool = False, write_behind: str | None = None) -> File: ...
    @staticmethod
    def open_parallel(path: str | bytes, comm: int, info: int, *, write: bool = False, io: str | None = None) -> File: ...
    @staticmethod
    def create_parallel(path: str | bytes, format: Format, comm: int, info: int, *, exclusive: bool = False,
                        io: str | None = None) -> File: ...
    @property
    def is_parallel(self) -> bool: ...
    def set_collective(self, group: int, var: int, is_collective: bool) -> None: ...
    def put_with_ranks(self, group: int, var: int, put: Callable[[], None]) -> None: ...
    def close(self) -> None: ...                 # second call does nothing
    def abort(self) -> None: ...
    def take_bytes(self) -> bytes: ...           # closes a file created in memory and gives its bytes
    def sync(self) -> None: ...
    def redef(self) -> None: ...
    def enddef(self) -> None: ...
    @property
    def is_open(self) -> bool: ...
    @property
    def path(self) -> str: ...
    @property
    def format(self) -> Format: ...
    @property
    def format_extended(self) -> str: ...        # "NETCDF3" | "HDF5" | "DAP2" ... as netCDF4-python's disk_format
    @property
    def is_writable(self) -> bool: ...
    @property
    def in_define_mode(self) -> bool: ...
    @property
    def stack(self) -> str: ...                  # layer spec of the storage
    def set_write_behind(self, how: str) -> None: ...
    def write_behind_status(self) -> tuple[int, str | None]: ...   # bytes that wait, what went wrong
    def set_fill(self, on: bool) -> bool: ...    # the mode before

    def copy(self, target: str | bytes | Any, *, format: str | None = None, group: str | None = None,
             variables: list[str] = ..., exclude: list[str] = ...,
             chunks: list[tuple[str | None, list[tuple[str, int]]]] = ..., contiguous: list[str] = ...,
             filters: list[tuple[list[str], list[tuple[str | int, list[int]]]]] = ..., fix_unlimited: bool = False,
             memory: int | None = None, replace: bool = False, resume: bool = False,
             progress: Callable[[str, int, int], Any] | None = None) -> tuple[list[tuple[str, int, str]], list[str]]:
        """Copies it into another file. `progress` gets a variable, bytes done and bytes in all, and ends the copy by
        raising. Of each variable the path, the bytes and how it went ("stored", "values", "spilled", "nothing",
        "before"); notes."""

    # ---- groups and dimensions ---------------------------------------------------------------------
    def group(self, group: int) -> GroupInfo: ...
    def contents(self, group: int) -> Contents: ...
        # what `group` tells, and of every variable how it is stored and its attributes: all that opening needs
    def def_group(self, parent: int, name: str) -> int: ...
    def rename_group(self, group: int, name: str) -> None: ...
    def def_dim(self, group: int, name: str, length: int | None) -> int: ...   # None: unlimited
    def rename_dim(self, group: int, dim: int, name: str) -> None: ...
    def dim(self, group: int, dim: int) -> tuple[str, int, bool, int]: ...     # name, length now, unlimited, group where defined

    # ---- types -------------------------------------------------------------------------------------
    def type_info(self, typeid: int) -> dict[str, Any]: ...
        # {"id","name","group","class": "compound"|"vlen"|"opaque"|"enum"|"atomic","size": bytes in memory,
        #  "base": typeid|None, "fields": [(name, offset, typeid, (shape...))], "members": [(name, int)],
        #  "dtype": np.dtype | None  (in memory, native order; None where values have variable parts)}
    def def_compound(self, group: int, name: str, size: int, fields: list[tuple[str, int, int, tuple[int, ...]]]) -> int: ...
    def def_vlen(self, group: int, name: str, base: int) -> int: ...
    def def_opaque(self, group: int, name: str, size: int) -> int: ...
    def def_enum(self, group: int, name: str, base: int, members: list[tuple[str, int]]) -> int: ...

    # ---- variables ---------------------------------------------------------------------------------
    def def_var(self, group: int, name: str, typeid: int, dims: tuple[int, ...]) -> int: ...
    def rename_var(self, group: int, var: int, name: str) -> None: ...
    def var_info(self, group: int, var: int) -> dict[str, Any]: ...
        # {"shape": (..), "chunks": (..)|None, "storage": "contiguous"|"chunked"|"compact"|"virtual"|..., 
        #  "filters": [(id, name|None, (params..))], "endian": "native"|"little"|"big",
        #  "no_fill": bool, "fill": value|None (None: not set by the file, the default fill of the type counts),
        #  "quantize": (mode, digits)|None, "chunk_cache": (bytes, slots, preemption)}
    def def_var_fill(self, group: int, var: int, value: Any | None) -> None: ...           # None: NC_NOFILL
    def def_var_chunking(self, group: int, var: int, chunks: tuple[int, ...] | None) -> None: ...  # None: contiguous
    def def_var_deflate(self, group: int, var: int, level: int | None, shuffle: bool) -> None: ...
    def def_var_fletcher32(self, group: int, var: int, on: bool) -> None: ...
    def def_var_filter(self, group: int, var: int, filter: int | str, params: list[int]) -> None: ...
    def def_var_endian(self, group: int, var: int, endian: str) -> None: ...
    def def_var_quantize(self, group: int, var: int, mode: str | int, digits: int) -> None: ...
    def set_var_chunk_cache(self, group: int, var: int, bytes: int, slots: int, preemption: float) -> None: ...
    def chunks(self, group: int, var: int) -> list[tuple[tuple[int, ...], int, int, int]]: ...
        # of every chunk that is stored: (start in elements, address, bytes stored, filter mask)

    # ---- attributes --------------------------------------------------------------------------------
    def att_names(self, group: int, var: int) -> list[str]: ...
    def atts(self, group: int, var: int) -> list[tuple[str, int, Any]]: ...     # (name, typeid, value)
        # of one that is damaged the NetCDFError stands in place of the value; a device that fails raises
    def att(self, group: int, var: int, name: str) -> tuple[int, Any]: ...
        # value: NC_CHAR -> bytes exactly as stored (decoding is the caller's policy);
        #        NC_STRING -> list[str|None]... decoded utf-8 with surrogateescape; numbers -> 1-D np.ndarray of the native dtype;
        #        compound/enum/opaque -> 1-D np.ndarray of dtype; vlen -> list of np.ndarray
    def netcdf4_rules(self, group: int, var: int, typeid: int, *, scales: bool, is_filled: bool, by_value: bool) -> tuple[Any, ...]:
        """What attributes say about values of a type, by netCDF4-python's rules (the crate `zonda-cf`): (letters of the type
        that bits are taken for, missing values, (fill values, are they the default, do they count), least valid, greatest
        valid, factor | None, offset | None, letters of the product's type, of the result's, (name of an attribute that
        is not used, ...), (those that NumPy may raise errors over, ...)). `scales`: values will be scaled; `is_filled`:
        the file fills what nobody writes; `by_value`: NumPy promotes by values, as it did before 2.0."""
    def put_att(self, group: int, var: int, name: str, typeid: int, value: Any) -> None: ...
        # NC_CHAR from bytes, NC_STRING from list[str], others from 1-D arrays (converted as nc_put_att_<type> does)
    def del_att(self, group: int, var: int, name: str) -> None: ...
    def rename_att(self, group: int, var: int, name: str, new_name: str) -> None: ...

    # ---- data --------------------------------------------------------------------------------------
    # start, count, stride: one number a dimension (stride None: all 1).
    def get(self, group: int, var: int, start: tuple[int, ...], count: tuple[int, ...], stride: tuple[int, ...] | None,
            out: np.ndarray[Any, Any], decoding: tuple[float | None, float | None, float | None] | None = None) -> int:
        """Into `out`: C-contiguous, writable, native byte order, prod(count) elements of any numeric dtype (converted), S1 for
        NC_CHAR, the dtype of `type_info` for user types without variable parts. Returns how many values did not fit
        the dtype (NC_ERANGE; they are delivered as the C library does). `decoding` is of f4 and f8: where values equal the first they
        become NaN; then they are multiplied by the second, and the third is added."""
    def put(self, group: int, var: int, start: tuple[int, ...], count: tuple[int, ...], stride: tuple[int, ...] | None,
            values: np.ndarray[Any, Any]) -> int: ...
        # C-contiguous native; may grow unlimited dimensions
    def get_objects(self, group: int, var: int, start: tuple[int, ...], count: tuple[int, ...],
            stride: tuple[int, ...] | None, out: np.ndarray[Any, Any]) -> None: ...
        # dtype=object: NC_STRING -> str (missing: ""), vlen -> np.ndarray, vlen of strings -> object array,
        # compound with variable parts -> tuple of Python values
    def put_objects(self, group: int, var: int, start: tuple[int, ...], count: tuple[int, ...],
            stride: tuple[int, ...] | None, values: np.ndarray[Any, Any]) -> None: ...

def default_fill(typeid: int) -> Any: ...        # NumPy scalar, bytes for NC_CHAR, "" for NC_STRING
def has_filter(filter: int | str) -> bool: ...   # whether data through it can be decoded and encoded
def filter_id(name: str) -> int | None: ...
def filter_name(id: int) -> str | None: ...
def detect(path: str | bytes) -> str | None: ...        # "CDF-1" ... "HDF5", None: no format of ours; OSError if unreadable
def detect_bytes(start: bytes) -> str | None: ...
def check_name(name: str) -> None: ...           # raises for names that netCDF does not allow
def get_chunk_cache() -> tuple[int, int, float]: ...
def set_chunk_cache(bytes: int, slots: int, preemption: float) -> None: ...
def version() -> str: ...                        # of zonda
def netcdf_version() -> str: ...                 # that nc_inq_libvers tells
def is_url(path: str | bytes) -> bool: ...      # of a file on a server: http, https, s3
def shown_name(path: str | bytes) -> str: ...   # a path, or a URL without secrets
def strerror(code: int) -> str: ...              # what nc_strerror says
def get_alignment() -> tuple[int, int]: ...      # (threshold, alignment) for files created from now on
def set_alignment(threshold: int, alignment: int) -> None: ...
def threads() -> int: ...                        # that compute at the same time in this process: ZONDA_THREADS, or its share of the node
def before_fork() -> None: ...                   # these four: the module registers them itself
def after_fork_in_parent() -> None: ...
def after_fork_in_child() -> None: ...
def drain_all() -> None: ...

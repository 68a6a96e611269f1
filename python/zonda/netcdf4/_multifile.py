# SPDX-License-Identifier: MIT OR Apache-2.0
"""Several files as one along a dimension: `MFDataset`, `MFTime`."""

from __future__ import annotations

import datetime
from glob import glob
from typing import Any

import numpy as np
from numpy import ma

from ._dataset import Dataset
from ._selection import reading
from ._times import date2num

SERVED = {
    "dimensions": "_dims",
    "variables": "_vars",
    "groups": "_grps",
    "file_format": "_file_format",
    "data_model": "_data_model",
    "disk_format": "_disk_format",
    "path": "_path",
}


class MFDataset(Dataset):
    """Files as one, variables joined along their first dimension. Read only, and not for format NETCDF4.

    Parameters
    ----------
    files : paths, or a pattern as for `glob`
    check : whether the variables of all files are compared with those of the master
    aggdim : the dimension to join along, by default the unlimited one
    exclude : variables that are not joined
    master_file : the file that attributes and variables are of, by default the first

    Raises
    ------
    OSError
        No files, no such dimension, or variables that do not fit.
    ValueError
        Files of format NETCDF4, or a master that is none of the files.
    """

    def __init__(self, files: Any, check: bool = False, aggdim: Any = None, exclude: Any = (), master_file: Any = None) -> None:
        if isinstance(files, str):
            if files.startswith("http"):
                raise ValueError("cannot using file globbing for remote (OPeNDAP) datasets")
            files = sorted(glob(files))
        if not files:
            raise OSError("no files specified (file list is empty)")
        if master_file is not None and master_file not in files:
            raise ValueError("master_file not in files list")
        master_path = files[0] if master_file is None else master_file
        master = Dataset(master_path)
        self._cdf = [master]
        try:
            self._join(files, master_path, master, check, aggdim, exclude)
        except BaseException:
            self.close()
            raise

    def _join(self, files: Any, master_path: Any, master: Dataset, check: bool, aggdim: Any, exclude: Any) -> None:
        for name, value in master._all_attributes().items():
            self.__dict__[name] = value
        along = [n for n, d in master.dimensions.items() if (d.isunlimited() if aggdim is None else n == aggdim)]
        if not along:
            raise OSError(f"master dataset {master_path} does not have a aggregation dimension")
        dimension = along[-1]
        joined = {
            name: variable
            for name, variable in master.variables.items()
            if name not in exclude and variable.dimensions[:1] == (dimension,)
        }
        if not joined:
            raise OSError(f"master dataset {master_path} does not have any variables to aggregate")
        opened = [master]
        self._cdf = []
        for path in files:
            part = master if path == master_path else Dataset(path)
            if part is not master:
                opened.append(part)
            self._cdf.append(part)
            if check:
                for name, variable in joined.items():
                    _compare(name, variable, master_path, part, path)
        self._handle = master._handle
        self._grpid = 0
        self._files = files
        self._cdfVLen = [len(part.dimensions[dimension]) for part in self._cdf]
        self._cdfTLen = sum(self._cdfVLen)
        self._cdfRecVar = {name: [part.variables[name] for part in self._cdf] for name in joined}
        self._dims: dict[str, Any] = dict(master.dimensions)
        self._dims[dimension] = _Dimension(dimension, self._dims[dimension], self._cdfVLen, self._cdfTLen)
        self._grps = master.groups
        self._vars: dict[str, Any] = dict(master.variables)
        for name in joined:
            self._vars[name] = _Variable(self, name, master.variables[name], dimension)
        if any(part.data_model == "NETCDF4" for part in self._cdf):
            raise ValueError("MFNetCDF4 only works with NETCDF3_* and NETCDF4_CLASSIC formatted files, not NETCDF4")
        self._file_format = self._data_model = [part.data_model for part in self._cdf]
        self._disk_format = [part.disk_format for part in self._cdf]
        self._path = "/"
        self.parent = None

    def __setattr__(self, name: str, value: Any) -> None:
        self.__dict__[name] = value

    def __getattribute__(self, name: str) -> Any:
        served = SERVED.get(name)
        if served is not None:
            return object.__getattribute__(self, "__dict__")[served]
        if name in ("_handle", "_grpid", "parent"):
            return object.__getattribute__(self, "__dict__")[name]
        return Dataset.__getattribute__(self, name)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(name)

    def ncattrs(self) -> list[str]:
        """Names of the attributes of the master."""
        return self._master().ncattrs()

    def getncattr(self, name: Any, encoding: str = "utf-8") -> Any:
        """An attribute of the master."""
        return self._master().getncattr(name, encoding)

    def _master(self) -> Dataset:
        return self._cdf[0]

    def close(self) -> None:
        """Closes all files."""
        for part in self._cdf:
            part.close()

    def isopen(self) -> bool:
        """Whether all files are open."""
        return all(part.isopen() for part in self._cdf)

    def __del__(self) -> None:
        """The parts close themselves."""

    def __repr__(self) -> str:
        lines = [repr(type(self)), f"root group ({self.data_model[0]} data model, file format {self.disk_format[0]}):"]
        lines += [f"    {name}: {self.__dict__[name]}" for name in self.ncattrs()]
        lines.append(f"    dimensions = {tuple(map(str, self.dimensions))}")
        lines.append(f"    variables = {tuple(map(str, self.variables))}")
        lines.append("    groups = ()")
        return "\n".join(lines)

    __str__ = __repr__

    def __reduce__(self) -> Any:
        raise NotImplementedError("MFDataset is not picklable")


def _compare(name: str, master: Any, master_path: Any, part: Dataset, path: Any) -> None:
    """Whether a file's variable is as the master's.

    Raises
    ------
    OSError
        It is not.
    """
    if name not in part.variables:
        raise OSError(f"aggregation variable {name} not defined in {path}")
    other = part.variables[name]
    for what, a, b in (
        ("dimensions", master.dimensions, other.dimensions),
        ("rank", len(master.shape), len(other.shape)),
        ("shape", master.shape[1:], other.shape[1:]),
        ("data type", master.dtype, other.dtype),
    ):
        if a != b:
            raise OSError(f"variable {name} : {what} mismatch between master {master_path} ({a}) and extension {path} ({b})")


class _Dimension:
    """The dimension that files are joined along."""

    def __init__(self, dimname: str, dim: Any, dimlens: list[int], dimtotlen: int) -> None:
        self.dimlens = dimlens
        self.dimtotlen = dimtotlen
        self._name = dimname
        self.name = dimname

    def __len__(self) -> int:
        return self.dimtotlen

    @property
    def size(self) -> int:
        return self.dimtotlen

    def isunlimited(self) -> bool:
        return True

    def __repr__(self) -> str:
        return f'"{type(self)!r}" (unlimited): name = \'{self._name}\', size = {len(self)}'


class _Variable:
    """A variable of several files; attributes are those of the master."""

    def __init__(self, dset: Any, varname: str, var: Any, recdimname: str) -> None:
        self.dimensions = var.dimensions
        self._dset = dset
        self._grp = dset
        self._mastervar = var
        self._recVar = dset._cdfRecVar[varname]
        self._recdimname = recdimname
        self._recLen = dset._cdfVLen
        self.dtype = var.dtype
        self._name = var._name
        for name, value in var._all_attributes().items():
            self.__dict__[name] = value

    def typecode(self) -> Any:
        """The NumPy type."""
        return self.dtype

    def ncattrs(self) -> list[str]:
        """Names of the master's attributes."""
        return list(self._mastervar.ncattrs())

    def getncattr(self, name: Any, encoding: str = "utf-8") -> Any:
        """An attribute of the master."""
        return self._mastervar.getncattr(name, encoding)

    def group(self) -> Any:
        """The MFDataset."""
        return self._grp

    @property
    def shape(self) -> tuple[int, ...]:
        """Lengths of the dimensions, the first of all files together."""
        return (len(self._dset.dimensions[self._recdimname]), *self._mastervar.shape[1:])

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return int(np.prod(self.shape, dtype=np.int64))

    @property
    def name(self) -> str:
        """Its name."""
        return str(self._name)

    def __len__(self) -> int:
        return self.shape[0]

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        data = self[...]
        return data if dtype is None else np.asarray(data, dtype)

    def __repr__(self) -> str:
        lines = [repr(type(self)), f"{self.dtype} {self._name}{tuple(map(str, self.dimensions))}"]
        lines += [f"    {name}: {self.__dict__[name]}" for name in self.ncattrs()]
        lines.append(f"unlimited dimensions = {(str(self._recdimname),)!r}")
        lines.append(f"current size = {self.shape!r}")
        return "\n".join(lines)

    def set_auto_chartostring(self, val: Any) -> None:
        """As `Variable.set_auto_chartostring`, for all files."""
        for variable in self._recVar:
            variable.set_auto_chartostring(val)

    def set_auto_maskandscale(self, val: Any) -> None:
        """As `Variable.set_auto_maskandscale`, for all files."""
        for variable in self._recVar:
            variable.set_auto_maskandscale(val)

    def set_auto_mask(self, val: Any) -> None:
        """As `Variable.set_auto_mask`, for all files."""
        for variable in self._recVar:
            variable.set_auto_mask(val)

    def set_auto_scale(self, val: Any) -> None:
        """As `Variable.set_auto_scale`, for all files."""
        for variable in self._recVar:
            variable.set_auto_scale(val)

    def set_always_mask(self, val: Any) -> None:
        """As `Variable.set_always_mask`, for all files."""
        for variable in self._recVar:
            variable.set_always_mask(val)

    def __getitem__(self, elem: Any) -> Any:
        selection = reading(elem, self.shape)
        if any(step < 0 for step in selection.steps):
            raise IndexError("negative strides not allowed when slicing MFVariable Variable instance")
        records = selection.lists.get(0)
        if records is None:
            start, count, step = selection.starts[0], selection.counts[0], selection.steps[0]
            records = start + step * np.arange(count)
        rest = self._rest(selection)
        parts: list[Any] = []
        order: list[Any] = []
        ends = np.cumsum(self._recLen)
        number = np.searchsorted(ends, records, side="right")
        listed = 0 in selection.lists
        # Nothing of listed records is decoded as the last of them.
        for n in number[-1:] if listed and selection.is_empty else np.unique(number):
            mine = np.flatnonzero(number == n)
            local = records[mine] - (ends[n] - self._recLen[n])
            parts.append(self._recVar[n][(local, *rest)])
            order.append(mine)
        if not parts:
            parts, order = [self._recVar[0][(slice(0, 0), *rest)]], [records]
        if listed and not selection.is_empty:
            last = parts[int(np.flatnonzero(np.unique(number) == number[-1])[0])].dtype
            parts = [part.astype(last) for part in parts]
        concatenate: Any = ma.concatenate if any(ma.isMA(part) for part in parts) else np.concatenate
        data = concatenate(parts)
        if selection.is_empty and listed:
            data = np.repeat(data[:1], len(records), axis=0)
            order = [np.arange(len(records))]
        places = np.concatenate(order)
        if (places[1:] < places[:-1]).any():
            data = data[np.argsort(places)]
        if 0 in selection.scalars:
            data = data[0]
        if ma.isMA(data) and data is not ma.masked and not np.any(data.mask):
            data = data.filled() if data.shape else np.asarray(data)
        return data

    def _rest(self, selection: Any) -> list[Any]:
        """The index of the other dimensions."""
        rest: list[Any] = []
        for axis in range(1, len(selection.counts)):
            if axis in selection.lists:
                rest.append(selection.lists[axis])
                continue
            if axis in selection.scalars:
                rest.append(selection.starts[axis])
                continue
            start, count, step = selection.starts[axis], selection.counts[axis], selection.steps[axis]
            rest.append(slice(start, start + max(count * step, 0), step))
        return rest


class MFTime(_Variable):
    """The time of an MFDataset in one unit and calendar.

    Parameters
    ----------
    time : the variable
    units : by default the master's
    calendar : by default that of all files

    Raises
    ------
    ValueError
        Files without, or with different calendars, and none given.
    """

    def __init__(self, time: Any, units: Any = None, calendar: Any = None) -> None:
        for name, value in time.__dict__.items():
            self.__dict__[name] = value
        self._time = time
        if calendar is None:
            calendars = set()
            for part in self._recVar:
                if "calendar" not in part.ncattrs():
                    raise ValueError(
                        "MFTime requires that the time variable in all files have a calendar attribute "
                        "if no default calendar is provided."
                    )
                calendars.add(part.calendar)
            if len(calendars) > 1:
                raise ValueError(
                    "MFTime requires that the same time calendar is used by all files "
                    "if no default calendar is provided."
                )
            calendar = calendars.pop()
        self.calendar = calendar
        self.units = units or time.units
        reference = datetime.datetime(1900, 1, 1)
        common = date2num(reference, self.units, self.calendar)
        shifts = [common - date2num(reference, part.units, self.calendar) for part in self._recVar]
        self._delta = np.repeat(np.array(shifts), self._recLen).astype(time.dtype)

    def __getitem__(self, elem: Any) -> Any:
        return self._time[elem] + self._delta[elem]

"""The xarray engine ``zonda``, and writing with xarray's encodings.

``xarray.open_dataset(path, engine="zonda")`` finds it by its entry point once the package is installed.
`to_netcdf` writes datasets and trees; `enable_writing` makes ``Dataset.to_netcdf(engine="zonda")`` work.
"""

from ._entrypoint import ZondaBackendEntrypoint
from ._many import open_mfdataset
from ._store import ZondaDataStore
from ._writing import enable_writing, to_netcdf

__all__ = [
    "ZondaBackendEntrypoint",
    "ZondaDataStore",
    "enable_writing",
    "open_mfdataset",
    "to_netcdf",
]

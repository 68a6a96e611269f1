# SPDX-License-Identifier: MIT OR Apache-2.0
"""Run by test_releases.py, in an environment with NumPy, xarray and Zonda and nothing else: one check by its name, in a folder.

    alone.py CHECK FOLDER
"""

import importlib.util
import io
import os
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import xarray as xr

warnings.simplefilter("error", RuntimeWarning)


def data():
    times = np.array(["2020-01-01", "2020-01-02", "2020-01-03"], "M8[ns]")
    field = np.arange(12, dtype="f4").reshape(3, 4)
    field[1, 1] = np.nan
    return xr.Dataset(
        {"t": (("time", "x"), field, {"units": "K"}), "label": (("x",), np.array(["a", "bc", "", "é"], object))},
        coords={"time": times, "x": np.arange(4.0)},
        attrs={"title": "alone"},
    )


def check_others_are_absent(folder):
    assert not [name for name in ("netCDF4", "h5netcdf", "scipy", "h5py", "dask") if importlib.util.find_spec(name)]


def check_names(folder):
    """All that the engine takes from xarray is there."""
    from zonda.xarray_engine import _xarray

    missing = {name for name in _xarray.__all__ if getattr(_xarray, name, None) is None}
    # Without it xarray decodes what is packed.
    assert missing <= ({"choose_float_dtype"} if xr.__version__ < "2025" else set()), missing
    for module in ("_many", "_region", "_store", "_streaming", "_writing"):
        importlib.import_module(f"zonda.xarray_engine.{module}")


def check_no_engine_named(folder):
    """`open_dataset`, `open_datatree` and the others find the engine by themselves, in every way to name a file."""
    import zonda

    for kind in ("NETCDF4", "NETCDF4_CLASSIC", "NETCDF3_CLASSIC", "NETCDF3_64BIT", "NETCDF3_64BIT_DATA"):
        path = folder / f"{kind}.nc"
        zonda.to_netcdf(data(), path, format=kind)
        bare = folder / kind  # by its first bytes
        bare.write_bytes(path.read_bytes())
        for target in (path, str(path), bare, path.read_bytes(), io.BytesIO(path.read_bytes())):
            with xr.open_dataset(target) as back:
                assert back.equals(data()), (kind, target)
                assert set(back.xindexes) == {"time", "x"}
        with open(path, "rb") as file, xr.open_dataset(file) as back:
            assert back.equals(data()), kind
    with xr.open_datatree(folder / "NETCDF4.nc") as tree:
        assert tree.to_dataset().equals(data())
    with xr.open_dataarray(folder / "NETCDF4.nc", drop_variables="label") as array:
        assert array.name == "t"
    assert xr.load_dataset(folder / "NETCDF4.nc").equals(data())


def check_no_engine_named_to_write(folder):
    """`to_netcdf` and the others, in a program that opened a file with xarray or imported zonda after it."""
    import zonda  # noqa: F401

    data().to_netcdf(folder / "plain.nc", unlimited_dims="time", encoding={"t": {"zlib": True, "complevel": 1}})
    with xr.open_dataset(folder / "plain.nc") as back:
        assert back.equals(data())
        assert back.t.encoding["complevel"] == 1 and back.encoding["unlimited_dims"] == {"time"}
    data().to_netcdf(folder / "plain.nc", mode="a", group="more")
    data().t.to_netcdf(folder / "array.nc")
    data().to_netcdf(folder / "classic.nc", format="NETCDF3_64BIT")
    assert (folder / "classic.nc").read_bytes()[:4] == b"CDF\x02"
    assert (folder / "plain.nc").read_bytes()[:4] == b"\x89HDF"
    tree = xr.DataTree.from_dict({"/": data(), "/deep/er": data()})
    tree.to_netcdf(folder / "tree.nc")
    with xr.open_datatree(folder / "tree.nc") as back:
        assert back.groups == tree.groups
        assert all(back[path].to_dataset().identical(tree[path].to_dataset()) for path in tree.groups)
    xr.save_mfdataset([data(), data()], [folder / "one.nc", folder / "two.nc"])
    with xr.open_dataset(folder / "two.nc") as back:
        assert back.equals(data())
    if xr.__version__ >= "2025.10":  # those before have scipy alone for it
        with xr.open_dataset(io.BytesIO(data().to_netcdf())) as back:
            assert back.equals(data())
    data().to_netcdf(folder / "named.nc", engine="zonda")
    try:
        data().to_netcdf(folder / "no.nc", engine="none")
    except ValueError as error:
        assert "none" in str(error)
    else:
        raise AssertionError("an engine that is none")


def run(code, folder, **environment):
    """What a fresh interpreter says to a program: nothing, or the last line of its error."""
    done = subprocess.run(
        [sys.executable, "-c", "import numpy as np, xarray as xr\nds = xr.Dataset({'v': ('x', np.arange(3.0))})\n" + code],
        cwd=folder, capture_output=True, text=True, env={**os.environ, **environment},
    )  # fmt: skip
    assert (done.returncode == 0) == (done.stderr == ""), done.stderr
    return done.stderr.strip().splitlines()[-1] if done.stderr else ""


def check_when_it_is_there(folder):
    """Which programs write by Zonda without naming it; what docs/guides/python.md says of it."""
    import zonda

    zonda.to_netcdf(xr.Dataset({"v": ("x", np.arange(3.0))}), folder / "in.nc")
    assert run("xr.open_dataset('in.nc').to_netcdf('out.nc')", folder) == ""
    assert run("import zonda; ds.to_netcdf('out.nc')", folder) == ""
    assert run("import zonda.xarray_engine; ds.to_netcdf('out.nc')", folder) == ""
    # xarray asks nobody, and nothing of Zonda is loaded.
    assert "cannot" in run("ds.to_netcdf('out.nc')", folder)
    # Not wanted.
    assert "cannot" in run("import zonda; ds.to_netcdf('out.nc')", folder, ZONDA_XARRAY_WRITING="off")
    assert "engine" in run("import zonda; ds.to_netcdf('out.nc', engine='zonda')", folder, ZONDA_XARRAY_WRITING="off")
    back = "import zonda; from zonda.xarray_engine import enable_writing; enable_writing(False); ds.to_netcdf('out.nc')"
    assert "cannot" in run(back, folder)
    again = "from zonda.xarray_engine import enable_writing; enable_writing(); ds.to_netcdf('out.nc')"
    assert run(again, folder, ZONDA_XARRAY_WRITING="off") == ""


def check_another_engine_stays(folder):
    """An engine that xarray prefers to scipy stays its choice; scipy is not taken unless it is asked for."""
    import zonda  # noqa: F401

    from zonda.xarray_engine import _xarray

    for name in ("netCDF4", "scipy"):
        (folder / "fake" / name).mkdir(parents=True)
        (folder / "fake" / name / "__init__.py").write_text("")
    (folder / "fake" / "scipy" / "io").mkdir()
    (folder / "fake" / "scipy" / "io" / "__init__.py").write_text("")
    (folder / "fake" / "scipy" / "io" / "netcdf.py").write_text("")
    ask = getattr(_xarray.writers, "get_default_netcdf_write_engine", None)
    choose = (lambda: ask("x.nc", None)) if ask else _xarray.writers._get_default_engine_netcdf
    assert choose() == "zonda"
    sys.path.insert(0, str(folder / "fake"))
    importlib.invalidate_caches()
    assert choose() == "netcdf4"
    (folder / "fake" / "netCDF4").rename(folder / "fake" / "other")
    sys.modules.pop("netCDF4", None)
    importlib.invalidate_caches()
    assert choose() == "zonda"
    if "netcdf_engine_order" in xr.get_options():
        with xr.set_options(netcdf_engine_order=["scipy", "netcdf4", "h5netcdf"]):
            assert choose() == "scipy"


def check_errors_name_the_file(folder):
    """The file that was asked for, and not the one beside it that is written."""
    import zonda

    def said(path, error_type, what=None, **options):
        try:
            zonda.to_netcdf(data() if what is None else what, path, **options)
        except error_type as error:
            shown = f"{error} {error.args} {getattr(error, 'path', '')} {getattr(error, 'filename', '')}"
            assert ".part" not in shown, shown
            assert str(path) in str(error), str(error)
            return error
        raise AssertionError("no error")

    error = said(folder / "none" / "a.nc", FileNotFoundError)
    assert error.filename == error.path == str(folder / "none" / "a.nc")
    said(folder / "a.nc", Exception, data().rename(t="a" * 300))
    target = folder / "full.nc"
    target.symlink_to("/dev/full")
    said(target, OSError)
    assert not list(folder.glob(".*.part"))


if __name__ == "__main__":
    check, place = sys.argv[1:]
    globals()[f"check_{check}"](Path(place))

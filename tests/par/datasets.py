# SPDX-License-Identifier: MIT OR Apache-2.0
"""Files of several ranks through the Python package: dataset.py, and netCDF4-python's examples with another import.

The package is that of the newest wheel in out/wheels (scripts/wheel.sh), or in the folder that ZONDA_PACKAGE names.
"""
import os
import re
import shutil
import subprocess
import zipfile
from pathlib import Path

import launch
import rig

HERE = Path(__file__).resolve().parent
SECONDS = 120
# Where the examples are: in the source distribution that python/tests/suites gets, and in Debian's package.
EXAMPLES = (*sorted(rig.ROOT.glob("out/suites/netcdf4-*/examples")), Path("/usr/share/doc/python3-netcdf4/examples"))
FORMATS = ("NETCDF4", "NETCDF4_CLASSIC", "NETCDF3_CLASSIC", "NETCDF3_64BIT_OFFSET", "NETCDF3_64BIT_DATA")
# In its last write the example uses a variable of the file that it has closed. That works where the next file gets the number of that one;
# here it is an error, so the test takes the variable of the file that is open.
STALE = ("if rank == 3: v[rank] = 2*rank", "if rank == 3: nc['var'][rank] = 2*rank")
WITHOUT = """
import sys
sys.modules["mpi4py"] = None
import zonda, zonda.netcdf4
for kind, call in ((ImportError, lambda: zonda.open("x.nc", "w", comm=1)), (ValueError, lambda: zonda.netcdf4.Dataset("x.nc", "w", parallel=True))):
    try:
        call()
    except kind as error:
        assert "parallel files need mpi4py" in str(error), error
    else:
        sys.exit("no error")
print("ok")
"""


def package(scratch, interpreter):
    """A folder for PYTHONPATH."""
    if rig.run([interpreter, "-c", "import numpy"]).returncode:
        raise rig.Skip("%s has no NumPy (scripts/setup.sh --par)" % interpreter)
    if os.environ.get("ZONDA_PACKAGE"):
        return Path(os.environ["ZONDA_PACKAGE"]).resolve()
    wheels = sorted((rig.ROOT / "out/wheels").glob("zonda-*-abi3-*.whl"), key=lambda wheel: wheel.stat().st_mtime)
    if not wheels:
        raise rig.Skip("there is no wheel in out/wheels (scripts/wheel.sh)")
    folder = scratch / "package"
    if not folder.exists():
        with zipfile.ZipFile(wheels[-1]) as wheel:
            wheel.extractall(folder)
    if not (folder / "zonda/_parallel.py").exists():
        raise rig.Skip("%s is older than parallel files (scripts/wheel.sh)" % wheels[-1].name)
    return folder


def launched(mpi, package, count, words, folder, **more):
    """What ranks of a Python program say, none of which may fail or hang."""
    folder.mkdir()
    try:
        command = launch.command(mpi, count, [mpi.python, *words])
        env = launch.environment(mpi, PYTHONPATH=package, ZONDA_PAR_TIMEOUT="60", **more)
        log = folder / "said"
        status = launch.ends_with(command, env, folder, SECONDS, log)
        said = log.read_text(errors="backslashreplace").strip()
        if status != 0:
            raise rig.Wrong("%s: %s" % ("it hangs" if status is None else "ends with %s" % status, said[-900:]))
        return said
    finally:
        shutil.rmtree(folder)


def files(mpi, package, count, scratch):
    folder = scratch / "datasets"
    # What an Info says goes before the environment.
    said = launched(mpi, package, count, [HERE / "dataset.py", folder], folder, PNETCDF_HINTS="nc_var_align_size=16384;cb_nodes=many")
    if said.count("ok") != count:
        raise rig.Wrong("not all ranks are content")
    lines = ["the hint %s has no effect" % hint for hint in ("cb_nodes=many", "romio_cb_write=sometimes", "zonda_independent_filters=yes")]
    for line in (*lines, r"the MPI_Info key zonda_\u{1b}[2Jkey is unknown"):
        if said.count(line) != 1:
            raise rig.Wrong("%d warnings, %r: %s" % (said.count(line), line, said[-600:]))


def example(mpi, package, path, words, scratch):
    text = re.sub(r"^from netCDF4 import", "from zonda.netcdf4 import", path.read_text(), flags=re.M)
    if "zonda.netcdf4" not in text:
        raise rig.Wrong("the example imports something else")
    changed = scratch / path.name
    changed.write_text(text.replace(*STALE))
    launched(mpi, package, 4, [changed, *words], scratch / "example")


def without(mpi, package):
    done = subprocess.run([mpi.python, "-c", WITHOUT], env=launch.environment(mpi, PYTHONPATH=package), capture_output=True, text=True, check=False)
    if done.stdout != "ok\n":
        raise rig.Wrong(done.stderr.strip()[-600:])


def cases(mpi, package, options):
    """Names, tests and their arguments."""
    for count in options.by((3,), (1, 3), (1, 2, 3, 4, 8)):
        yield "datasets, %d ranks" % count, files, mpi, package, count, options.scratch
    yield "a Python without mpi4py", without, mpi, package
    folder = next((folder for folder in EXAMPLES if folder.is_dir()), None)
    if folder is None:
        return
    for form in options.by(FORMATS[:1], FORMATS[1:4:2], FORMATS):
        yield "mpi_example.py, %s" % form, example, mpi, package, folder / "mpi_example.py", [form], options.scratch
    yield "mpi_example_compressed.py", example, mpi, package, folder / "mpi_example_compressed.py", [], options.scratch

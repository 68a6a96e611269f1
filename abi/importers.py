"""The distribution's importers of libnetcdf.so.19, and what they import; used by check.py.

The tools and libraries of the distribution import more than the public headers declare, and one
symbol that is missing keeps a program from starting. What they import is therefore read from the
installed files themselves.
"""

import os
import re
import subprocess
from collections import defaultdict
from collections.abc import Iterator
from glob import glob
from pathlib import Path

SONAME = "libnetcdf.so.19"
# Programs, libraries, plugins of libraries, and extension modules of Python.
PLACES = (
    "/usr/bin/*",
    "/usr/lib/*-linux-gnu/*.so*",
    "/usr/lib/*-linux-gnu/*/*.so*",
    "/usr/lib/python3/dist-packages/*.so",
    "/usr/lib/python3/dist-packages/*/*.so",
)
# Files for one readelf: below the limit for arguments.
AT_ONCE = 500


def output(*command: str) -> str:
    # readelf fails if any file is no ELF file, as scripts are, and reports on the others.
    environment = {**os.environ, "LC_ALL": "C"}
    done = subprocess.run(command, check=False, capture_output=True, text=True, env=environment)
    return done.stdout


def importers() -> Iterator[str]:
    """Installed files that are linked with the library, each once, whatever links lead to it."""
    candidates = {str(Path(name).resolve()) for place in PLACES for name in glob(place)}
    files = sorted(name for name in candidates if Path(name).is_file())
    for start in range(0, len(files), AT_ONCE):
        # Two files at least, or readelf does not name them.
        report = output("readelf", "-dW", "/dev/null", *files[start : start + AT_ONCE])
        for part in report.split("\nFile: ")[1:]:
            if f"Shared library: [{SONAME}]" in part:
                yield part.split("\n", 1)[0]


def imports(file: str) -> set[str]:
    """Names without a version that `file` wants from elsewhere; data that it copies as well."""
    undefined = output("nm", "-D", "--undefined-only", file)
    names = {line.split()[-1] for line in undefined.splitlines()}
    for line in output("readelf", "-rW", file).splitlines():
        copied = re.search(r"R_\w+_COPY\s+[0-9a-f]+\s+(\S+)", line)
        if copied:
            names.add(copied.group(1))
    return {name for name in names if "@" not in name}


def wanted(defined: set[str]) -> dict[str, list[str]]:
    """Each of the symbols that the distribution's library has defined and somebody imports, with
    the names of the files that do."""
    found = defaultdict(list)
    for file in importers():
        for name in imports(file) & defined:
            found[name].append(Path(file).name)
    return dict(found)

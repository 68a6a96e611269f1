"""Builds the source package's own HDF5 filter plugins, which its netCDF-4 filter tests load."""
import os
import re
import subprocess

from plan import make_variables
from settings import HDF5_INC, HDF5_LIB

# The distribution's library has these two codecs switched off.
LEFT_OUT = ("zstd", "blosc")


def build_plugins(s, src, build):
    """Compiles every plugin into out/bin/plugins/.libs; returns out/bin/plugins.

    One that does not compile is left out: the tests that need it fail on the distribution's library
    too and are not recorded."""
    top = s.folder("bin", "plugins")
    out = s.folder("bin", "plugins", ".libs")
    with open(os.path.join(src, "plugins", "Makefile.am")) as f:
        names = list(dict.fromkeys(re.findall(r"\b(lib__nch5\w+)_la_SOURCES", f.read())))
    names = [n for n in names if not n.endswith(LEFT_OUT)
             and not os.path.exists(os.path.join(out, n + ".so"))]
    if not names:
        return top
    second = os.path.join(top, "H5Znoop1.c")        # the makefile derives it from the first one
    with open(second, "w") as f:
        f.write('#define NOOP_INSTANCE 1\n#include "%s"\n' % os.path.join(src, "plugins", "H5Znoop.c"))
    for name, files in zip(names, make_variables(build, "plugins", [n + "_la_SOURCES" for n in names])):
        files = [second if f == "H5Znoop1.c" else os.path.join(src, "plugins", f)
                 for f in files if f.endswith(".c")]
        flags = ["-shared", "-fPIC", "-O1", "-w", "-DHAVE_CONFIG_H"]
        for d in (build, src + "/include", build + "/include", src + "/plugins", HDF5_INC):
            flags.append("-I" + d)
        r = subprocess.run(["gcc"] + flags + files + ["-o", os.path.join(out, name + ".so"),
                           "-L" + HDF5_LIB, "-Wl,--as-needed", "-lhdf5", "-lz", "-lsz", "-lbz2"],
                           capture_output=True, text=True)
        with open(os.path.join(top, name + ".log"), "w") as f:
            f.write(r.stdout + r.stderr)
    return top

#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Where things are, for runners in the shell: `eval "$(tests/rig/shell.py)"` sets

    prefix, libdir, incdir, library, zonda     the build under test
    oracle                                     folder of the distribution's library, empty where there is none
    corpus                                     folder of further files, empty where none was named
    python                                     a Python with the modules that are named as arguments, empty where there is none
"""
import shlex
import sys
from pathlib import Path

sys.path.insert(1, str(Path(__file__).resolve().parents[1]))
import rig  # noqa: E402

FOUND = {
    "prefix": rig.PREFIX, "libdir": rig.LIBDIR, "incdir": rig.INCDIR, "library": rig.LIBRARY, "zonda": rig.ZONDA,
    "oracle": rig.reference(), "corpus": rig.CORPUS, "python": rig.python(*sys.argv[1:] or ["sys"]),
}  # fmt: skip
for name, value in FOUND.items():
    print("%s=%s" % (name, shlex.quote(str(value or ""))))

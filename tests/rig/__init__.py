# SPDX-License-Identifier: MIT OR Apache-2.0
"""What all test runners stand on, once.

    places      where the library under test, the distribution's one, a Python with certain modules and scratch are
    processes   programs that are compiled, and run with one library or the other, within bounds
    counts      what passed, failed and was left out, and the last line
    options     how much is run (quick, full, long), which parts of it, by which seed

CONTRIBUTING.md shows a whole runner. Nothing here needs more than Python's own library.
"""
from .counts import Counts, Setup, Skip, Wrong, main, skip_all
from .options import FULL, LONG, QUICK, arguments, parser
from .places import (
    BIN, CORPUS, INCDIR, LIBDIR, LIBRARY, PARALLEL, PREFIX, ROOT, SONAME, ZONDA, found_python, keep, needs, newest, out, parallel_reference, python,
    reference, reference_library, scratch, two_libraries,
)  # fmt: skip
from .processes import bounds, compile_c, environment, loaded, missing, must, run, tool

__all__ = [
    "BIN", "CORPUS", "FULL", "INCDIR", "LIBDIR", "LIBRARY", "LONG", "PARALLEL", "PREFIX", "QUICK", "ROOT", "SONAME", "ZONDA",
    "Counts", "Setup", "Skip", "Wrong",
    "arguments", "bounds", "compile_c", "environment", "found_python", "keep", "loaded", "main", "missing", "must", "needs", "newest", "out", "parallel_reference", "parser",
    "python", "reference", "reference_library", "run", "scratch", "skip_all", "tool", "two_libraries",
]  # fmt: skip

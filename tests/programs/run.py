#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Real programs on the distribution's libnetcdf and on Zonda's: same exit codes, output and files.

    run.py                  all cases of cases.txt, and the field's readers over a corpus
    run.py [--only] REGEX   the cases whose name matches; of readers, the files
    run.py --parts LIST     of cases (compare.py), readers (readers.py)
    run.py --quick          every fourth case
    run.py --long           each file of the corpus by each reader, not by three of them

ZONDA_WHEEL_PYTHON is a Python with the netCDF4 wheel; without one it is made in out/programs. ZONDA_CORPUS
is a folder of netCDF-4 files with MANIFEST.tsv, see readers.py. tests/rig/places.py has the other settings.
"""
import compare
import readers
from compare import rig


def main():
    parser = rig.parser(__doc__, parts={"cases": rig.QUICK, "readers": rig.FULL})
    parser.add_argument("name", nargs="?", metavar="REGEX", help="the same as --only, of cases alone")
    readers.options(parser)
    options, counts = rig.arguments(parser), rig.Counts()
    if options.name:
        options.only, options.parts = options.name, ["cases"]
    parts = {"cases": compare.cases, "readers": readers.over_a_corpus}
    for part in options.chosen():
        parts[part](options, counts)
    return counts


if __name__ == "__main__":
    rig.main(main)

#!/bin/bash
# Real programs on the distribution's libnetcdf and on Zonda's: same exit codes, output and files.
#
#   run.sh [REGEX]     all cases of cases.txt, or those whose name matches
#
#   ZONDA_LIBDIR       folder of libnetcdf.so.19 and libzonda-preload.so (default: dist/lib)
#   ZONDA_WHEEL_PYTHON a Python with the netCDF4 wheel; without it one is made in out/programs
exec python3 "$(dirname "$0")/compare.py" "$@"

#!/bin/bash
# Real programs on the distribution's libnetcdf and on Zonda's: same exit codes, output and files.
#
#   run.sh             all cases of cases.txt, and the field's readers over a corpus
#   run.sh REGEX       the cases whose name matches
#
#   ZONDA_LIBDIR       folder of libnetcdf.so.19 and libzonda-preload.so (default: dist/lib)
#   ZONDA_WHEEL_PYTHON a Python with the netCDF4 wheel; without it one is made in out/programs
#   ZONDA_CORPUS       a folder of netCDF-4 files with MANIFEST.tsv, see readers.py (optional)
set -u
here=$(cd "$(dirname "$0")" && pwd)
[ $# -eq 0 ] || exec python3 "$here/compare.py" "$@"

log=$(mktemp) || exit 2
trap 'rm -f "$log"' EXIT
passed=0 failed=0 skipped=0 code=0

# part COMMAND...: runs it, shows what it says and adds up its last line; one without it has failed.
part() {
    "$@" | tee "$log"
    local status=${PIPESTATUS[0]} counts
    [ "$status" -eq 0 ] || code=$status
    counts=$(sed -n '$s/^\([0-9]*\) passed, \([0-9]*\) failed, \([0-9]*\) skipped$/\1 \2 \3/p' "$log")
    set -- ${counts:-0 1 0}
    passed=$((passed + $1)) failed=$((failed + $2)) skipped=$((skipped + $3))
}

part python3 "$here/compare.py"
if [ -z "${ZONDA_CORPUS:-}" ]; then
    echo "skip readers over a corpus: ZONDA_CORPUS names none"
    skipped=$((skipped + 1))
else
    part python3 "$here/readers.py" "$ZONDA_CORPUS"
fi
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ] && [ "$code" -eq 0 ]

#!/usr/bin/env bash
# The `zonda` command: its output, messages and exit statuses, one line per case. Each part is a folder,
# with its cases in cases.sh and the output that they expect beside it.
#
#   tests/cli/run.sh [dump|info|copy|view|trace|tune|usage|run|doctor|damage|nccopy|url ...]      all by default
#
#   ZONDA_VENV     Python environment with the netCDF4 wheel, h5py and xarray: the same as ZONDA_PYTHON=$ZONDA_VENV/bin/python
#   UPDATE=1       writes expected output anew instead of comparing
# tests/rig/places.py has the other settings.
#
# `zonda dump` is compared byte by byte with the distribution's ncdump, on what ncgen makes of
# dump/*.cdl, on what odd_files.py writes, and on real files but those of dump/exceptions.txt. A case
# whose tool is missing is skipped.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
[ -z "${ZONDA_VENV-}" ] || export ZONDA_PYTHON=$ZONDA_VENV/bin/python
eval "$("$root/tests/rig/shell.py" netCDF4 h5py xarray)"
passed=0 failed=0 skipped=0

if [ ! -x "$zonda" ]; then
    echo "cli: no $zonda: build it first" >&2
    exit 2
fi
# Of the reference 4.9.0, found before any path of ours is set.
ncdump=$(command -v ncdump) || ncdump=
ncgen=$(command -v ncgen) || ncgen=
export LC_ALL=C.UTF-8
unset ZONDA_IO ZONDA_ASYNC ZONDA_SYNC ZONDA_TRACE NETCDF_FFIOSPEC NETCDF_FFIO_SPEC LD_LIBRARY_PATH LD_PRELOAD

scratch=$(mktemp -d)
keep=0
cleanup() { if ((keep)); then echo "files of failed cases are in $scratch"; else rm -rf "$scratch"; fi; }
trap cleanup EXIT
cd "$scratch" || exit 2

pass() {
    echo "passed  $*"
    passed=$((passed + 1))
}
fail() {
    echo "FAIL $*"
    failed=$((failed + 1)) keep=1
}
skip() {
    echo "skip $*"
    skipped=$((skipped + 1))
}

# golden LABEL FILE COMMAND...: standard output, standard error and exit status in one text
golden() {
    local label=$1 expected=$2
    shift 2
    { "$@" 2>stderr; echo "exit status $?"; } >stdout
    # Where it runs and how the system is set up is not part of the expectation.
    sed -e "s|$scratch/||g" -e "s|$prefix|PREFIX|g" \
        <(sed 's/^/out: /' stdout) <(sed 's/^/err: /' stderr) >got
    if [ "${UPDATE:-0}" = 1 ]; then
        cp got "$expected"
    fi
    if cmp -s "$expected" got; then pass "$label"; else
        fail "$label"
        diff "$expected" got | head -n 20 | sed 's/^/        /'
    fi
}

# picture LABEL EXPECTED COMMAND...: what the command says, and what is in picture.svg that it writes
picture() {
    local label=$1 expected=$2
    shift 2
    rm -f picture.svg
    golden "$label" "$expected" sh -c '"$@" -o picture.svg && python3 "$0" picture.svg' \
        "$here/svg_texts.py" "$@"
}

# is_png LABEL FILE: whether it is a PNG, as far as its first and last bytes say
is_png() {
    if [ "$(head -c 8 "$2" | od -An -tx1 | tr -d ' ')" = 89504e470d0a1a0a ] &&
        tail -c 8 "$2" | grep -qa IEND; then
        pass "$1"
    else
        fail "$1"
    fi
}

if (($# == 0)); then set -- dump info copy view trace tune usage run doctor damage nccopy url; fi
for part; do
    if [ ! -e "$here/$part/cases.sh" ]; then
        echo "cli: no part $part" >&2
        exit 2
    fi
    # shellcheck source=/dev/null
    . "$here/$part/cases.sh"
    "test_$part"
done
echo "$passed passed, $failed failed, $skipped skipped"
((failed == 0))

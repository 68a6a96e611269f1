#!/bin/bash
# The files of third parties, read through Zonda's library.
#
#   ZONDA_CORPUS   a large corpus with check_library.py and MANIFEST.tsv (optional); needs a Python with numpy
# tests/rig/places.py has the other settings.
#
# The small set committed beside this script is always checked. Of the large one: every classic file
# and every HDF5 file must give the expected answers, but for those of exceptions.txt; every damaged
# file and every file of a foreign format must end in an error code or an answer within 5 seconds and
# 256 MiB (what is read out of damaged bytes binds nobody, so differences are shown and not counted;
# a crash, a hang or a huge allocation is).
set -u
here=$(cd "$(dirname "$0")" && pwd)
eval "$("$here/../rig/shell.py" numpy)"
passed=0 failed=0 skipped=0

if [ ! -e "$library" ]; then
    echo "corpus: no $library: build it first" >&2
    exit 2
fi
logs=$(mktemp -d) || exit 2
trap 'rm -rf "$logs"' EXIT

# add PASSED FAILED
add() {
    passed=$((passed + $1)) failed=$((failed + $2))
}

# counts LOG: the two numbers of its closing line; a log without one counts as one failure
counts() {
    sed -n 's/^\([0-9]*\) passed, \([0-9]*\) failed.*/\1 \2/p' "$1" | tail -n 1 | grep . || echo 0 1
}

python3 "$here/check_files.py" "$library" >"$logs/small" 2>&1
cat "$logs/small" | grep -v '^[0-9]* passed'
add $(counts "$logs/small")

why=
[ -n "$python" ] || why="no Python with numpy"
[ -f "$corpus/check_library.py" ] || why="$corpus holds no check_library.py"
[ -n "$corpus" ] || why="ZONDA_CORPUS is not set"
if [ -n "$why" ]; then
    echo "SKIP corpus -- $why: the committed files only"
    skipped=$((skipped + 1))
else
    check() {
        PYTHONDONTWRITEBYTECODE=1 "$python" "$corpus/check_library.py" --lib "$library" --root "$corpus" \
            --only "$1" --jobs "${ZONDA_JOBS:-2}" "${@:2}" 2>&1
    }
    check '^classic ' >"$logs/classic"
    sed -n -e 's/^\(crash\|differs\) */FAIL /p' "$logs/classic"
    set -- $(counts "$logs/classic")
    [ "$2" -ne 0 ] && ! grep -q '^crash\|^differs' "$logs/classic" && cat "$logs/classic"
    echo "classic files: $1 as expected, $2 not"
    add "$1" "$2"

    # A line of exceptions.txt: the path in the corpus, and why the answer may be another.
    check '^(netcdf4|hdf5|driver|sidecar) ' >"$logs/hdf5"
    allowed=0
    while read -r line; do
        file=$(echo "$line" | awk '{print $2}')
        if [ "${line%% *}" = differs ] && grep -qF "$file |" "$here/exceptions.txt"; then
            allowed=$((allowed + 1))
        else
            echo "FAIL ${line#* }"
        fi
    done < <(grep '^crash\|^differs' "$logs/hdf5")
    set -- $(counts "$logs/hdf5")
    [ "$2" -ne 0 ] && ! grep -q '^crash\|^differs' "$logs/hdf5" && cat "$logs/hdf5"
    echo "HDF5 files: $1 as expected, $allowed otherwise for a known reason, $(($2 - allowed)) not"
    add $(($1 + allowed)) $(($2 - allowed))

    # The limit counts the data of the checking program, too.
    check '^(malformed|foreign) ' --limit-mb 400 --seconds 10 >"$logs/damaged"
    set -- $(counts "$logs/damaged")
    crashes=$(grep -c '^crash' "$logs/damaged")
    if grep -q '^[0-9]* passed' "$logs/damaged"; then
        all=$(($1 + $2))
    else
        cat "$logs/damaged"
        all=1 crashes=1
    fi
    sed -n -e 's/^crash */FAIL /p' -e 's/^differs */note: /p' "$logs/damaged"
    echo "damaged and foreign files: $((all - crashes)) end in a code or an answer, $crashes do not"
    add $((all - crashes)) "$crashes"
fi
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]

#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Runs the same calls on the distribution's libnetcdf and on Zonda's: transcripts of all codes and
# values must be equal, and so must the files, as the distribution's ncdump shows them. Differences
# that are meant are listed, each with its reason, in exceptions.txt.
#
#   tests/oracle/run.sh             every family
#   tests/oracle/run.sh att data    some
#
# tests/rig/places.py has the settings. Scratch is out/oracle/FAMILY/{reference,zonda}.
set -uo pipefail
cd "$(dirname "$0")/../.."

eval "$(tests/rig/shell.py)"
here=tests/oracle
cc=${CC:-gcc}
passed=0 failed=0 skipped=0

if [ $# -gt 0 ]; then
    families=("$@")
else
    families=()
    # Only programs of this harness; conversion_facts.c is run by the tests of zonda-convert.
    while read -r source; do
        families+=("$(basename "$source" .c)")
    done < <(grep -l -e '"harness.h"' -e '"nc4_tree.h"' -e '"nc4_write.h"' "$here"/*.c)
fi

if [ ! -e "$library" ]; then
    echo "tests/oracle: no libnetcdf.so.19 in $libdir; run make build" >&2
    exit 1
fi
if [ -z "$oracle" ] || ! command -v ncdump >/dev/null; then
    echo "tests/oracle: no libnetcdf.so.19 or no ncdump on this system to compare with" >&2
    echo "0 passed, 0 failed, ${#families[@]} skipped"
    exit 0
fi
if [ "$oracle/libnetcdf.so.19" -ef "$library" ]; then
    echo "tests/oracle: both libraries are one file" >&2
    exit 1
fi

# dump FILE: the file as the distribution sees it, without its name.
dump() {
    LD_LIBRARY_PATH=$oracle timeout 60 ncdump -n file "$1" 2>&1 | sed "s|${1%/*}/||g"
}

# run SIDE LIBDIR: the program in an empty folder of its own.
run() {
    local folder=$scratch/$1
    mkdir -p "$folder"
    (cd "$folder" && LD_LIBRARY_PATH=$2 timeout 300 "$program") \
        >"$scratch/$1.txt" 2>"$scratch/$1.err"
    local status=$?
    echo "exit status $status" >>"$scratch/$1.txt"
    # What goes to standard error is part of the interface of netCDF-2.
    sed 's/^/stderr: /' "$scratch/$1.err" >>"$scratch/$1.txt"
}

for family in "${families[@]}"; do
    scratch=$PWD/out/oracle/$family
    program=$scratch/program
    rm -rf "$scratch"
    mkdir -p "$scratch"
    if ! "$cc" -std=gnu11 -O1 -g -Wall -Wextra -Wno-unused-function -I"$here" \
        "$here/$family.c" -o "$program" -L"$oracle" -lnetcdf -lm 2>"$scratch/compile.err"; then
        echo "FAIL $family: does not compile"
        sed 's/^/    /' "$scratch/compile.err"
        failed=$((failed + 1))
        continue
    fi
    if grep -q 'prepared(' "$here/$family.c"; then
        # Files of the reference that both libraries read.
        for side in reference zonda; do
            mkdir -p "$scratch/$side"
            (cd "$scratch/$side" && LD_LIBRARY_PATH=$oracle timeout 60 "$program" prepare) ||
                echo "    $family: the files to be read could not be made"
        done
    fi
    run reference "$oracle"
    run zonda "$libdir"
    report=$(python3 "$here/compare.py" "$family" "$scratch/reference.txt" "$scratch/zonda.txt" \
        "$here/exceptions.txt")
    status=$?

    files=0 different=
    while read -r name; do
        files=$((files + 1))
        if [ "$(dump "$scratch/reference/$name")" != "$(dump "$scratch/zonda/$name")" ]; then
            different+=" $name"
        fi
    done < <(cd "$scratch" && find reference zonda -name '*.nc' -size -4096k -printf '%f\n' | sort -u)

    calls=$(grep -c '^[0-9]*: ' "$scratch/reference.txt")
    if [ $status -eq 0 ] && [ -z "$different" ] && [ "$calls" -gt 0 ]; then
        echo "ok   $family ($calls calls, $files files)"
        passed=$((passed + 1))
        rm -rf "$scratch"/{reference,zonda}
    else
        echo "FAIL $family: see out/oracle/$family/{reference,zonda}.txt"
        [ -z "$report" ] || echo "$report"
        [ -z "$different" ] || echo "    files differ:$different"
        failed=$((failed + 1))
    fi
done

echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]

#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Crash tests, from outside: what a library has promised must be in the file
# whenever its process dies, whenever the power fails, and whichever call meets a full disk.
#
#   tests/crash/run.sh                  samples, about three minutes on two cores
#   tests/crash/run.sh --long           every state, 500 kills, every call made to fail
#   tests/crash/run.sh --only PATTERN   scenarios with PATTERN in SCENARIO/VERSION (4: netCDF-4)
#   tests/crash/run.sh --seed N         the random choices of an earlier run
#   tests/crash/run.sh --parts LIST     of prefix, power, sector, kill, faults, tools
#
# ZONDA_LIBDIR (dist/lib) is the library under test. CRASH_WRITER_LIB is the folder of another
# library to write with: that of the distribution shows what it loses. ZONDA_PYTHON (out/venv) has
# h5py; without it netCDF-4 states have two readers. ZONDA_SCRATCH (/dev/shm) takes the states;
# those that fail are kept in out/crash/failed.
set -uo pipefail
cd "$(dirname "$0")/../.."

here=tests/crash
bin=out/crash/bin
cc=${CC:-gcc}
flags=(-std=gnu11 -O2 -g -Wall -Wextra -Werror)
libdir=$(realpath -m "${ZONDA_LIBDIR:-dist/lib}")
parts=prefix,power,sector,kill,faults,tools
seed=$(date +%s)
options=()

while [ $# -gt 0 ]; do
    case $1 in
        --long) options+=(--long) ;;
        --only) options+=(--only "${2?--only needs a pattern}"); shift ;;
        --seed) seed=${2?--seed needs a number}; shift ;;
        --parts) parts=${2?--parts needs a list}; shift ;;
        *)
            sed -n '4,/^[^#]/s/^# \{0,1\}//p' "$0" >&2
            exit 2
            ;;
    esac
    shift
done

if [ ! -e "$libdir/libnetcdf.so.19" ]; then
    echo "tests/crash: no libnetcdf.so.19 in $libdir; run make build" >&2
    exit 1
fi
oracle=${ORACLE_LIBDIR:-}
if [ -z "$oracle" ]; then
    found=$(ldconfig -p | awk '/libnetcdf\.so\.19 / { print $NF; exit }')
    oracle=${found:+$(dirname "$found")}
fi
if [ -z "$oracle" ]; then
    echo "tests/crash: no libnetcdf.so.19 of the distribution to judge with"
    echo "0 passed, 0 failed, 1 skipped"
    exit 0
fi

skipped=
if ! "${ZONDA_PYTHON:-out/venv/bin/python}" -c "import h5py" 2>/dev/null; then
    echo "tests/crash: no h5py, so netCDF-4 states have two readers"
    skipped=", 1 skipped"
fi

rm -rf out/crash/failed
mkdir -p "$bin"
compile() {
    if ! "$cc" "${flags[@]}" "$@"; then
        echo "tests/crash: the programs do not compile"
        echo "0 passed, 1 failed"
        exit 1
    fi
}
plan=("$here/plan.c" "$here/scenes.c" "$here/scenes4.c" "$here/values.c")
compile -fPIC -shared "$here/log_shim.c" "$here/log_core.c" -o "$bin/log_shim.so" -ldl
compile "$here/writer.c" "${plan[@]}" -o "$bin/writer" -L"$oracle" -lnetcdf -ldl
judge=("$here/check.c" "$here/shows.c" "$here/model.c" "${plan[@]}")
compile "${judge[@]}" -o "$bin/check" -L"$oracle" -lnetcdf
compile "${judge[@]}" "$here/plain.c" -o "$bin/check_plain" -L"$oracle" -lnetcdf

passed=0 failed=0
# part SCRIPT ARGUMENTS...: shows all but the counts at the end, which are added up.
part() {
    local log=out/crash/part.log status counts
    python3 "$here/$1" "${@:2}" --seed "$seed" "${options[@]}" >"$log" 2>&1
    status=$?
    counts=$(grep -E '^[0-9]+ passed, [0-9]+ failed' "$log" | tail -n 1)
    grep -vE '^[0-9]+ passed, [0-9]+ failed' "$log"
    if [ -z "$counts" ] || { [ $status -ne 0 ] && [[ $counts == *" 0 failed" ]] && [ "${counts%% *}" != 0 ]; }; then
        echo "FAIL $1 ended with $status"
        failed=$((failed + 1))
        return
    fi
    passed=$((passed + ${counts%% *}))
    counts=${counts#*passed, }
    failed=$((failed + ${counts%% *}))
}

replayed=
for name in prefix power sector; do
    [[ ,$parts, == *,$name,* ]] && replayed+=${replayed:+,}$name
done
[ -z "$replayed" ] || part replay.py --part "$replayed"
[[ ,$parts, != *,kill,* ]] || part kill.py
[[ ,$parts, != *,faults,* ]] || part faults.py
[[ ,$parts, != *,tools,* ]] || part tools.py

echo "$passed passed, $failed failed$skipped"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]

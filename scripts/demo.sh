#!/usr/bin/env bash
# The demonstration: one program, two libraries.
#
# Compiles examples/history_model.c once, against the public header and linked with the
# distribution's libnetcdf, and runs that binary on the distribution's library and on Zonda's
# (LD_LIBRARY_PATH), in turns with the limits: a raw sequential write of the same bytes, and tuned
# Fortran unformatted output of the same arrays. Prints a table, has a third reader compare the two
# files, shows a header, and draws a map of one field and what the two stacks do to the file. Exit
# status 1 if anything fails or any value differs.
#
# DEMO_MB        millions of bytes in a history file (200)
# DEMO_REPS      repetitions of each measurement, of which the median is shown (3)
# DEMO_TYPES     types in the file (double float)
# DEMO_ORDER     random, sorted or scattered (random); see history_model --help
# ZONDA_LIB      folder of the library shown (dist/lib)
# ZONDA_INCLUDE  folder of the header compiled against (dist/include)
# ZONDA_TOOL     the zonda command that draws (dist/bin/zonda)
# ZONDA_SCRATCH  where the files are written (out/demo); about three times DEMO_MB is needed. The
#                pictures stay there, in pictures/
# KEEP=1         leaves them there
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
mb=${DEMO_MB:-200}
reps=${DEMO_REPS:-3}
types=${DEMO_TYPES:-double float}
order=${DEMO_ORDER:-random}
zonda_lib=${ZONDA_LIB:-$root/dist/lib}
include=${ZONDA_INCLUDE:-$root/dist/include}
tool=${ZONDA_TOOL:-$root/dist/bin/zonda}
scratch=${ZONDA_SCRATCH:-$root/out/demo}
bin=$root/out/demo-bin

die() { echo "demo: $*" >&2; exit 1; }

# Progress is for people: one line per phase and a percentage, on a terminal only.
if [ -t 1 ]; then terminal=1; else terminal=0; fi
say() { if [ $terminal = 1 ]; then printf '\r\033[K%s\n' "$*"; fi; }
percent() { if [ $terminal = 1 ]; then printf '\r\033[K%3d %%  %s' "$1" "$2"; fi; }
clear_line() { if [ $terminal = 1 ]; then printf '\r\033[K'; fi; }

[ -e "$zonda_lib/libnetcdf.so.19" ] || die "no libnetcdf.so.19 in $zonda_lib: run 'make build' first"
[ -e "$include/netcdf.h" ] || die "no netcdf.h in $include: run 'make build' first"
[ -x "$tool" ] || die "no $tool: run 'make build' first"
for needed in gcc gfortran ncdump ncks python3; do
    command -v $needed >/dev/null || die "$needed is missing: run scripts/setup.sh"
done
[[ $mb =~ ^[1-9][0-9]*$ && $reps =~ ^[1-9][0-9]*$ ]] || die "DEMO_MB and DEMO_REPS are numbers >= 1"

# The distribution's own library, whatever the caller's environment says.
unset LD_LIBRARY_PATH LD_PRELOAD
on_zonda() { LD_LIBRARY_PATH=$zonda_lib "$@"; }

# A reader that runs on neither: scipy has its own; cdo here runs on the distribution's library.
reader=
for python in "$root/out/venv/bin/python" python3; do
    if "$python" -c 'import scipy.io' 2>/dev/null; then reader=$python; break; fi
done
[ -n "$reader" ] || command -v cdo >/dev/null || die "neither scipy nor cdo found: run scripts/setup.sh"

made_scratch=0
if [ ! -d "$scratch" ]; then mkdir -p "$scratch" && made_scratch=1; fi
mkdir -p "$bin"
files=()
cleanup() {
    if [ "${KEEP:-0}" = 1 ]; then
        echo "files are kept in $scratch"
    else
        rm -f "${files[@]}" "$scratch/results.jsonl"
        if [ $made_scratch = 1 ]; then rmdir "$scratch" 2>/dev/null || true; fi
    fi
}
trap cleanup EXIT

# ---- compile ------------------------------------------------------------------------------------
say "compiling the examples against $include"
gcc -std=c99 -O2 -Wall -Wextra -I"$include" "$root/examples/history_model.c" \
    -o "$bin/history_model" -lnetcdf -lm
gcc -std=c99 -O3 -march=native -Wall -Wextra "$root/examples/raw_write.c" -o "$bin/raw_write"
gfortran -O2 "$root/examples/fortran_yardstick.f90" -o "$bin/fortran_yardstick"

# The same binary on two libraries: make sure that it is so.
loaded() { ldd "$bin/history_model" | awk '$1 ~ /^libnetcdf\.so/ {print $3}'; }
theirs=$(loaded)
ours=$(on_zonda ldd "$bin/history_model" | awk '$1 ~ /^libnetcdf\.so/ {print $3}')
[ -n "$theirs" ] || die "history_model does not need libnetcdf"
[ "$ours" -ef "$zonda_lib/libnetcdf.so.19" ] || die "history_model would load $ours, not Zonda's"

# ---- measure ------------------------------------------------------------------------------------
results=$scratch/results.jsonl
: >"$results"
n_types=$(wc -w <<<"$types")
done_runs=0
all_runs=$((n_types * (reps + 1) * 5)) # the first round warms up and is not counted

# measure NAME ROUND FILE COMMAND...: runs it, keeps its JSON lines. Each run finds the page cache
# alike: the pages of a file just removed. (Memory that a virtual machine has given back to its host
# costs ten times as much at the first touch, and would be charged to whoever comes next.)
measure() {
    local name=$1 round=$2 file=$3
    shift 3
    percent $((100 * done_runs / all_runs)) "$type, $name"
    rm -f "$file"
    "$bin/raw_write" --phase write --bytes $((mb * 1000000)) "$file" >/dev/null
    rm -f "$file"
    local lines
    lines=$("$@") || die "$name failed"
    done_runs=$((done_runs + 1))
    local line
    while IFS= read -r line; do
        printf '{"type": "%s", "who": "%s", "round": %d, "result": %s}\n' \
            "$type" "$name" "$round" "$line" >>"$results"
    done <<<"$lines"
}

say "writing and reading back $mb MB, $reps times on each library ($(nproc) cores)"
for type in $types; do
    reference_file=$scratch/reference-$type.nc
    zonda_file=$scratch/zonda-$type.nc
    raw_file=$scratch/raw-$type
    files+=("$reference_file" "$zonda_file" "$raw_file")
    model=("$bin/history_model" --type "$type" --order "$order" --size "$mb")
    for ((round = 0; round <= reps; round++)); do
        run_reference() { measure reference $round "$reference_file" "${model[@]}" "$reference_file"; }
        run_zonda() { measure zonda $round "$zonda_file" on_zonda "${model[@]}" "$zonda_file"; }
        if ((round % 2)); then run_zonda; run_reference; else run_reference; run_zonda; fi
        if ((round == 0)); then
            # The yardsticks write what the model wrote: as many bytes, arrays of the same shape.
            read -r bytes record steps lat lon lev flat deep < <(python3 - "$results" <<'PYTHON'
import json, sys
r = json.loads(open(sys.argv[1]).readlines()[-1])["result"]
p = r["params"]
print(r["bytes"], p["record_bytes"], p["steps"], p["lat"], p["lon"], p["lev"], p["fields2d"],
      p["fields3d"])
PYTHON
            )
        fi
        measure raw $round "$raw_file" "$bin/raw_write" --bytes "$bytes" --record "$record" "$raw_file"
        measure convert $round "$raw_file" "$bin/raw_write" --mode convert --type "$type" \
            --bytes "$bytes" --record "$record" "$raw_file"
        measure fortran $round "$raw_file" "$bin/fortran_yardstick" "$raw_file" "$type" variable \
            "$steps" "$lat" "$lon" "$lev" "$flat" "$deep"
        if ((round == 0)); then all_runs=$((all_runs + reps + 1)); fi # and as whole time steps
        measure fortran-step $round "$raw_file" "$bin/fortran_yardstick" "$raw_file" "$type" step \
            "$steps" "$lat" "$lon" "$lev" "$flat" "$deep"
        rm -f "$raw_file"
    done
done
clear_line
python3 "$root/scripts/demo_table.py" "$results"

# ---- compare ------------------------------------------------------------------------------------
echo
for type in $types; do
    a=$scratch/reference-$type.nc
    b=$scratch/zonda-$type.nc
    percent 100 "$type, comparing"
    if [ -n "$reader" ]; then
        what=$("$reader" "$root/scripts/compare_classic.py" "$a" "$b") || die "the files differ"
    else
        out=$(cdo -s diffn "$a" "$b") || die "the files differ: $out"
        [ -z "$out" ] || die "the files differ: $out"
        what="cdo diffn on $theirs: no difference"
    fi
    clear_line
    echo "$type files equal: $what"
done

# ---- look ---------------------------------------------------------------------------------------
set -- $types
shown=$scratch/zonda-$1.nc
head_of() { # the first lines of a command's output, and its exit status
    local out
    out=$("${@:2}") || die "failed: ${*:2}"
    sed -n "1,$1p" <<<"$out"
}
echo
echo "Zonda's file, header by the distribution's ncdump -h:"
head_of 24 ncdump -h "$shown" | sed 's/^/    /'
echo "    ..."
echo
echo "the same by ncks running on Zonda (ncks -m -v T):"
head_of 40 on_zonda ncks -m -v T "$shown" | sed 's/^/    /'
echo
echo "and three of its values (ncks --trd -H -C -v T):"
head_of 3 on_zonda ncks --trd -H -C -v T -d time,0 -d lev,0 -d lat,30 -d lon,0,2 "$shown" | sed 's/^/    /'

# ---- draw ---------------------------------------------------------------------------------------
# A few records, with a record of every transfer that reaches the file: without Zonda's stack, and
# with the default one. Settings of the caller's for stacks and traces would be in the way.
pictures=$scratch/pictures
traced=$scratch/traced.nc
without=$scratch/without.txt
with=$scratch/with.txt
files+=("$traced" "$without" "$with")
mkdir -p "$pictures"
rm -f "$without" "$with" # traces are added to what is there
unset NETCDF_FFIOSPEC NETCDF_FFIO_SPEC ZONDA_TRACE
trace_run() { # SPEC
    percent 100 "tracing with $1"
    ZONDA_IO=$1 on_zonda "$bin/history_model" --type double --order "$order" --steps 3 "$traced" \
        >/dev/null || die "the traced run failed"
}
trace_run "event:$without,file"
trace_run "cache,event:$with"
for picture in png svg; do
    "$tool" view "$shown" T --at lev=-1 -o "$pictures/temperature.$picture" || die "no map"
    "$tool" trace "$without" "$with" --label "without Zonda's stack: event,file" \
        --label "with it: cache,event,file" -o "$pictures/offsets.$picture" >"$scratch/traces.out" ||
        die "no picture of the traces"
done
files+=("$scratch/traces.out")
clear_line
echo
echo "what reaches the file in three time steps, without Zonda's stack and with it (zonda trace):"
sed "s|$scratch/||; s/^/    /" "$scratch/traces.out"
echo
echo "pictures, by zonda view and zonda trace:"
for picture in "$pictures"/{temperature,offsets}.{png,svg}; do echo "    ${picture#"$root/"}"; done

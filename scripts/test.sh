#!/usr/bin/env bash
# Runs the tests, stage by stage, on what `make build` left in dist/. One line per stage: its
# result, how long it took, how long processors were busy with it, and the last line it printed, which is
# its own count. The full output of each stage is in out/test/STAGE.log, and is shown at its end if the
# stage failed. Three stages run at a time, since most of them wait as much as they compute.
#
#   scripts/test.sh             every stage
#   scripts/test.sh --quick     those that take about two minutes together
#   scripts/test.sh STAGE...    the stages named
#
# ZONDA_TEST_JOBS (3) says how many stages run at a time: 1 is for timings of single stages.
# ZONDA_CORPUS may name a folder of further test files, see tests/corpus and tests/programs.
# The last line is `N passed, N failed`; the exit status is 1 if a stage failed.
set -uo pipefail
cd "$(dirname "$0")/.."

quick=(lint fast abi headers prefix rig counts)
# The longest first, so that no long one is left alone at the end. `suites` uses what `python` installs.
all=(unit programs python crash edit lint suites ncdump corpus interop async tools cli c oracle conformance limits runtime growth par servers remote dap cdl neighbours npy beside scripts model ends rig docs counts outside abi prefix salvage headers)

# The command of each stage.
stage() {
    case $1 in
        lint) scripts/lint.sh ;;
        unit | fast)
            # The reference library's side of tests, where it was set up.
            local python=${ZONDA_PYTHON:-$PWD/out/venv/bin/python}
            if "$python" -c 'import h5py, hdf5plugin' 2>/dev/null; then
                export ZONDA_PYTHON=$python
            fi
            local skip=() status=0
            [ "$1" = unit ] || mapfile -t skip < <(echo --exact && sed -n 's/^[a-z].*/--skip\n&/p' tests/slow-units.txt)
            # Saved OPeNDAP responses, where the stage `conformance` unpacked the reference's source package once.
            local dap=$PWD/out/conformance/src/netcdf-c-4.9.0
            [ ! -d "$dap" ] || export ZONDA_DAP_DATA=$dap
            # Examples are compiled by the lints: nothing of them is run.
            cargo test --workspace --exclude zonda-python --quiet --no-fail-fast --lib --bins --tests -- "${skip[@]}" || status=$?
            [ "$1" = fast ] || cargo test --workspace --exclude zonda-python --quiet --no-fail-fast --doc || status=$?
            return $status
            ;;
        abi)
            abi/check.py --preload dist/lib/libzonda-preload.so &&
                tests/c/preload.py &&
                abi/check.py dist/lib/libnetcdf_mpi.so.19 dist/lib/libnetcdf_pnetcdf.so.19 &&
                abi/check.py dist/lib/libnetcdf.so.19
            ;;
        headers) tests/c/header_parity.py ;;
        docs) tests/docs/run.py ;;
        prefix) tests/c/dist.sh ;;
        rig) tests/rig/run.py ;;
        c) tests/c/run.sh ;;
        oracle) tests/oracle/run.sh ;;
        programs) tests/programs/run.py ;;
        corpus) tests/corpus/run.sh ;;
        cli) tests/cli/run.sh ;;
        salvage) tests/salvage/run.py ;;
        ncdump) tests/ncdump/run.py ;;
        cdl) tests/cdl/run.py ;;
        tools)
            tests/tools/nccopy.py && tests/tools/memory.py && tests/tools/answers.py &&
                tests/tools/options.py && tests/tools/words.py && tests/tools/sparse.py
            ;;
        ends) tests/ends/run.py ;;
        crash) tests/crash/run.py ;;
        interop) tests/interop/usage.py && tests/interop/run.py ;;
        beside) tests/beside/run.py && tests/beside/late.py ;;
        neighbours) tests/neighbours/run.py ;;
        npy) tests/npy/run.py ;;
        outside) tests/outside/run.py ;;
        model) tests/model/run.py ;;
        limits) tests/limits/run.py && tests/limits/foreign.py ;;
        runtime) tests/runtime/run.py && tests/runtime/ways.py && tests/runtime/node.py && tests/runtime/lives.py ;;
        edit) tests/edit/run.py ;;
        growth) tests/growth/run.py ;;
        # Of what threads share a third; `make counts` is all of it.
        counts) tests/counts/run.py && tests/counts/locked.py --only '^(get1-own|put1-own|get1-random|chunks-get-own|chunks-put-own)$' ;;
        servers) tests/servers/run.py ;;
        par) tests/par/run.py ;;
        remote) tests/remote/run.py ;;
        dap) tests/dap/run.py ;;
        async)
            # With what of the reference's tests puts most; `make async` runs all of them.
            tests/conformance/run.py --allowed --async on --only "^($(paste -sd '|' tests/async/sample.txt))$" &&
                tests/async/run.py &&
                tests/async/helper.py &&
                tests/async/kills.py &&
                tests/async/sudden.py
            ;;
        python) python/tests/run.sh ;;
        conformance) tests/conformance/run.py --allowed ;;
        scripts)
            # The reference's own scripts about its tools, with ours in their place.
            tests/conformance/run.py --allowed --only '^(ncdump|ncgen3)/' --tools dist/bin
            ;;
        suites) python/tests/suites/run.py --quick ;;
        *)
            echo "no stage $1; there are: ${all[*]}"
            return 2
            ;;
    esac
}

# cargo prints a result per test program: their sum is the summary of that stage.
summary() {
    if [ "$1" = unit ] || [ "$1" = fast ]; then
        awk '/^test result:/ { p += $4; f += $6; i += $8 }
             END { printf "%d passed, %d failed, %d ignored\n", p, f, i }' "$2"
    else
        grep -v '^[[:space:]]*$' "$2" | tail -n 1
    fi
}

case ${1-} in
    --quick) stages=("${quick[@]}") ;;
    "") stages=("${all[@]}") ;;
    -*)
        sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0" >&2
        exit 2
        ;;
    *) stages=("$@") ;;
esac

# What only one stage at a time can have: the build folder, the build of the reference's tests, the installed wheel.
needs() {
    case $1 in
        lint | unit | fast | par) echo build ;;
        python) echo build wheel ;;
        suites | docs) echo wheel ;;
        async | conformance | scripts) echo reference ;;
    esac
}

logs=out/test
mkdir -p "$logs"
passed=0 failed=0 said=()
# Of stages that run: names by process, when they began, and what they have for themselves.
declare -A running=() began=() taken=()

# Starts a stage: no terminal, so that it can neither ask nor draw. The last line of its .time file is what its processes cost.
start() {
    local name=$1 need
    for need in $(needs "$name"); do taken[$need]=$name; done
    (
        (stage "$name") >"$logs/$name.log" 2>&1 </dev/null
        status=$?
        times >"$logs/$name.time"
        exit $status
    ) &
    running[$!]=$name
    began[$name]=$(date +%s)
}

# Processor seconds of a stage, from the second line of `times`: user and system time of all that it ran.
busy() {
    awk 'NR == 2 { for (i = 1; i <= 2; i++) { split($i, t, /[ms]/); s += 60 * t[1] + t[2] } printf "%.0f", s }' "$logs/$1.time"
}

# Waits for the next stage to end, and says how it did.
finish() {
    local pid status=0 name need result
    wait -n -p pid "${!running[@]}" || status=$?
    name=${running[$pid]}
    unset "running[$pid]"
    for need in $(needs "$name"); do unset "taken[$need]"; done
    if [ $status -eq 0 ]; then
        result="ok  "
        passed=$((passed + 1))
    else
        result=FAIL
        failed=$((failed + 1))
    fi
    printf '%s %-12s %5d s, busy %5s s  %s\n' "$result" "$name" $(($(date +%s) - began[$name])) "$(busy "$name")" \
        "$(summary "$name" "$logs/$name.log")"
    if [ "$result" = FAIL ]; then
        said+=("$name")
        faults "$name" 40
        tail -n 20 "$logs/$name.log" | sed 's/^/       | /'
        echo "       | (all of it: $logs/$name.log)"
    fi
}

# The lines of a failed stage that say what is wrong, at most so many.
faults() {
    grep -E '^([Ff][Aa][Ii][Ll]|test .* FAILED|error(\[|:)|thread .* panicked|---- .* stdout|Traceback|[0-9.]+ s, out of time)' "$logs/$1.log" |
        head -n "$2" | cut -c 1-500 | sed "s/^/       $1: /"
}

# The first stage of those to come that can run beside those that do; empty if there is none. What one has to wait for
# goes to none that comes after it.
next() {
    local name need free
    local -A wanted=()
    for name in "${stages[@]}"; do
        free=yes
        for need in $(needs "$name"); do [ -z "${taken[$need]-}${wanted[$need]-}" ] || free=; done
        [ -z "$free" ] || { echo "$name"; return; }
        for need in $(needs "$name"); do wanted[$need]=$name; done
    done
}

# Stages have process groups of their own, so that one that is broken off ends with all that it started.
set -m
trap 'for pid in "${!running[@]}"; do kill -- "-$pid" 2>/dev/null; done' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
whole=$(date +%s)
while [ ${#stages[@]} -gt 0 ] || [ ${#running[@]} -gt 0 ]; do
    name=
    [ ${#running[@]} -ge "${ZONDA_TEST_JOBS:-3}" ] || name=$(next)
    if [ -z "$name" ]; then
        finish
        continue
    fi
    start "$name"
    rest=()
    for other in "${stages[@]}"; do [ "$other" = "$name" ] || rest+=("$other"); done
    stages=("${rest[@]}")
done
# Once more where they are found: the last lines of a long output.
for name in "${said[@]}"; do faults "$name" 8; done
printf 'all stages %10d s\n' $(($(date +%s) - whole))
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]

#!/usr/bin/env bash
# Runs the tests, stage by stage, on what `make build` left in dist/. One line per stage: its
# result, its time, and the last line it printed, which is its own count. The full output of each
# stage is in out/test/STAGE.log, and is shown at its end if the stage failed.
#
#   scripts/test.sh             every stage
#   scripts/test.sh --quick     those that take about a minute together
#   scripts/test.sh STAGE...    the stages named
#
# ZONDA_CORPUS may name a folder of further test files, see tests/corpus and tests/programs.
# The last line is `N passed, N failed`; the exit status is 1 if a stage failed.
set -uo pipefail
cd "$(dirname "$0")/.."

quick=(lint unit abi headers prefix)
all=("${quick[@]}" c oracle programs corpus cli salvage ncdump cdl tools ends crash interop beside neighbours outside edit growth model limits async conformance scripts python suites)

# The command of each stage.
stage() {
    case $1 in
        lint) scripts/lint.sh ;;
        unit)
            # The reference library's side of tests, where it was set up.
            local python=${ZONDA_PYTHON:-$PWD/out/venv/bin/python}
            if "$python" -c 'import h5py, hdf5plugin' 2>/dev/null; then
                export ZONDA_PYTHON=$python
            fi
            cargo test --workspace --exclude zonda-python --quiet --no-fail-fast
            ;;
        abi)
            abi/check.py --preload dist/lib/libzonda-preload.so &&
                abi/check.py dist/lib/libnetcdf.so.19
            ;;
        headers) tests/c/header_parity.py ;;
        prefix) tests/c/dist.sh ;;
        c) tests/c/run.sh ;;
        oracle) tests/oracle/run.sh ;;
        programs) tests/programs/run.sh ;;
        corpus) tests/corpus/run.sh ;;
        cli) tests/cli/run.sh ;;
        salvage) tests/salvage/run.py ;;
        ncdump) tests/ncdump/run.py ;;
        cdl) tests/cdl/run.py ;;
        tools) tests/tools/nccopy.py && tests/tools/memory.py ;;
        ends) tests/ends/run.py ;;
        crash) tests/crash/run.sh ;;
        interop) tests/interop/usage.py && tests/interop/run.py ;;
        beside) tests/beside/run.py && tests/beside/late.py ;;
        neighbours) tests/neighbours/run.py ;;
        outside) tests/outside/run.py ;;
        model) tests/model/run.py ;;
        limits) tests/limits/run.py ;;
        edit) tests/edit/run.py ;;
        growth) tests/growth/run.py ;;
        async)
            # With what of the reference's tests puts most; `make async` runs all of them.
            tests/conformance/run.py --allowed --async on --only "^($(paste -sd '|' tests/async/sample.txt))$" &&
                tests/async/run.py &&
                out/venv/bin/python tests/async/helper.py &&
                out/venv/bin/python tests/async/kills.py &&
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
    if [ "$1" = unit ]; then
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

logs=out/test
mkdir -p "$logs"
passed=0 failed=0
for name in "${stages[@]}"; do
    log=$logs/$name.log
    start=$(date +%s)
    # A group of its own and no terminal: a stage can neither ask nor draw.
    if (stage "$name") >"$log" 2>&1 </dev/null; then
        result="ok  "
        passed=$((passed + 1))
    else
        result=FAIL
        failed=$((failed + 1))
    fi
    printf '%s %-12s %5d s  %s\n' "$result" "$name" $(($(date +%s) - start)) "$(summary "$name" "$log")"
    if [ "$result" = FAIL ]; then
        tail -n 60 "$log" | sed 's/^/       | /'
        echo "       | (all of it: $log)"
    fi
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]

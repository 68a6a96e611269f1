# Cases of `zonda tune`, read by ../run.sh. What is fastest is the machine's business; no case asks.

test_tune() {
    local told
    if ! command -v gcc >/dev/null; then
        skip "tune: there is no gcc"
        return
    fi
    mkdir -p tune/elsewhere
    gcc -o tune/known -I"$prefix/include" "$here/trace/known.c" "$prefix/lib/libnetcdf.so.19" || return
    if (cd tune && "$zonda" tune --json --rounds 1 -- ./known known.nc) >told.json 2>why &&
        python3 "$here/tune/told.py" told.json 8 2>>why; then
        pass "tune a program"
    else
        fail "tune a program"
        sed 's/^/        /' why
    fi
    # From a recording: neither the file nor its folder changes.
    (cd tune && "$zonda" run --trace run.trace -- ./known known.nc)
    told=$(cd tune && sha256sum known.nc && ls -A)
    if (cd tune && "$zonda" tune --trace run.trace --scratch elsewhere --rounds 2 --pauses \
        --device 500M:1us --try cache:3:5 --json) >told.json 2>why &&
        python3 "$here/tune/told.py" told.json 8 cache:3:5,throttle:500M:1us,file 2>>why &&
        [ "$told" = "$(cd tune && sha256sum known.nc && ls -A)" ] && [ -z "$(ls -A tune/elsewhere)" ]; then
        pass "tune a recording"
    else
        fail "tune a recording"
        sed 's/^/        /' why
        (cd tune && ls -A . elsewhere)
    fi
    (cd tune && "$zonda" tune --trace run.trace --rounds 1 --limit 20k) >text 2>why
    if grep -q "known.nc (the first part of them)$" text && ! grep -q "other bytes" text && grep -q "the default" text &&
        grep -qE "^best is |^the default is number " text; then
        pass "tune in words, of the first part of a recording"
    else
        fail "tune in words, of the first part of a recording"
        sed 's/^/        /' text why
    fi
    golden "tune of no recording" "$here/tune/no-trace.out" "$zonda" tune --trace tune/known
    golden "tune of nothing" "$here/tune/nothing.out" "$zonda" tune -- true
    golden "tune without a program" "$here/tune/no-program.out" "$zonda" tune
    golden "tune with a bad size" "$here/tune/bad-limit.out" "$zonda" tune --limit 5X --trace x
}

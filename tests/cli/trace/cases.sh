# Cases of `zonda trace`, read by ../run.sh.

test_trace() {
    local name
    cp "$here"/trace/{without,with,cut,other,idle}.txt .
    for name in without with cut other idle nothing; do
        golden "trace $name" "$here/trace/$name.out" "$zonda" trace "$name.txt"
    done
    golden "trace of an empty file" "$here/trace/empty.out" "$zonda" trace /dev/null
    golden "trace --json" "$here/trace/json.out" "$zonda" trace --json without.txt with.txt
    golden "trace --layer" "$here/trace/layer.out" "$zonda" trace --layer 1 with.txt
    golden "trace --layer of none" "$here/trace/no-layer.out" "$zonda" trace --layer 2 with.txt
    golden "trace with too many labels" "$here/trace/labels.out" "$zonda" trace --label a --label b with.txt
    ZONDA_TRACE=recorded "$zonda" info with.txt >/dev/null 2>&1
    golden "trace --layer of a recording" "$here/trace/recorded-layer.out" "$zonda" trace --layer 0 recorded
    golden "trace --label of a recording" "$here/trace/recorded-label.out" "$zonda" trace --label a recorded
    golden "trace of standard input" "$here/trace/stdin.out" sh -c '"$0" trace - <with.txt' "$zonda"
    golden "trace of a URL" "$here/trace/url.out" "$zonda" trace https://data.example.org/model.nc
    picture "trace as SVG" "$here/trace/one.svg.txt" "$zonda" trace without.txt
    picture "trace of two files as SVG" "$here/trace/two.svg.txt" \
        "$zonda" trace without.txt with.txt --label 'file alone' --label cached
    picture "trace without transfers" "$here/trace/idle.svg.txt" "$zonda" trace idle.txt
    "$zonda" trace without.txt -o trace.png >/dev/null
    is_png "trace as PNG" trace.png

    trace_recordings

    # What the layer writes today is read, and added up as the layer does it.
    if [ -z "$ncgen" ]; then
        skip "trace of a real run: there is no ncgen to make a file with"
        return
    fi
    "$ncgen" -k nc3 -o types.nc "$here/dump/types.cdl"
    rm -f real.txt
    ZONDA_IO=event:real.txt,file "$zonda" dump types.nc >/dev/null
    if "$zonda" trace --json real.txt | python3 -c '
import json, re, sys
trace = json.load(sys.stdin)
found = {o["name"]: o for o in trace["operations"]}
summary = [line for line in open("real.txt") if line.startswith("# event#1 read:")]
calls, ranges, size = map(int, re.search(r"(\d+) calls.* (\d+) ranges, (\d+) bytes", summary[0]).groups())
read = found["read"]
assert (read["calls"], read["ranges"], read["bytes"]) == (calls, ranges, size), (read, summary)
assert calls > 0 and trace["openings"] == 1, trace'; then
        pass "trace of a real run"
    else
        fail "trace of a real run"
    fi
}

# Recordings of a program whose calls are known.
trace_recordings() {
    local kind
    if ! command -v gcc >/dev/null; then
        skip "trace of recordings: there is no gcc"
        return
    fi
    gcc -o known -I"$prefix/include" "$here/trace/known.c" "$prefix/lib/libnetcdf.so.19" || return
    for kind in classic deflate async; do
        rm -f known.nc "$kind.trace"
        if ZONDA_ASYNC=$([ $kind = async ] && echo on || echo off) "$zonda" run --trace "$kind.trace" -- \
            ./known known.nc $([ $kind = classic ] || echo deflate) 2>why &&
            python3 "$here/trace/recording.py" "$zonda" "$kind.trace" "$kind" >/dev/null 2>>why; then
            pass "trace of a recording, $kind"
        else
            fail "trace of a recording, $kind"
            sed 's/^/        /' why
        fi
    done
    # A second run is added; what a kill leaves of a block is said, and is no error; damage is.
    "$zonda" run --trace classic.trace -- ./known known2.nc
    expect "trace of two runs" 2 "$("$zonda" trace classic.trace | grep -c '^classic.trace: process')"
    head -c -20 deflate.trace >torn.trace
    expect "trace of a recording that breaks off" 1 "$("$zonda" trace torn.trace | grep -c 'breaks off at byte')"
    (cat deflate.trace; echo oops, and more than fits a head of a block) >damaged.trace
    expect "trace of a damaged recording" \
        "zonda: damaged.trace: byte $(stat -c %s deflate.trace): no block of a trace begins here" \
        "$("$zonda" trace damaged.trace 2>&1 >/dev/null)"
    expect "trace --html of lines" \
        "zonda: --html and --chrome need a recording (ZONDA_TRACE), not lines of the event layer" \
        "$("$zonda" trace with.txt --html no.html 2>&1 >/dev/null)"
    cp known.nc before.nc
    expect "a trace never takes the place of other files" \
        "zonda: known.nc: there is a file of that name, which is no trace; no further trace" \
        "$(ZONDA_TRACE=known.nc "$zonda" run -- ./known other.nc 2>&1)"
    cmp -s before.nc known.nc || fail "a trace never takes the place of other files: it did"
}

# expect LABEL EXPECTED FOUND
expect() {
    if [ "$2" = "$3" ]; then pass "$1"; else
        fail "$1"
        printf '        %s\n' "expected: $2" "found:    $3"
    fi
}

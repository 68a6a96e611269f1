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
    golden "trace of standard input" "$here/trace/stdin.out" sh -c '"$0" trace - <with.txt' "$zonda"
    picture "trace as SVG" "$here/trace/one.svg.txt" "$zonda" trace without.txt
    picture "trace of two files as SVG" "$here/trace/two.svg.txt" \
        "$zonda" trace without.txt with.txt --label 'file alone' --label cached
    picture "trace without transfers" "$here/trace/idle.svg.txt" "$zonda" trace idle.txt
    "$zonda" trace without.txt -o trace.png >/dev/null
    is_png "trace as PNG" trace.png

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

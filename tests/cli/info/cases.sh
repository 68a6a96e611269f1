# Cases of `zonda info`, read by ../run.sh.

test_info() {
    if [ -z "$ncgen" ]; then
        skip "info: there is no ncgen to make files with"
        return
    fi
    local label
    # The stack is named, since the default one depends on the machine.
    export ZONDA_IO=file
    "$ncgen" -k nc3 -o types.nc "$here/dump/types.cdl"
    "$ncgen" -k nc6 -o packed.nc "$here/dump/packed.cdl"
    "$ncgen" -k cdf5 -o cdf5.nc "$here/dump/cdf5_types.cdl"
    { printf 'CDF\001'; head -c 28 /dev/zero; } >empty.nc
    "$ncgen" -k nc3 -o norecords.nc "$here/dump/norecords.cdl"
    head -c -11 types.nc >short.nc
    head -c 100 types.nc >cut.nc
    printf '\211HDF\r\n\032\n0123456789' >hdf5.nc
    "$ncgen" -k nc4 -o storage.nc "$here/dump/nc4_storage.cdl"
    "$ncgen" -k nc4 -o groups.nc "$here/dump/nc4_groups.cdl"
    "$ncgen" -k nc7 -o model.nc "$here/dump/packed.cdl"
    head -c -3000 storage.nc >broken.nc
    sed 's/TREE/TRUE/g' storage.nc >damaged.nc
    { head -c 512 /dev/zero; cat storage.nc; } >behind.nc
    printf 'no netCDF at all\n' >text.nc
    : >nothing.nc
    for label in types packed cdf5 empty norecords short cut hdf5 text nothing missing storage \
        groups model broken damaged behind; do
        golden "info $label" "$here/info/$label.txt" "$zonda" info "$label.nc"
        golden "info --json $label" "$here/info/$label.json.txt" "$zonda" info --json "$label.nc"
    done
    golden "info of several files" "$here/info/several.txt" "$zonda" info empty.nc text.nc packed.nc
    golden "info of standard input" "$here/info/stdin.txt" sh -c '"$0" info - <packed.nc' "$zonda"
    golden "info of HDF5 on standard input" "$here/info/stdin-hdf5.txt" \
        sh -c '"$0" info - <hdf5.nc' "$zonda"
    golden "info of a damaged file on standard input" "$here/info/stdin-cut.txt" \
        sh -c '"$0" info - <cut.nc' "$zonda"
    unset ZONDA_IO
    # Records of two variables in turn: their chunks lie between each other.
    if "$python" -c '
import netCDF4
with netCDF4.Dataset("turns.nc", "w") as f:
    f.createDimension("t", None)
    f.createDimension("x", 1000)
    a, b = (f.createVariable(name, "f8", ("t", "x"), chunksizes=(1, 1000)) for name in "ab")
    for t in range(4):
        a[t], b[t] = t, -t
        f.sync()' 2>/dev/null; then
        "$zonda" info turns.nc >turns.txt
        if [ "$(grep -c "^    [ab]: 3 of 4 chunks not behind the one before$" turns.txt)" = 2 ] &&
            [ "$(tail -n 1 turns.txt)" = "    not behind the one before: who reads all chunks in order jumps to it in the file" ]; then
            pass "info of chunks in turn"
        else
            fail "info of chunks in turn"
            tail -n 5 turns.txt
        fi
    else
        skip "info of chunks in turn: no Python with netCDF4"
    fi
    if "$zonda" info --json storage.nc groups.nc | python3 -c '
import json, sys
for line in sys.stdin:
    f = json.loads(line)
    assert abs(sum(v["percent"] for v in f["variables"]) - 100) < 0.2, f
    assert sum(v["stored_bytes"] for v in f["variables"]) < f["file_bytes"], f
    for v in f["variables"]:
        assert v.get("chunks", 0) <= v.get("chunks_of", 0), v
        plain = v["storage"] == "contiguous" and v["stored_bytes"] > 0
        assert not plain or v["stored_bytes"] == v["bytes"], v'; then
        pass "info --json of netCDF-4 adds up"
    else
        fail "info --json of netCDF-4 adds up"
    fi
    if "$zonda" info --json types.nc cdf5.nc | python3 -c '
import json, sys
facts = [json.loads(line) for line in sys.stdin]
assert [f["path"] for f in facts] == ["types.nc", "cdf5.nc"], facts
for f in facts:
    assert abs(sum(v["percent"] for v in f["variables"]) - 100) < 0.2, f
    assert f["layout"]["data_end"] <= f["file_bytes"], f'; then
        pass "info --json is JSON and adds up"
    else
        fail "info --json is JSON and adds up"
    fi
}

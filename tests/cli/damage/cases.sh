# Cases of `zonda check`, `zonda recover` and `zonda diff`, read by ../run.sh: files with bytes flipped, cut
# short, and with one value changed.

# told LABEL EXPECTED COMMAND...: as golden, with the places of bytes left open
told() {
    local label=$1 expected=$2
    shift 2
    golden "$label" "$expected" sh -c '"$@" >told.out 2>told.err; status=$?
        sed -E "s/byte [0-9]+/byte N/g; s/process [0-9]+/process N/; s/of the [0-9]+ that/of the N that/; s/[0-9_]+ bytes of file/N bytes of file/; s/\"(byte|file_bytes|unaccounted_bytes)\":[0-9]+/\"\\1\":N/g" told.out
        cat told.err >&2; exit $status' sh "$@"
}

test_damage() {
    if [ -z "$ncgen" ]; then
        skip "damage: there is no ncgen to make files with"
        return
    fi
    sed "s/^ w = / v = $(seq -s, 0 11999) ;\n w = /" "$here/damage/field.cdl" >field.cdl
    "$ncgen" -k nc3 -o classic.nc field.cdl
    "$zonda" copy -q -f -k netcdf4 -F 'v:fletcher32|shuffle|deflate,4' -c v:t/1,y/1,x/1000 classic.nc sound.nc
    told "check of a sound file" "$here/damage/sound.txt" "$zonda" check sound.nc classic.nc
    told "check --json" "$here/damage/json.txt" "$zonda" check --json sound.nc

    # The middle of the stored bytes of chunk [1, 2, 0].
    local at
    at=$("$zonda" check --json sound.nc >sound.json; python3 - <<'PYTHON'
# The chunks of `v` are all alike, one behind the other, in front of everything that is deflated no more.
import re, zlib
data = open("sound.nc", "rb").read()
found = [m.start() for m in re.finditer(rb"\x78[\x01\x5e\x9c\xda]", data)]
starts = []
for at in found:
    try:
        zlib.decompressobj().decompress(data[at:at + 4096])
        starts.append(at)
    except zlib.error:
        pass
print(starts[6] + 8)
PYTHON
)
    cp sound.nc flipped.nc
    python3 -c 'import sys; f = open("flipped.nc", "r+b"); f.seek(int(sys.argv[1])); b = f.read(1); f.seek(-1, 1); f.write(bytes([b[0] ^ 85]))' "$at"
    told "check of a flipped byte" "$here/damage/flipped.txt" "$zonda" check flipped.nc
    told "check -q of a flipped byte" "$here/damage/quiet.txt" "$zonda" check -q flipped.nc
    told "recover --to" "$here/damage/saved.txt" "$zonda" recover --to saved.nc flipped.nc
    told "check of what was saved" "$here/damage/after.txt" "$zonda" check saved.nc
    golden "diff of what was saved" "$here/damage/diff-saved.txt" "$zonda" diff sound.nc saved.nc
    golden "diff --json" "$here/damage/diff-json.txt" "$zonda" diff --json sound.nc saved.nc
    golden "diff of one part" "$here/damage/diff-part.txt" "$zonda" diff -v 'w,r' sound.nc saved.nc
    golden "diff of no variable" "$here/damage/diff-no-variable.txt" "$zonda" diff -v nosuchvar sound.nc saved.nc
    golden "diff without no variable" "$here/damage/diff-no-exclude.txt" "$zonda" diff -x 'w,nosuch*' sound.nc saved.nc
    golden "diff of formats" "$here/damage/diff-formats.txt" "$zonda" diff classic.nc sound.nc
    golden "diff within a tolerance" "$here/damage/diff-within.txt" "$zonda" diff --absolute 1e300 sound.nc saved.nc
    golden "diff with nothing" "$here/damage/diff-missing.txt" "$zonda" diff sound.nc missing.nc
    golden "recover --to what is there" "$here/damage/exists.txt" "$zonda" recover --to saved.nc flipped.nc

    # The definitions of a classic file, and no value.
    echo 'netcdf one { dimensions: x = 100 ; variables: int v(x) ; data: v = 1 ; }' >one.cdl
    "$ncgen" -k nc3 -o one.nc one.cdl
    head -c -400 one.nc >header.nc
    told "recover --to of definitions alone" "$here/damage/no-value.txt" "$zonda" recover --to header-saved.nc header.nc

    head -c 1000 sound.nc >cut.nc
    told "check of a short file" "$here/damage/cut.txt" "$zonda" check cut.nc
    # No writer left anything, which does not make it sound.
    told "recover of a short file" "$here/damage/recover-cut.txt" "$zonda" recover cut.nc
    # Three records; the last one is not complete.
    head -c -20 classic.nc >cut-classic.nc
    told "recover of a short classic file" "$here/damage/recover-cut-classic.txt" "$zonda" recover cut-classic.nc
    told "copy of a short classic file" "$here/damage/copy-cut-classic.txt" "$zonda" copy -q -f cut-classic.nc short-copy.nc
    told "diff of a short classic file" "$here/damage/diff-cut-classic.txt" "$zonda" diff -v w cut-classic.nc cut-classic.nc
    told "check of a short classic file" "$here/damage/cut-classic.txt" "$zonda" check cut-classic.nc
    told "recover --records" "$here/damage/records.txt" "$zonda" recover --records cut-classic.nc
    told "check of records that were counted" "$here/damage/counted.txt" "$zonda" check cut-classic.nc
    # Three records, of which a writer that died had counted one.
    cp classic.nc uncounted.nc
    printf '\1' | dd of=uncounted.nc bs=1 seek=7 conv=notrunc status=none
    told "recover of records that are not counted" "$here/damage/uncounted.txt" "$zonda" recover uncounted.nc
    # Another process has it open.
    cp classic.nc written.nc
    sleep 60 7>>written.nc &
    told "check of a file that is written" "$here/damage/written.txt" "$zonda" check written.nc
    kill $!
    told "recover --records of netCDF-4" "$here/damage/records-nc4.txt" "$zonda" recover --records sound.nc
    told "check of what is no netCDF" "$here/damage/text.txt" "$zonda" check field.cdl
    golden "check of nothing" "$here/damage/missing.txt" "$zonda" check missing.nc
}

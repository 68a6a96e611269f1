# Cases of `zonda copy`, read by ../run.sh. Copies are compared with what they were made of by the
# distribution's ncdump; large ones by copying them back and comparing bytes.

# as_dumped FILE OPTION...: what ncdump says but for what tells who wrote the file
as_dumped() {
    "${as_read[@]}" -n same "${@:2}" "$1" | sed -e '/^\t\t:_NCProperties = /d' \
        -e '/^\t\t:_SuperblockVersion = /d' -e '/^\t\t:_IsNetcdf4 = /d' -e '/^\t\t:_Format = /d'
}

# same_copy LABEL SOURCE COPY OPTION...: whether ncdump with these options says the same of both
same_copy() {
    local label=$1 source=$2 target=$3
    shift 3
    as_dumped "$source" "$@" >expected
    as_dumped "$target" "$@" >got
    if [ -s expected ] && cmp -s expected got; then pass "$label"; else
        fail "$label"
        diff expected got | head -n 10 | cut -c 1-200 | sed 's/^/        /'
    fi
}

# copies LABEL SOURCE COPY OPTION...: makes a copy without a word
copies() {
    local label=$1 source=$2 target=$3
    shift 3
    if ! "$zonda" copy "$@" "$source" "$target" >got 2>got.err || [ -s got ] || [ -s got.err ]; then
        fail "copy $label: $(head -n 1 got.err)"
        return 1
    fi
}

test_copy() {
    if [ -z "$ncdump" ] || [ -z "$ncgen" ]; then
        skip "copy: there is no ncdump or ncgen to compare with"
        return
    fi
    local cdl label kind kinds file special as_read=("$ncdump")
    for cdl in "$here"/dump/*.cdl; do
        label=$(basename "$cdl" .cdl)
        kinds="nc3 nc6 cdf5 nc7 nc4"
        [[ $label == types ]] && kinds="nc3 nc6 cdf5 nc7"
        [[ $label == cdf5_* ]] && kinds="cdf5 nc4"
        [[ $label == nc4_* ]] && kinds=nc4
        for kind in $kinds; do
            file=$label-$kind.nc
            "$ncgen" -k "$kind" -o "$file" "$cdl" 2>ncgen.err || continue
            special=-s
            # ncdump 4.9.0 fails on -s with CDF-5.
            [ "$kind" = cdf5 ] && special=
            copies "$label-$kind" "$file" copy.nc -f &&
                same_copy "copy $label-$kind" "$file" copy.nc $special
        done
    done

    # From every kind to every other.
    for kind in nc3 nc6 cdf5 nc7 nc4; do
        "$ncgen" -k "$kind" -o "from-$kind.nc" "$here/dump/packed.cdl"
        for label in classic 64bit-offset cdf5 netcdf4 netcdf4-classic; do
            copies "$kind to $label" "from-$kind.nc" copy.nc -f -k "$label" &&
                same_copy "copy $kind to $label" "from-$kind.nc" copy.nc
        done
    done

    # Stored in other ways.
    "$ncgen" -k nc4 -o storage.nc "$here/dump/nc4_storage.cdl"
    "$ncgen" -k nc4 -o groups.nc "$here/dump/nc4_groups.cdl"
    "$ncgen" -k nc3 -o types.nc "$here/dump/types.cdl"
    set -f
    while read -r label; do
        # The distribution's library has no code for some filters.
        as_read=("$ncdump")
        [[ $label =~ zstd|lzf|bitshuffle|blosc|szip ]] && as_read=("$zonda" dump)
        # shellcheck disable=SC2086
        copies "storage $label" storage.nc copy.nc -f $label &&
            same_copy "copy storage $label" storage.nc copy.nc
    done <<'OPTIONS'
-d 1 -s
--zstd 5 --fletcher32
--no-filters
-c x/3,y/11
-c chunked:x/20,y/1 -c g/v:x/7
-F shuffle|deflate,9 -F checked:none -c y/0
--contiguous *
-F lzf
-F bitshuffle
-F blosc,0,0,0,0,9,2,5
-F chunked:szip,32,8
-m 4M -c x/1,y/1,t/1
OPTIONS
    set +f
    as_read=("$ncdump")
    copies "of a choice" groups.nc copy.nc -f -v first/x
    golden "copy of a choice" "$here/copy/choice.txt" "$ncdump" copy.nc
    copies "of all but some" groups.nc copy.nc -f -x 'first/*,x'
    golden "copy of all but some" "$here/copy/but.txt" "$ncdump" copy.nc
    "$ncgen" -k nc4 -o grouped.nc "$here/view/grouped.cdl"
    copies "of a group" grouped.nc copy.nc -f -g /ocean/deep -k classic
    golden "copy of a group" "$here/copy/group.txt" "$ncdump" -h copy.nc
    copies "without unlimited dimensions" storage.nc copy.nc -f -u --contiguous '*'
    golden "copy without unlimited dimensions" "$here/copy/fixed.txt" "$ncdump" -hs copy.nc
    copies "with less precision" storage.nc copy.nc -f --quantize bitround,3
    golden "copy with less precision" "$here/copy/precision.txt" "$ncdump" -v unfilled,checked copy.nc
    golden "copy --json" "$here/copy/json.txt" \
        sh -c '"$0" copy --json -f -c chunked:x/20 storage.nc copy.nc' "$zonda"
    "$zonda" copy -q -f - copy.nc <storage.nc && same_copy "copy of standard input" storage.nc copy.nc -s
    ln -sf copy.nc link.nc
    copies "through a link" types.nc link.nc -f && same_copy "copy through a link" types.nc copy.nc
    if [ -L link.nc ]; then pass "copy keeps a link"; else fail "copy keeps a link"; fi

    # What is refused, each with nothing left behind.
    rm -f new.nc
    ls >before
    while IFS='|' read -r label line; do
        eval "golden 'copy $label' '$here/copy/$label.txt' '$zonda' copy $line"
    done <<'CASES'
no-target|types.nc
existing|types.nc storage.nc
same-file|-f types.nc ./types.nc
same-link|-f copy.nc link.nc
device|-f types.nc /dev/null
no-folder|types.nc nowhere/new.nc
missing|missing.nc new.nc
no-netcdf|before new.nc
groups-to-classic|-k classic groups.nc new.nc
types-to-classic|-k cdf5 storage.nc new.nc
chunks-of-classic|-c n/3 types.nc new.nc
no-variable|-v nope storage.nc new.nc
no-variable-but-one-like-it|-v contiguos storage.nc new.nc
no-filter-of-a-variable-like-it|-F Contiguous:none storage.nc new.nc
chunks-of-no-dimension|-k netcdf4 -c nosuchdim/5 types.nc new.nc
chunks-of-no-variable|-k netcdf4 -c nosuchvar:n/5 types.nc new.nc
chunks-of-other-dimension|-k netcdf4 -c s:nosuchdim/5 types.nc new.nc
chunks-of-a-variable-left-out|-k netcdf4 -v s -c b:n/2 types.nc new.nc
filter-of-no-variable|-k netcdf4 -F nosuchvar:zstd,3 types.nc new.nc
filter-of-no-pattern|-k netcdf4 -F nosuch*:none types.nc new.nc
contiguous-no-variable|-k netcdf4 --contiguous nosuchvar types.nc new.nc
quantize-no-variable|-k netcdf4 --quantize nosuchvar:bitround,3 types.nc new.nc
no-group|-g /nope storage.nc new.nc
two-of-a-name|-g first groups.nc new.nc
no-filter|-F 40000,1 storage.nc new.nc
bad-filter|-F gzap storage.nc new.nc
bad-chunk|-c x=3 storage.nc new.nc
bad-kind|-k hdf4 storage.nc new.nc
two-codecs|-d 1 --zstd 1 storage.nc new.nc
CASES
    # What is asked of a variable by name and cannot be had of it is said.
    golden "copy notes" "$here/copy/notes.txt" "$zonda" copy -f -k netcdf4 --quantize s:bitround,3 types.nc noted.nc
    rm -f noted.nc
    ls | grep -v -e '^got' -e '^std' >after
    if diff <(grep -v -e '^got' -e '^std' before) <(grep -vx after after) >left; then
        pass "copy leaves nothing where it fails"
    else
        fail "copy leaves nothing where it fails: $(grep '^>' left | tr '\n' ' ')"
    fi

    large_copies
    if "$python" -c 'import h5py' 2>/dev/null; then
        if "$python" "$here/copy/h5py_same.py" "$zonda" >h5py.out 2>&1; then
            pass "copy of HDF5 files, read by h5py"
        else
            fail "copy of HDF5 files, read by h5py: $(tail -n 3 h5py.out)"
        fi
    else
        skip "copy of HDF5 files: no Python with it"
    fi
    [ -z "$corpus" ] || real_copies
}

# 384 MB there and back in 32 MB of memory: maps become series, which takes a file in between.
large_copies() {
    printf 'netcdf big {\ndimensions:\n\ttime = 1536 ;\n\tlat = 250 ;\n\tlon = 250 ;\nvariables:\n%s' \
        $'\tfloat v(time, lat, lon) ;\n}\n' >big.cdl
    "$ncgen" -x -k nc6 -o big.nc big.cdl
    python3 - big.nc <<'PYTHON'
import array, sys
with open(sys.argv[1], "r+b") as f:
    data = f.read(4096)
    at = data.rindex(b"v\0\0\0")
    # Behind the name: rank, three dimensions, no attributes, type, size.
    begin = int.from_bytes(data[at + 36:at + 44], "big")
    f.truncate(begin + 1536 * 250 * 250 * 4)
    f.seek(begin)
    for record in range(1536):
        row = array.array("f", [record * 0.5 + i % 1013 for i in range(62500)])
        row.byteswap()
        f.write(row.tobytes())
PYTHON
    local options peak is_large=0
    # peak OPTION... SOURCE TARGET: the most memory that the copy takes, in MB
    peak() {
        python3 -c '
import resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024)' "$zonda" copy -q -f "$@"
    }
    for options in "-k netcdf4 -d 1 -s -c time/1,lat/250,lon/250 big.nc maps.nc" \
        "-m 32M -c time/1536,lat/10,lon/10 maps.nc series.nc" \
        "-m 64M -c time/100,lat/37,lon/53 -F zstd,1 series.nc bricks.nc" \
        "-m 32M -k 64bit-offset bricks.nc back.nc"; do
        # shellcheck disable=SC2086
        peak=$(peak $options)
        # What is asked for, and what threads and their filters need.
        local most=384
        [[ $options == *"-m 32M"* ]] && most=128
        [[ $options == *"-m 64M"* ]] && most=160
        if [ "${peak:-999}" -gt $most ]; then
            fail "copy of 384 MB ($options) takes ${peak:-?} MB of memory"
            is_large=1
        fi
        echo "        $options: $peak MB"
    done
    # Headers leave room to grow, or not.
    if cmp -s <(tail -c 384000000 big.nc) <(tail -c 384000000 back.nc); then pass "copy of 384 MB through three shapes of chunks and back"; else
        fail "copy of 384 MB through three shapes of chunks and back"
    fi
    ((is_large)) || pass "copy in bounded memory"
    local way
    way=$("$zonda" copy --json -q -f -m 32M -c time/1536,lat/10,lon/10 maps.nc series.nc |
        python3 -c 'import json, sys; print(json.load(sys.stdin)["variables"][0]["way"])')
    if [ "$way" = "file in between" ]; then pass "copy by a file in between"; else
        fail "copy by a file in between: $way"
    fi

    # Ended from outside: nothing of the target is left, and the old one is as it was.
    local pid
    cp types.nc old.nc
    for signal in INT TERM; do
        ls -A >before
        bash -c 'exec "$0" copy -q -f -d 9 -c time/1536,lat/10,lon/10 maps.nc old.nc' "$zonda" &
        pid=$!
        while kill -0 $pid 2>/dev/null && ! ls -A | grep -q 'old.nc.zonda-new'; do sleep 0.02; done
        kill -$signal $pid 2>/dev/null
        wait $pid 2>/dev/null
        local status=$?
        ls -A >after
        if [ $status -gt 128 ] && cmp -s types.nc old.nc && cmp -s before after; then
            pass "copy ended by SIG$signal leaves nothing"
        else
            fail "copy ended by SIG$signal leaves nothing: exit status $status, $(diff before after | tr '\n' ' ')"
        fi
    done
    rm -f big.nc maps.nc series.nc bricks.nc back.nc

    # Ended without a chance to clean up: the next one does it.
    local said
    mkdir -p killed
    if said=$(cd killed && python3 "$here/copy/killed.py" "$prefix" 2>&1); then
        pass "what killed makers leave: $(tail -n 1 <<<"$said")"
    else
        fail "what killed makers leave"
        tail -n 8 <<<"$said" | sed 's/^/        /'
    fi
}

# Real files: what ncdump says of the copy is what `zonda dump` says of the file.
real_copies() {
    local file n=0 bad=0 refused=0 own=0 excepted=0
    while read -r -d '' file; do
        n=$((n + 1))
        if ! timeout 120 "$zonda" copy -q -f "$file" copy.nc 2>got.err; then
            refused=$((refused + 1))
            continue
        fi
        # Data of what is larger is compared by its beginning.
        "$zonda" dump -n same "$file" 2>/dev/null | head -c 20000000 >expected
        "$ncdump" -n same copy.nc 2>/dev/null | head -c 20000000 >got
        cmp -s expected got && continue
        # What the reference shows otherwise, or has no filter for.
        own=$((own + 1))
        "$zonda" dump -n same copy.nc 2>/dev/null | head -c 20000000 >got
        if cmp -s expected got; then
            continue
        elif grep -qF "${file##*/} |" "$here/copy/exceptions.txt"; then
            excepted=$((excepted + 1))
        else
            bad=$((bad + 1))
            echo "        $file"
            diff expected got | head -n 5 | cut -c 1-200 | sed 's/^/        /'
        fi
    done < <(awk -F'\t' -v folder="$corpus" '$2 ~ /^(netcdf4|classic)$/ && $4 == "valid" {
        printf "%s/%s%c", folder, $1, 0 }' "$corpus/MANIFEST.tsv")
    if ((bad)); then fail "copy of real files: $bad of $n"; else
        pass "copy of $n real files, of which $refused refused, $own read by zonda dump and not" \
            "by ncdump, $excepted otherwise for a known reason"
    fi
}

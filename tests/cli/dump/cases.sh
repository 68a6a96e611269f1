# Cases of `zonda dump`, read by ../run.sh. Dumps are compared byte by byte with those of the
# distribution's ncdump.

# same_dump LABEL FILE OPTION...: one pair of dumps; says nothing, returns whether they agree
same_dump() {
    local label=$1 file=$2
    shift 2
    "$ncdump" "$@" "$file" >expected 2>expected.err
    local want=$?
    "$zonda" dump "$@" "$file" >got 2>got.err
    local have=$?
    # 0 in ncdump 4.9.0 for files without dimensions and for those of the classic model.
    sed -i '/^\t\t:_IsNetcdf4 = /d' expected got
    if [ $want -eq 0 ] && [ $have -eq 0 ] && cmp -s expected got; then
        return 0
    fi
    echo "        $label: ncdump $* exits $want, zonda dump $have: $(head -n 1 got.err)"
    diff expected got | head -n 5 | cut -c 1-200 | sed 's/^/        /'
    return 1
}

option_sets=(
    "" "-h" "-c" "-k" "-b c" "-b f" "-f c" "-f F" "-l 40" "-l 10" "-l 1000" "-p 3" "-p 9,17"
    "-p 1,20" "-n other\ name" "-hs" "-bc -c -l 30"
)

# all_options LABEL FILE [SET...]: every set of options on a file
all_options() {
    local label=$1 file=$2 set ok=1 options
    shift 2
    for set in "$@"; do
        eval "options=($set)"
        same_dump "$label" "$file" "${options[@]}" || ok=0
    done
    if ((ok)); then pass "dump $label ($# sets of options)"; else fail "dump $label"; fi
}

# Real files, classic and HDF5. Of HDF5 files the reference 4.9.0 leaves out variables whose type has
# no name, which Zonda names as later ones do: these files only have to be readable.
real_files() {
    local file magic n=0 bad=0 refused=0 unnamed=0 excepted=0 slow=0 status
    while read -r -d '' file; do
        magic=$(head -c 4 "$file" | tr -d '\0')
        [[ $magic == CDF* || $magic == $'\x89HDF' ]] || continue
        n=$((n + 1))
        # In a group, since bash has a word to say on programs that crash.
        { timeout 20 "$ncdump" "$file" >expected; } 2>/dev/null
        status=$?
        if [ $status -eq 124 ]; then
            # More data than tests wait for.
            slow=$((slow + 1))
            continue
        fi
        timeout 60 "$zonda" dump "$file" >got 2>got.err
        case $status:$?:$(wc -l <got.err) in
            0:0:0)
                if cmp -s expected got; then
                    continue
                elif grep -q '_Anonymous' got; then
                    unnamed=$((unnamed + 1))
                    continue
                elif grep -qF "${file##*/} |" "$here/dump/exceptions.txt"; then
                    excepted=$((excepted + 1))
                    continue
                fi
                ;;
            0:1:1)
                # A filter that only the variable without a named type has.
                if grep -q '_Anonymous' got; then
                    unnamed=$((unnamed + 1))
                    continue
                fi
                ;;
            0:*) ;;
            # What the reference refuses, or dies of, may be read or refused, by one line.
            *:0:* | *:1:1)
                refused=$((refused + 1))
                continue
                ;;
        esac
        bad=$((bad + 1))
        echo "        $file: $(head -n 3 got.err)"
        diff expected got | head -n 5 | cut -c 1-200 | sed 's/^/        /'
    done < <(
        # Not that whose 4.6 thousand million elements, which it does not store, ncdump 4.9.0 counts in 32 bits.
        find "$root/tests/corpus" -type f ! -name tlayouto.h5 -print0
        # Of other HDF5 files ncdump 4.9.0 leaves much out, and damaged ones can fill the memory.
        [ -z "$corpus" ] || awk -F'\t' -v folder="$corpus" '$2 ~ /^(netcdf4|classic)$/ && $4 == "valid" {
            printf "%s/%s%c", folder, $1, 0 }' "$corpus/MANIFEST.tsv"
    )
    if ((bad)); then fail "dump of real files: $bad of $n"; else
        pass "dump of $n real files, of which $refused refused by ncdump, $unnamed with types without" \
            "names, $excepted otherwise for a known reason, $slow not waited for"
    fi
}

test_dump() {
    if [ -z "$ncdump" ] || [ -z "$ncgen" ]; then
        skip "dump: there is no ncdump or ncgen to compare with"
        return
    fi
    local cdl label kind kinds file variables sets
    for cdl in "$here"/dump/*.cdl; do
        label=$(basename "$cdl" .cdl)
        kinds="nc3 nc6 cdf5 nc7 nc4"
        # "string" is a word of CDL for netCDF-4.
        [[ $label == types ]] && kinds="nc3 nc6 cdf5 nc7"
        [[ $label == cdf5_* ]] && kinds="cdf5 nc4"
        [[ $label == nc4_* ]] && kinds=nc4
        for kind in $kinds; do
            file=$label-$kind.nc
            if ! "$ncgen" -k "$kind" -o "$file" "$cdl" 2>ncgen.err; then
                fail "dump $label: ncgen -k $kind: $(head -n 1 ncgen.err)"
                continue
            fi
            sets=("${option_sets[@]}")
            # ncdump 4.9.0 fails on -s with CDF-5.
            [ "$kind" = cdf5 ] && sets=("${sets[@]/-hs/-h}")
            # And for scalars it prints what lies before the indices in memory, as Fortran index.
            "$ncdump" -h "$file" | grep '^\s*[^ :]* [^(:=]* ;$' >/dev/null &&
                sets=("${sets[@]/-f F/}")
            # One variable, and all of them in a list, which CDL's escapes keep simple to find.
            variables=$("$ncdump" -h "$file" | sed -n 's/^\t[a-z0-9]* \([A-Za-z0-9_]*\)\((.*\)\? ;$/\1/p')
            [ -n "$variables" ] &&
                sets+=("-v $(head -n 1 <<<"$variables")" "-v $(paste -sd, <<<"$variables")")
            all_options "$label-$kind" "$file" "${sets[@]}"
        done
    done

    # Variables of groups: by name in any group, by the end of a path, by the whole of it.
    all_options "groups by path" nc4_groups-nc4.nc "-v x" "-v first/x" "-v /first/b,still/own" \
        "-c -v /first/x" "-b c -v c"

    python3 "$here/odd_files.py" odd || fail "dump: odd_files.py"
    for file in odd/*.nc; do
        all_options "$file" "$file" "" "-h" "-f c" "-b f"
        [ "$file" != odd/long_rows.nc ] || all_options "$file, in Fortran" "$file" "-f f"
    done

    real_files

    [ -n "$corpus" ] || skip "dump of the large corpus: ZONDA_CORPUS is not set"

    "$zonda" dump - <types-nc3.nc >got && "$ncdump" -n stdin types-nc3.nc >expected
    if cmp -s expected got; then pass "dump of standard input"; else fail "dump of standard input"; fi

    # The reader goes away: no message, no failure.
    (set +o pipefail; "$zonda" dump odd/long_rows.nc 2>err | head -n 1 >/dev/null)
    if [ -s err ]; then fail "dump into a closed pipe: $(cat err)"; else pass "dump into a closed pipe"; fi
    "$zonda" dump odd/long_rows.nc >/dev/full 2>err
    case $?:$(cat err) in
        1:"zonda: standard output: No space left"*) pass "dump onto a full disk" ;;
        *) fail "dump onto a full disk: $(cat err)" ;;
    esac

    # Memory does not grow with a variable: 200 MB of shorts, most of them a hole.
    printf 'netcdf big {\ndimensions:\n\tx = 100000000 ;\nvariables:\n\tshort v(x) ;\n}\n' >big.cdl
    "$ncgen" -x -k nc6 -o big.nc big.cdl
    truncate -s 200M big.nc
    local peak
    peak=$(python3 -c '
import resource, subprocess, sys
subprocess.run([sys.argv[1], "dump", "big.nc"], stdout=subprocess.DEVNULL, check=True)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024)' "$zonda")
    if [ "${peak:-999}" -lt 64 ]; then pass "dump of 200 MB in $peak MB of memory"; else
        fail "dump of 200 MB takes ${peak:-?} MB of memory"
    fi
    rm -f big.nc
}

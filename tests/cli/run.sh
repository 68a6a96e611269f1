#!/usr/bin/env bash
# The `zonda` command: its output, messages and exit statuses, one line per case.
#
#   tests/cli/run.sh [dump|info|copy|view|trace|usage|run ...]      all by default
#
#   ZONDA_PREFIX   where zonda and its library are (default: dist)
#   ZONDA_CORPUS   folder of further files, which go through `zonda dump`, too
#   ZONDA_VENV     Python environment with the netCDF4 wheel (default: out/venv)
#   UPDATE=1       writes the expected output of `info`, `copy`, `view`, `trace` and `usage` anew instead of comparing
#
# `zonda dump` is compared byte by byte with the distribution's ncdump, on what ncgen makes of
# dump/*.cdl, on what odd_files.py writes, and on real files but those of dump/exceptions.txt. A case
# whose tool is missing is skipped.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
prefix=$(cd "$root" && realpath "${ZONDA_PREFIX:-dist}")
zonda=$prefix/bin/zonda
venv=$(realpath -m "${ZONDA_VENV:-$root/out/venv}")
corpus=${ZONDA_CORPUS:+$(realpath "$ZONDA_CORPUS")}
passed=0 failed=0 skipped=0

if [ ! -x "$zonda" ]; then
    echo "cli: no $zonda: build it first" >&2
    exit 2
fi
# Of the reference 4.9.0, found before any path of ours is set.
ncdump=$(command -v ncdump) || ncdump=
ncgen=$(command -v ncgen) || ncgen=
export LC_ALL=C.UTF-8
unset ZONDA_IO ZONDA_SYNC ZONDA_TRACE NETCDF_FFIOSPEC NETCDF_FFIO_SPEC LD_LIBRARY_PATH LD_PRELOAD

scratch=$(mktemp -d)
keep=0
cleanup() { if ((keep)); then echo "files of failed cases are in $scratch"; else rm -rf "$scratch"; fi; }
trap cleanup EXIT
cd "$scratch" || exit 2

pass() {
    echo "passed  $*"
    passed=$((passed + 1))
}
fail() {
    echo "FAILED  $*"
    failed=$((failed + 1)) keep=1
}
skip() {
    echo "skipped $*"
    skipped=$((skipped + 1))
}

# ---- zonda dump ------------------------------------------------------------------------------

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
        find "$root/tests/corpus" -type f -print0
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

# ---- Expected output: info, messages, exit statuses ------------------------------------------

# golden LABEL FILE COMMAND...: standard output, standard error and exit status in one text
golden() {
    local label=$1 expected=$2
    shift 2
    { "$@" 2>stderr; echo "exit status $?"; } >stdout
    # Where it runs and how the system is set up is not part of the expectation.
    sed -e "s|$scratch/||g" -e "s|$prefix|PREFIX|g" \
        <(sed 's/^/out: /' stdout) <(sed 's/^/err: /' stderr) >got
    if [ "${UPDATE:-0}" = 1 ]; then
        cp got "$expected"
    fi
    if cmp -s "$expected" got; then pass "$label"; else
        fail "$label"
        diff "$expected" got | head -n 20 | sed 's/^/        /'
    fi
}

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

# ---- Pictures --------------------------------------------------------------------------------

# picture LABEL EXPECTED COMMAND...: what the command says, and what is in picture.svg that it writes
picture() {
    local label=$1 expected=$2
    shift 2
    rm -f picture.svg
    golden "$label" "$expected" sh -c '"$@" -o picture.svg && python3 "$0" picture.svg' \
        "$here/svg_texts.py" "$@"
}

# is_png LABEL FILE: whether it is a PNG, as far as its first and last bytes say
is_png() {
    if [ "$(head -c 8 "$2" | od -An -tx1 | tr -d ' ')" = 89504e470d0a1a0a ] &&
        tail -c 8 "$2" | grep -qa IEND; then
        pass "$1"
    else
        fail "$1"
    fi
}

test_view() {
    if [ -z "$ncgen" ]; then
        skip "view: there is no ncgen to make a file with"
        return
    fi
    export ZONDA_IO=file
    "$ncgen" -k nc3 -o field.nc "$here/view/field.cdl"
    local name variable
    # NAME, the variable and its options, one case a line: text first, then the picture.
    while IFS='|' read -r name variable; do
        # shellcheck disable=SC2086
        golden "view $name" "$here/view/$name.txt" "$zonda" view field.nc $variable
        # shellcheck disable=SC2086
        picture "view $name as SVG" "$here/view/$name.svg.txt" "$zonda" view field.nc $variable
    done <<'CASES'
map|T
last|T --at time=-1 --at lev=-1
section|T --at lon=2
profile|T --at time=0 --at lat=1 --at lon=-1
both-signs|wind --diverging
narrow|wind --width 480
line|line
jumps|jumps
all-missing|filled
scalar|scalar
CASES
    # The same picture of the same numbers in a group, packed into chunks.
    "$ncgen" -k nc4 -o grouped.nc "$here/view/grouped.cdl"
    golden "view of a group" "$here/view/grouped.txt" "$zonda" view grouped.nc /ocean/deep/T --at time=-1
    picture "view of a group as SVG" "$here/view/grouped.svg.txt" \
        "$zonda" view grouped.nc /ocean/deep/T --at time=-1
    golden "view of no group" "$here/view/no-group.txt" "$zonda" view grouped.nc /ocean/T
    "$zonda" view field.nc T -o one.png && "$zonda" view - T -o two.PNG <field.nc
    is_png "view as PNG" one.png
    if cmp -s one.png two.PNG; then pass "view gives the same bytes"; else fail "view gives the same bytes"; fi
    unset ZONDA_IO
}

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

test_usage() {
    # Messages name offsets and sizes of reads, which the default stack chooses.
    export ZONDA_IO=file
    [ -n "$ncgen" ] && "$ncgen" -k nc3 -o types.nc "$here/dump/types.cdl"
    local name line
    # NAME and the arguments, one case a line.
    while IFS='|' read -r name line; do
        if [ -z "$ncgen" ] && [[ $line == *types.nc* ]]; then
            skip "usage $name: there is no ncgen to make a file with"
            continue
        fi
        eval "golden 'usage $name' '$here/usage/$name.txt' '$zonda' $line"
    done <<'CASES'
none|
unknown-command|frobnicate
dump-no-file|dump
dump-missing-file|dump no-such-file.nc
dump-folder|dump /
dump-not-netcdf|dump /dev/null
dump-bad-order|dump -b x types.nc
dump-bad-line|dump -l 9 types.nc
dump-bad-precision|dump -p 3,99 types.nc
dump-missing-variable|dump -v b,nope types.nc
view-no-variable|view types.nc
view-missing-file|view no-such-file.nc v
view-missing-variable|view types.nc nope
view-text|view types.nc c
view-bad-at|view types.nc s --at n
view-missing-dimension|view types.nc s --at nope=0
view-beyond|view types.nc s --at n=99
view-bad-picture|view types.nc s -o picture.gif
view-no-folder|view types.nc s -o no-such-folder/picture.png
view-bad-width|view types.nc s --width 7 -o picture.png
trace-no-file|trace
trace-missing-file|trace no-such-file.txt
trace-bad-picture|trace no-such-file.txt -o picture
run-no-program|run
run-missing-program|run -- no-such-program-here
run-no-executable|run -- /etc/passwd
run-bad-sync|run --sync sometimes -- true
run-bad-lib|run --lib /nowhere/lib -- true
man-unknown|man frobnicate
CASES
    for line in "--help" "--version" "help run" "help dump" "info --help" "man" "man dump" \
        "help view" "help trace" "man view" "man trace" "help copy" "man copy" \
        "completions bash" "completions fish" "completions zsh"; do
        # shellcheck disable=SC2086
        if "$zonda" $line >got 2>got.err && [ -s got ] && [ ! -s got.err ]; then
            pass "zonda $line"
        else
            fail "zonda $line: $(head -n 1 got.err)"
        fi
    done
    "$zonda" completions bash >completions.bash
    unset ZONDA_IO
    if bash -n completions.bash && grep _zonda completions.bash >/dev/null; then
        pass "completions are bash"
    else
        fail "completions are bash"
    fi
}

# ---- zonda run -------------------------------------------------------------------------------

# runs LABEL STATUS OUTPUT ERRORS COMMAND...: exit status, and patterns for the two streams
runs() {
    local label=$1 status=$2 output=$3 errors=$4
    shift 4
    "$@" >stdout 2>stderr </dev/null
    local have=$?
    if [ $have -eq "$status" ] && [[ $(<stdout) =~ $output ]] && [[ $(<stderr) =~ $errors ]]; then
        pass "run $label"
    else
        fail "run $label: exit status $have"
        sed 's/^/        out: /' stdout | head -n 5
        sed 's/^/        err: /' stderr | head -n 8
    fi
}

test_run() {
    if [ ! -e "$prefix/lib/libnetcdf.so.19" ] || [ -z "$ncgen" ] || [ -z "$ncdump" ]; then
        skip "run: there is no library in $prefix/lib, or no ncgen and ncdump"
        return
    fi
    "$ncgen" -k nc3 -o types.nc "$here/dump/types.cdl"
    local library="zonda run: (process [0-9]+|[^ ]+) uses $prefix/lib/libnetcdf.so[.0-9]* \(Zonda"
    local preload="zonda run: (process [0-9]+|[^ ]+) uses $prefix/lib/libzonda-preload.so \(Zonda"
    local sum='import netCDF4; print(netCDF4.Dataset("types.nc")["s"][1:].sum())'

    runs "ncdump finds the library" 0 "^netcdf types" "$library" "$zonda" run -v -- ncdump -h types.nc
    runs "ncdump by preloading" 0 "^netcdf types" "$preload" \
        "$zonda" run -v --mode preload -- ncdump -h types.nc
    if command -v Rscript >/dev/null; then
        runs "R by preloading" 0 "^libzonda-preload" "mode preload: R puts" "$zonda" run -v -- \
            Rscript -e 'm <- readLines("/proc/self/maps"); cat(basename(m[grep("zonda-preload", m)][1]))'
    else
        skip "run R: there is none"
    fi
    runs "without -v nothing is said" 0 "^netcdf types" "^$" "$zonda" run -- ncdump -h types.nc
    runs "--lib" 0 "^netcdf types" "$library" \
        "$zonda" run -v --lib "$prefix/lib" -- ncdump -h types.nc
    if command -v ncks >/dev/null; then
        runs "ncks" 0 "types" "$library" "$zonda" run -v -- ncks -m types.nc
    else
        skip "run ncks: there is none"
    fi
    if /usr/bin/python3 -c 'import netCDF4' 2>/dev/null; then
        # It takes a symbol of HDF5 through libnetcdf, which libzonda-hdf5-version.so has.
        runs "Debian's netCDF4 for Python" 0 "^-?[0-9]+" "mode library: .*$library" \
            "$zonda" run -v -- /usr/bin/python3 -c "$sum"
        printf '#!/usr/bin/python3\n%s\n' "$sum" >script
        chmod +x script
        runs "a script in Python" 0 "^-?[0-9]+" "mode library: .*$library" "$zonda" run -v -- ./script
    else
        skip "run Debian's netCDF4 for Python: there is none"
    fi
    if "$venv/bin/python" -c 'import netCDF4' 2>/dev/null; then
        runs "the netCDF4 wheel" 0 "^-?[0-9]+" "mode preload: .*$preload" \
            "$zonda" run -v -- "$venv/bin/python" -c "$sum"
        runs "the netCDF4 wheel by library path is a warning" 0 "^-?[0-9]+" \
            "warning: .* will not use Zonda: .* would load .*libnetcdf-" \
            "$zonda" run --mode library -- "$venv/bin/python" -c "$sum"
        runs "the netCDF4 wheel writes, too" 0 "^netcdf made" "" sh -c '
            "$1" run -- "$2" -c "
import netCDF4
with netCDF4.Dataset(\"made.nc\", \"w\", format=\"NETCDF3_CLASSIC\") as f:
    f.createDimension(\"x\", 3)
    f.createVariable(\"v\", \"f4\", (\"x\",))[:] = [1, 2, 3]
" && "$3" made.nc' sh "$zonda" "$venv/bin/python" "$ncdump"
    else
        skip "run the netCDF4 wheel: $venv has none"
    fi

    if command -v gcc >/dev/null; then
        printf 'int main(void) { return 5; }\n' >static.c
        if gcc -static -o static static.c 2>/dev/null; then
            runs "a static program is a warning" 5 "" "^zonda run: warning: ./static will not use \
Zonda: it is statically linked" "$zonda" run -- ./static
        else
            skip "run a static program: gcc cannot link one"
        fi
        # Bound to the distribution's library by an RPATH, which goes before LD_LIBRARY_PATH.
        local theirs
        theirs=$(ldd "$ncdump" | sed -n 's/.*libnetcdf.so[.0-9]* => \([^ ]*\).*/\1/p')
        printf 'const char *nc_inq_libvers(void);\nint puts(const char *);\n%s\n' \
            'int main(void) { return puts(nc_inq_libvers()) < 0; }' >rpath.c
        if gcc -o rpath rpath.c "$theirs" "-Wl,-rpath,$(dirname "$theirs")" \
            -Wl,--disable-new-dtags 2>/dev/null; then
            runs "a program with RPATH" 0 "." "mode preload: .*$preload" "$zonda" run -v -- ./rpath
            runs "a program with RPATH by library path is a warning" 0 "." \
                "warning: .*will not use Zonda: .*rpath would load $theirs" \
                "$zonda" run --mode library -- ./rpath
        else
            skip "run a program with RPATH: gcc cannot link one"
        fi
    else
        skip "run static programs and ones with RPATH: there is no gcc"
    fi

    runs "exit status of the program" 7 "" "^$" "$zonda" run -- sh -c 'exit 7'
    runs "exit status of the program, watched" 7 "" "no libnetcdf was seen" \
        "$zonda" run -v -- sh -c 'exit 7'
    runs "a signal ends the program" 143 "" "" "$zonda" run -- sh -c 'kill -TERM $$'
    runs "a signal ends the program, watched" 143 "" "" "$zonda" run -v -- sh -c 'kill -TERM $$'
    runs "signals are passed on" 42 "ready" "" sh -c '
        "$0" run -v -- sh -c "trap \"exit 42\" TERM; echo ready; while :; do sleep 0.05; done" &
        sleep 0.7
        kill -TERM $!
        wait $!' "$zonda"
    runs "arguments of the program are its own" 0 "^-v --mode x -$" "^$" \
        "$zonda" run -- echo -v --mode x -
    runs "settings reach the program" 0 "^event,file full $scratch/trace.txt" "^$" "$zonda" run \
        --io file --sync full --trace trace.txt -- sh -c 'echo $ZONDA_IO $ZONDA_SYNC $ZONDA_TRACE'
    runs "a bad layer spec" 2 "^$" "^zonda: invalid value .*--io.*frobnicate" \
        "$zonda" run --io frobnicate:1,file -- true
    runs "--trace leaves a trace" 0 "^[1-9][0-9]* read" "^$" sh -c '
        "$0" run --trace trace.txt -- "$1" types.nc >/dev/null &&
        awk "/read/ { n++ } END { print n, \"read\" }" trace.txt' "$zonda" "$ncdump"
    runs "standard input is the program's" 0 "^hello" "^$" \
        sh -c 'echo hello | "$0" run -- cat' "$zonda"
}

# shellcheck source=copy/cases.sh
. "$here/copy/cases.sh"

if (($# == 0)); then set -- dump info copy view trace usage run; fi
for part; do
    case $part in
        dump | info | copy | view | trace | usage | run) "test_$part" ;;
        *)
            echo "cli: no part $part" >&2
            exit 2
            ;;
    esac
done
echo "$passed passed, $failed failed, $skipped skipped"
((failed == 0))

# Cases of `zonda run`, read by ../run.sh.

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
    runs "--check" 0 "^netcdf types" "^zonda run: checked: .*ncdump will load $prefix/lib/libnetcdf" \
        "$zonda" run --check -- ncdump -h types.nc
    runs "--check of what cannot be told" 1 "^$" "cannot be told" "$zonda" run --check -- sh -c 'echo 1'
    # The shell runs what the system does not.
    printf '[ "$1" = word ] && ncdump -h types.nc\n' >plain
    chmod +x plain
    runs "a script that names no interpreter" 0 "^netcdf types" "^$" "$zonda" run -- ./plain word
    runs "such a script as a child" 0 "^netcdf types" "^zonda run: mode preload: /bin/sh names no libnetcdf" "$zonda" run -v -- ./plain word
    runs "--check of such a script" 1 "^$" "plain will use Zonda cannot be told" "$zonda" run --check -- ./plain word
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
    if "$python" -c 'import netCDF4' 2>/dev/null; then
        runs "the netCDF4 wheel" 0 "^-?[0-9]+" "mode preload: .*$preload" \
            "$zonda" run -v -- "$python" -c "$sum"
        runs "the netCDF4 wheel by library path is a warning" 0 "^-?[0-9]+" \
            "warning: .* will not use Zonda: .* would load .*libnetcdf-" \
            "$zonda" run --mode library -- "$python" -c "$sum"
        runs "the netCDF4 wheel, checked" 0 "^-?[0-9]+" \
            "^zonda run: checked: Python's netCDF4 package calls libnetcdf .* of Zonda" \
            "$zonda" run --check -- "$python" -c "$sum"
        runs "the netCDF4 wheel without Zonda does not start" 1 "^$" "will not use Zonda" \
            "$zonda" run --check --mode library -- "$python" -c "$sum"
        runs "the netCDF4 wheel writes, too" 0 "^netcdf made" "" sh -c '
            "$1" run -- "$2" -c "
import netCDF4
with netCDF4.Dataset(\"made.nc\", \"w\", format=\"NETCDF3_CLASSIC\") as f:
    f.createDimension(\"x\", 3)
    f.createVariable(\"v\", \"f4\", (\"x\",))[:] = [1, 2, 3]
" && "$3" made.nc' sh "$zonda" "$python" "$ncdump"
    else
        skip "run the netCDF4 wheel: no Python with it"
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
    runs "exit status of the program, watched" 7 "" "names no libnetcdf" \
        "$zonda" run -v -- sh -c 'exit 7'
    # What it starts may bring a libnetcdf of its own.
    runs "a program that starts others" 0 "libzonda-preload.so" "^$" "$zonda" run -- env sh -c 'echo $LD_PRELOAD'
    runs "a signal ends the program" 143 "" "" "$zonda" run -- sh -c 'kill -TERM $$'
    runs "a signal ends the program, watched" 143 "" "" "$zonda" run -v -- sh -c 'kill -TERM $$'
    runs "signals are passed on" 42 "ready" "" sh -c '
        "$0" run -v -- sh -c "trap \"exit 42\" TERM; echo ready; while :; do sleep 0.05; done" &
        sleep 0.7
        kill -TERM $!
        wait $!' "$zonda"
    runs "arguments of the program are its own" 0 "^-v --mode x -$" "^$" \
        "$zonda" run -- echo -v --mode x -
    runs "settings reach the program" 0 "^file full $scratch/trace.txt" "^$" "$zonda" run \
        --io file --sync full --trace trace.txt -- sh -c 'echo $ZONDA_IO $ZONDA_SYNC $ZONDA_TRACE'
    runs "a bad layer spec" 2 "^$" "^zonda: invalid value .*--io.*frobnicate" \
        "$zonda" run --io frobnicate:1,file -- true
    runs "--trace leaves a trace" 0 "nc_open +1 " "^$" sh -c '
        "$0" run --trace run.trace -- "$1" types.nc >/dev/null && "$0" trace run.trace' \
        "$zonda" "$ncdump"
    runs "standard input is the program's" 0 "^hello" "^$" \
        sh -c 'echo hello | "$0" run -- cat' "$zonda"
}

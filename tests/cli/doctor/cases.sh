# Cases of `zonda doctor`, read by ../run.sh. What it says of the machine is the machine's; what follows from a setting, a program or a folder is
# the same everywhere.

# shellcheck source=/dev/null
. "$here/run/cases.sh"

test_doctor() {
    if [ ! -e "$prefix/lib/libnetcdf.so.19" ]; then
        skip "doctor: there is no library in $prefix/lib"
        return
    fi
    mkdir -p here
    runs "doctor of a folder" 0 "a lock keeps a second writer out.*nothing is wrong" "^$" "$zonda" doctor here
    [ -z "$(ls -A here)" ] && pass "run doctor leaves nothing behind" || fail "run doctor leaves nothing behind"
    runs "doctor of a missing folder" 1 "WRONG +no-such: No such file.*1 thing is wrong" "^$" "$zonda" doctor no-such
    runs "doctor of a misspelt setting" 1 "WRONG +ZONDA_MEMROY: .*did you mean ZONDA_MEMORY" "^$" \
        env ZONDA_MEMROY=1G "$zonda" doctor here
    runs "doctor of a setting that is none" 1 "WRONG +ZONDA_SYNC=always: " "" env ZONDA_SYNC=always "$zonda" doctor here
    runs "doctor of settings that are understood" 0 "ok +ZONDA_SYNC=data.*nothing is wrong" "^$" \
        env ZONDA_SYNC=data ZONDA_ASYNC=on "$zonda" doctor here
    touch here/x.nc.zonda-journal
    runs "doctor of what a dead writer left" 0 "note +x.nc.zonda-journal.*zonda recover x.nc" "^$" "$zonda" doctor here
    runs "doctor --json" 0 '^\[\{"title":"machine".*"level":"ok"' "^$" "$zonda" doctor --json here
    if [ -n "$ncdump" ]; then
        runs "doctor of a program" 0 "ncdump loads .*libnetcdf.*not Zonda's.*zonda run -- PROGRAM. gives it Zonda's" "^$" \
            "$zonda" doctor -- ncdump -h types.nc
        runs "doctor of a program by library path" 0 "ncdump loads $prefix/lib/libnetcdf.so[.0-9]*, which is Zonda's" "" \
            env LD_LIBRARY_PATH="$prefix/lib" "$zonda" doctor -- ncdump
    fi
    runs "doctor of no program" 127 "^$" "no-such-program: no such program" "$zonda" doctor -- no-such-program
    # A process that has it: Python's ctypes, where there is one.
    if [ -n "$python" ] && "$python" -c 'import ctypes' 2>/dev/null; then
        "$python" -c "import ctypes, time; ctypes.CDLL('$prefix/lib/libnetcdf.so.19'); print(1, flush=True); time.sleep(60)" >loaded &
        local process=$!
        until [ -s loaded ] || ! kill -0 $process 2>/dev/null; do sleep 0.05; done
        runs "doctor --pid" 0 "has $prefix/lib/libnetcdf.so[.0-9]* loaded: Zonda" "^$" "$zonda" doctor --pid $process
        kill $process
        wait $process 2>/dev/null
    fi
    runs "doctor of no process" 1 "^$" "/proc/999999999/maps: No such file" "$zonda" doctor --pid 999999999
}

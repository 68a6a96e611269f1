# Messages, help and exit statuses of all subcommands, read by ../run.sh.

test_usage() {
    # Messages name offsets and sizes of reads, which the default stack chooses.
    export ZONDA_IO=file
    [ -n "$ncgen" ] && "$ncgen" -k nc3 -o types.nc "$here/dump/types.cdl"
    echo "no netCDF at all" >not-netcdf.nc
    : >empty.nc
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
view-no-file|view
view-missing-file|view no-such-file.nc v
view-missing-variable|view types.nc nope
view-text|view types.nc c
view-bad-at|view types.nc s --at n
view-missing-dimension|view types.nc s --at nope=0
view-beyond|view types.nc s --at n=99
view-bad-picture|view types.nc s -o picture.gif
view-no-folder|view types.nc s -o no-such-folder/picture.png
view-width-of-nothing|view types.nc s --width 300
view-colours-of-nothing|view types.nc s --diverging
view-list-colours|view types.nc --diverging
recover-not-netcdf|recover not-netcdf.nc empty.nc
view-bad-width|view types.nc s --width 7 -o picture.png
trace-no-file|trace
trace-missing-file|trace no-such-file.txt
trace-width-of-nothing|trace no-such-file.txt --width 300
trace-bad-picture|trace no-such-file.txt -o picture
run-no-program|run
run-missing-program|run -- no-such-program-here
run-no-executable|run -- /etc/passwd
run-bad-sync|run --sync sometimes -- true
run-bad-lib|run --lib /nowhere/lib -- true
man-unknown|man frobnicate
CASES
    for line in "--help" "--version" "help run" "help dump" "info --help" "man" "man dump" \
        "help view" "help trace" "help tune" "help top" "man view" "man trace" "man tune" "man top" "help copy" "man copy" \
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
    outputs
}

# Whatever is written to standard output: one that takes nothing is a failure, whoever asked for what; one that nobody
# reads is none, but does not turn the answer of `diff` and `check` into another one.
outputs() {
    if [ -z "$ncgen" ]; then
        skip "usage of outputs: there is no ncgen to make a file with"
        return
    fi
    local line status n=0 wrong=0 prefixed
    "$ncgen" -k nc3 -o one.nc "$here/dump/types.cdl"
    sed 's/= 1/= 2/' "$here/dump/types.cdl" | "$ncgen" -k nc3 -o other.nc
    head -c 60 one.nc >cut.nc
    ZONDA_TRACE=recorded "$zonda" info one.nc >/dev/null
    while read -r line; do
        n=$((n + 1))
        prefixed=$prefix/bin/$line
        # shellcheck disable=SC2086
        (eval "$prefixed") >/dev/full 2>got.err
        status=$?
        if [ $status -eq 0 ] || ! grep -q 'No space left on device' got.err; then
            echo "        $line onto a full disk: exit status $status, $(head -n 1 got.err)"
            wrong=1
        fi
    done <<'COMMANDS'
zonda info one.nc
zonda info --json one.nc
zonda dump one.nc
zonda dump -h one.nc
zonda copy -q -f --json one.nc copied.nc
zonda check one.nc
zonda check --json one.nc
zonda diff one.nc other.nc
zonda diff --json one.nc other.nc
zonda view one.nc
zonda view one.nc s
zonda view one.nc s --text
zonda recover one.nc
zonda completions bash
zonda man
zonda man copy
zonda --help
zonda --version
zonda help copy
zonda copy --help
ncdump one.nc
ncdump -h one.nc
ncdump -k one.nc
ncdump -x one.nc
ncgen -lc $here/dump/types.cdl
ncgen -lj $here/dump/types.cdl
ncgen3 -c $here/dump/types.cdl
COMMANDS
    if ((wrong)); then fail "usage onto a full disk"; else pass "usage onto a full disk: $n commands"; fi
    # STATUS and the command, into a pipe that is closed before it starts.
    wrong=0
    while read -r status line; do
        { sleep 0.1; "$zonda" $line 2>/dev/null; echo $? >status; } | true
        for _ in {1..300}; do [ -s status ] && break; sleep 0.1; done
        if [ "$(cat status)" != "$status" ]; then
            echo "        zonda $line into a closed pipe: exit status $(cat status), not $status"
            wrong=1
        fi
        rm -f status
    done <<'COMMANDS'
1 diff one.nc other.nc
0 diff one.nc one.nc
1 check cut.nc
0 check one.nc
0 dump one.nc
0 info one.nc
COMMANDS
    if ((wrong)); then fail "usage into a closed pipe"; else pass "usage into a closed pipe"; fi
}

# Messages, help and exit statuses of all subcommands, read by ../run.sh.

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
view-no-file|view
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
        "help view" "help trace" "help tune" "man view" "man trace" "man tune" "help copy" "man copy" \
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

# Cases of `zonda view`, read by ../run.sh.

test_view() {
    if [ -z "$ncgen" ]; then
        skip "view: there is no ncgen to make a file with"
        return
    fi
    export ZONDA_IO=file
    "$ncgen" -k nc3 -o field.nc "$here/view/field.cdl"
    local name variable
    # NAME, the variable and its options, one case a line: text first, without what is about pictures alone, then
    # the picture.
    while IFS='|' read -r name variable; do
        # shellcheck disable=SC2046
        golden "view $name" "$here/view/$name.txt" "$zonda" view field.nc $(sed -E 's/ --(diverging|width [0-9]+)//' <<<"$variable")
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
    # Times as dates: along axes, where a dimension is fixed, and not where units say no date.
    "$ncgen" -k nc3 -o dates.nc "$here/view/dates.cdl"
    while IFS='|' read -r name variable; do
        # shellcheck disable=SC2086
        golden "view $name" "$here/view/$name.txt" "$zonda" view dates.nc $variable
        # shellcheck disable=SC2086
        picture "view $name as SVG" "$here/view/$name.svg.txt" "$zonda" view dates.nc $variable
    done <<'CASES'
dates|temp
dates-at|temp --at time=3
dates-series|series
dates-strange|strange
CASES
    golden "view of a series in text" "$here/view/dates-text.txt" "$zonda" view dates.nc series --text
    "$ncgen" -k nc3 -o unsigned.nc "$here/view/unsigned.cdl"
    # The same picture of the same numbers in a group, packed into chunks.
    "$ncgen" -k nc4 -o grouped.nc "$here/view/grouped.cdl"
    golden "view of a group" "$here/view/grouped.txt" "$zonda" view grouped.nc /ocean/deep/T --at time=-1
    picture "view of a group as SVG" "$here/view/grouped.svg.txt" \
        "$zonda" view grouped.nc /ocean/deep/T --at time=-1
    # Numbers that stand for others: a table of what attributes can say, beside other readers.
    golden "view of unsigned shorts" "$here/view/unsigned.txt" "$zonda" view unsigned.nc s
    golden "view of attributes without a meaning" "$here/view/unused.txt" "$zonda" view unsigned.nc odd
    if "$python" -c 'import netCDF4, xarray' 2>/dev/null; then
        local said
        mkdir -p decoded
        if said=$(cd decoded && "$python" "$here/view/decoded.py" "$zonda" 2>&1); then
            pass "view decodes as others do: $(tail -n 1 <<<"$said")"
        else
            fail "view decodes as others do"
            tail -n 8 <<<"$said" | sed 's/^/        /'
        fi
    else
        skip "view decodes as others do: no Python with netCDF4 and xarray"
    fi
    golden "view without a variable" "$here/view/list.txt" "$zonda" view field.nc
    golden "view of groups without a variable" "$here/view/list-groups.txt" "$zonda" view grouped.nc
    golden "view of a picture of nothing" "$here/view/list-output.txt" "$zonda" view field.nc -o nothing.png
    golden "view of no group" "$here/view/no-group.txt" "$zonda" view grouped.nc /ocean/T
    golden "view of a map in text" "$here/view/text-map.txt" "$zonda" view field.nc T --text
    golden "view of a line in text" "$here/view/text-line.txt" "$zonda" view field.nc line --text
    golden "view in text where all is missing" "$here/view/text-missing.txt" "$zonda" view field.nc filled --text
    "$zonda" view field.nc T -o one.png && "$zonda" view - T -o two.PNG <field.nc
    is_png "view as PNG" one.png
    # No device but a limit that is met: the output is a pipe, for which there is none.
    (trap '' XFSZ; ulimit -f 0; "$zonda" view field.nc T -o cut.png 2>&1; echo "status $?") | cat >told
    if [ ! -e cut.png ] && grep -q "^zonda: cut.png: File too large" told && grep -q "^status 1" told; then
        pass "view leaves no part of a picture"
    else
        fail "view leaves no part of a picture"
        sed 's/^/        /' told
    fi
    if cmp -s one.png two.PNG; then pass "view gives the same bytes"; else fail "view gives the same bytes"; fi
    unset ZONDA_IO
}

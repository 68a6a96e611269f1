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
last|T --index time=-1 --index lev=-1
section|T --index lon=2
profile|T --index time=0,lat=1 --index lon=-1
values|T --at lev=420,time=2000-01-02
west|T --at lon=50W --at time=0
nearest|T --at lat=30,lon=-90.1,time=2000-01-02T12
both-signs|wind --diverging
narrow|wind --width 480
range|wind --range -5,15
panels|T --at lev=500,lev=900,time=2000-01-01 --index time=-1
panels-line|T --panels lev --index lat=1,time=1
panels-many|T --panels time --at lev=100,lev=900 --no-coasts
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
dates-at|temp --at time=2000-01-01T11
dates-series|series
dates-strange|strange
CASES
    # Latitudes and longitudes of two dimensions, named by `coordinates` or found by their units; pressure that goes down; axes
    # that are turned; longitudes that jump by a turn.
    "$ncgen" -k nc3 -o grids.nc "$here/view/grids.cdl"
    while IFS='|' read -r name variable; do
        # shellcheck disable=SC2046
        golden "view $name" "$here/view/$name.txt" "$zonda" view grids.nc $(sed -E 's/ --no-coasts//' <<<"$variable")
        # shellcheck disable=SC2086
        picture "view $name as SVG" "$here/view/$name.svg.txt" "$zonda" view grids.nc $variable
    done <<'CASES'
curved|T --at time=2004-07,plev=85000
curved-dims|T --at time=2004-07,plev=85000 --dims
curved-named|named --no-coasts
curved-profile|T --at latitude=47.2,longitude=8.1 --index time=1
curved-series|T --at lat=50N,lon=358 --index lev=0
turned|turned
upright|section
lat-lon-first|deep --no-coasts
lat-lon-first-at|deep --at lat=30
CASES
    # Pressures of more than a decade by ratios, with bounds that end at 0 and without; panels along a dimension that is time by its units; numbers that
    # are text.
    "$ncgen" -k nc3 -o heights.nc "$here/view/heights.cdl"
    while IFS='|' read -r name variable; do
        # shellcheck disable=SC2086
        golden "view $name" "$here/view/$name.txt" "$zonda" view heights.nc $variable
        # shellcheck disable=SC2086
        picture "view $name as SVG" "$here/view/$name.svg.txt" "$zonda" view heights.nc $variable
    done <<'CASES'
heights|T
heights-layers|layers
heights-panels|T --panels time=2
heights-profile|T --panels Time
heights-text|u
CASES
    # Coordinates of thousands of millions of elements that nobody wrote: they are not all in memory.
    if "$ncgen" -k nc4 -o huge.nc "$here/view/huge.cdl" 2>/dev/null; then
        golden "view along a huge dimension" "$here/view/huge.txt" bash -c '
            ulimit -v 4000000
            for words in "v --at x=5" "v --index x=5" "w --at y=7" "w --at y=4"; do
                "$0" view huge.nc $words 2>&1
                echo "$words: $?"
            done' "$zonda"
    else
        skip "view along a huge dimension: this ncgen makes no netCDF-4 files"
    fi
    # Cells as large as bounds say: layers, and cells with corners that leave room between them.
    "$ncgen" -k nc3 -o bounds.nc "$here/view/bounds.cdl"
    picture "view of bounds" "$here/view/bounds.svg.txt" "$zonda" view bounds.nc T
    picture "view of corners" "$here/view/bounds-corners.svg.txt" "$zonda" view bounds.nc four_cells --no-coasts
    # Places that are not there, each with what is.
    golden "view of places that are not there" "$here/view/nowhere.txt" bash -c '
        while read -r file variable places; do
            "$0" view "$file" "$variable" $places 2>&1
            echo "$places: $?"
        done' "$zonda" <<'PLACES'
field.nc T --at time=2001
field.nc T --at time=2000-02-30
field.nc T --at time=tomorrow
field.nc T --at time=2
field.nc T --at lev=-1
field.nc T --at lev=1200
field.nc T --at lev=low
field.nc T --at lat=91
field.nc T --at lat=10E
field.nc T --at lot=3
field.nc T --index lat=4
field.nc T --index lat=1.5
field.nc T --at lat
field.nc filled --at lon=1,time=1
field.nc jumps --at x=7
field.nc scalar --at x=1
dates.nc temp --at time=1999-12-30
dates.nc temp --at time=2000-02-29
grids.nc T --at latitude=10,longitude=8
grids.nc T --at latitude=47
grids.nc T --at latitud=47
grids.nc T --at longitude=high,latitude=3
grids.nc named --at x=-1
grids.nc named --at plev=3
grids.nc T --panels leve
grids.nc T --panels lev --at plev=50000
grids.nc T --panels lev=0
grids.nc T --range 3
field.nc T --index time=0,time=1 --panels lat=4 --index lon=0,lon=1,lon=2,lon=3,lon=4
PLACES
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
    # What terminals can show; a width that the environment says nothing of is 80 columns.
    local kind
    for kind in true 256 plain ascii; do
        golden "view of a map, --terminal=$kind" "$here/view/terminal-$kind.txt" "$zonda" view field.nc T --terminal=$kind
    done
    golden "view in a locale without half blocks" "$here/view/terminal-256-c.txt" env LC_ALL=C "$zonda" view field.nc wind --terminal=256
    golden "view of a curvilinear grid in text" "$here/view/terminal-curved.txt" "$zonda" view grids.nc T --at time=2004-07 --terminal
    golden "view of panels in text" "$here/view/terminal-panels.txt" "$zonda" view field.nc T --panels lev=2 --index lat=0,time=0 --terminal=ascii
    golden "view of dates in ASCII" "$here/view/terminal-dates.txt" "$zonda" view dates.nc temp --terminal=ascii
    # As wide as a terminal is, and in its colours, where there is one.
    if command -v script >/dev/null; then
        env -u NO_COLOR -u COLORTERM TERM=xterm-256color script -qec "stty cols 60 rows 30; $zonda view field.nc T" /dev/null </dev/null |
            tr -d '\r' >shown
        if [ "$(sed 's/\x1b\[[0-9;]*m//g' shown | wc -L)" = 60 ] && grep -q '38;5;[0-9]*;48;5;' shown; then
            pass "view is as wide as the terminal"
        else
            fail "view is as wide as the terminal"
            sed 's/^/        /' shown
        fi
    else
        skip "view on a terminal: there is no script to make one"
    fi
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

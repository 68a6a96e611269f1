#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# C tests of the library: each program of this folder is compiled against our headers and against
# the distribution's (both must accept it), run on the library, and run again under valgrind, where
# an error or a lost byte fails it. Then each public header is compiled, as C and as C++.
#
#   tests/c/run.sh             all
#   tests/c/run.sh data fork   some programs
#
# tests/rig/places.py has the settings. Scratch is out/c.
set -uo pipefail
cd "$(dirname "$0")/../.."

# Files of the reference that programs read.
export ZONDA_NC4_DATA=$PWD/crates/zonda-nc4/tests/data
eval "$(tests/rig/shell.py)"
here=$PWD/tests/c
scratch=$PWD/out/c
cc=${CC:-gcc} cxx=${CXX:-g++}
flags=(-std=gnu11 -O1 -g -Wall -Wextra -Werror)
# Not under valgrind: it runs one thread at a time and takes minutes for these.
without_valgrind=" descriptors threads fork threads_nc4 exit_signal exit_stuck fork_during fork_bound fork_slow disjoint close_beside fork_dirty last_thread persist_beside plugin_calls fork_memory "
# Functions that the distribution's header does not know yet.
ours_only=" newer filters_nc4 said plugin_calls fork_memory "
passed=0 failed=0 skipped=0

if [ ! -e "$library" ]; then
    echo "tests/c: no libnetcdf.so.19 in $libdir; run make build" >&2
    exit 1
fi

# ok|fail|skip NAME [DETAIL]: one line each.
ok() { passed=$((passed + 1)); echo "ok   $*"; }
fail() { failed=$((failed + 1)); echo "FAIL $*"; }
skip() { skipped=$((skipped + 1)); echo "skip $*"; }

# attempt NAME COMMAND...: runs it in a folder of its own and shows what it said if it failed.
attempt() {
    local name=$1
    shift
    local folder=$scratch/$name
    rm -rf "$folder"
    mkdir -p "$folder"
    if (cd "$folder" && timeout 300 "$@") >"$scratch/$name.log" 2>&1; then
        rm -rf "$folder"
        ok "$name"
    else
        fail "$name (exit $?, files in out/c/$name)"
        tail -n 25 "$scratch/$name.log" | sed 's/^/    /'
    fi
}

mkdir -p "$scratch"
# The filters that filters_nc4 and plugin_calls look for.
export ZONDA_PLUGINS=$scratch/plugins
mkdir -p "$ZONDA_PLUGINS"
for plugin in inplace calling; do
    if ! "$cc" -std=gnu11 -shared -fPIC "crates/zonda-plugin/tests/plugins/$plugin.c" \
        -o "$ZONDA_PLUGINS/lib$plugin.so"; then
        fail "the plugin $plugin does not compile"
    fi
done
if [ $# -gt 0 ]; then
    names=("$@")
else
    names=()
    for source in "$here"/*.c; do
        names+=("$(basename "$source" .c)")
    done
fi

# one NAME: all that is done with a program, one line for each result.
one() {
    local name=$1 leaks
    local program=$scratch/$name.program
    if ! "$cc" "${flags[@]}" -I"$incdir" -I"$here" "$here/$name.c" -o "$program" \
        -L"$libdir" -l:libnetcdf.so.19 -lpthread -lm >"$scratch/$name.log" 2>&1; then
        fail "$name: does not compile"
        sed 's/^/    /' "$scratch/$name.log"
        return
    fi
    if [[ $ours_only == *" $name "* ]]; then
        :
    elif [ ! -e /usr/include/netcdf.h ]; then
        skip "$name with the distribution's header: not installed"
    elif "$cc" "${flags[@]}" -I"$here" -fsyntax-only "$here/$name.c" >"$scratch/$name.log" 2>&1; then
        ok "$name with the distribution's header"
    else
        fail "$name with the distribution's header"
        sed 's/^/    /' "$scratch/$name.log"
    fi
    attempt "$name" env LD_LIBRARY_PATH="$libdir" "$program"
    if [[ $without_valgrind == *" $name "* ]]; then
        return
    elif ! command -v valgrind >/dev/null; then
        skip "$name under valgrind: not installed"
        return
    fi
    leaks=(--leak-check=full --show-leak-kinds=definite,indirect,possible
        --errors-for-leak-kinds=definite,indirect,possible)
    case $name in
        # Children that end with files open, or that know plugins to the end.
        exit_drain | filters_nc4 | small_calls) leaks=(--leak-check=no) ;;
        # Threads of the pool, and the table of plugins that were looked for, stay until the end.
        user_format | said) leaks=(--leak-check=full --show-leak-kinds=definite,indirect
            --errors-for-leak-kinds=definite,indirect) ;;
    esac
    attempt "$name.valgrind" env LD_LIBRARY_PATH="$libdir" valgrind -q "${leaks[@]}" \
        --error-exitcode=9 "$program"
    # On a device where each call takes long the default cache has a thread.
    if [[ $name == data || $name == nc4_write ]]; then
        attempt "$name.slow.valgrind" env LD_LIBRARY_PATH="$libdir" \
            ZONDA_IO=cache,throttle:10G:40us valgrind -q "${leaks[@]}" --error-exitcode=9 "$program"
    fi
}

# Half of the time is waits: three programs at a time, and what each said when all of it is there.
running=0
for name in "${names[@]}"; do
    if [ $running -ge 3 ]; then
        wait -n
        running=$((running - 1))
    fi
    one "$name" >"$scratch/$name.said" 2>&1 &
    running=$((running + 1))
done
wait
for name in "${names[@]}"; do
    cat "$scratch/$name.said"
    # Its last line is a result, or it was ended by somebody.
    grep -q '^\(ok  \|FAIL\|skip\) ' "$scratch/$name.said" || fail "$name says nothing"
    passed=$((passed + $(grep -c '^ok   ' "$scratch/$name.said")))
    failed=$((failed + $(grep -c '^FAIL ' "$scratch/$name.said")))
    skipped=$((skipped + $(grep -c '^skip ' "$scratch/$name.said")))
    rm "$scratch/$name.said"
done

if [ $# -eq 0 ]; then
    for header in "$incdir"/*.h; do
        name=$(basename "$header" .h)
        for language in c c++; do
            compiler=$cc
            [ $language = c ] || compiler=$cxx
            if ! command -v "$compiler" >/dev/null; then
                skip "$name.h as $language: no $compiler"
                continue
            fi
            if [ "$name" = netcdf_par ] && ! echo '#include <mpi.h>' | "$compiler" -E - >/dev/null 2>&1; then
                skip "$name.h as $language: no mpi.h"
                continue
            fi
            # Behind netcdf.h, as its companions want it, and twice, for the guard.
            printf '#include <%s.h>\n' netcdf "$name" "$name" >"$scratch/header"
            if "$compiler" -x $language -Wall -Wextra -Werror -pedantic -Wno-long-long -I"$incdir" \
                -fsyntax-only "$scratch/header" >"$scratch/header.log" 2>&1; then
                ok "$name.h as $language"
            else
                fail "$name.h as $language"
                head -n 12 "$scratch/header.log" | sed 's/^/    /'
            fi
        done
    done
fi

rm -f "$scratch"/*.program
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]

#!/usr/bin/env bash
# Copies dist/ to an installation prefix, without what only debuggers read. Everything in it finds its neighbours by relative paths.
#
#   scripts/install.sh PREFIX      DESTDIR is put in front of it, for packagers
#
# ZONDA_DIST     another filled prefix than dist/
# ZONDA_STATIC=yes also the static library, which few want and which is larger than all else but the tools
# ZONDA_STRIP=no keeps symbols and lines for debuggers in the files (half a gigabyte)
# ZONDA_DEBUG    a folder that gets them as files of their own, where debuggers find them: FOLDER/.build-id/ab/cdef.debug
#
# PREFIX/share/zonda/installed.txt lists what was put there: scripts/uninstall.sh removes that and nothing else, and so does the
# installation of a newer version with what it has no more.
set -euo pipefail
cd "$(dirname "$0")/.."

prefix=${1:?usage: scripts/install.sh PREFIX}
case $prefix in
    /*) ;;
    *)
        echo "install.sh: PREFIX must be an absolute path, not $prefix" >&2
        exit 2
        ;;
esac
dist=${ZONDA_DIST:-dist}
# One for programs without shared libraries has the other one alone.
if [ ! -e "$dist/lib/libnetcdf.so.19" ] && [ ! -e "$dist/lib/libnetcdf.a" ]; then
    echo "install.sh: $dist is not filled; run make build" >&2
    exit 1
fi
objcopy=${OBJCOPY:-objcopy} strip=${STRIP:-strip}
target=${DESTDIR-}$prefix
list=share/zonda/installed.txt
before=$(mktemp)
now=$(mktemp)
trap 'rm -f "$before" "$now"' EXIT
[ ! -f "$target/$list" ] || cp "$target/$list" "$before"

# folder PATH: makes a folder below the prefix; what was not there before is noted.
folder() {
    [ "$1" != . ] || return 0
    [ ! -d "$target/$1" ] || return 0
    folder "$(dirname "$1")"
    mkdir "$target/$1"
    echo "folder $1" >>"$now"
}

# build_id FILE: the mark by which debuggers find the lines of a file, or nothing.
build_id() { readelf -n "$1" 2>/dev/null | sed -n 's/^ *Build ID: //p' | head -n 1; }

# copied FILE NEW: as it is, or without what is for debuggers.
copied() {
    local id place
    if [ "${ZONDA_STRIP-}" != no ]; then
        case $1 in
            *.a)
                # Its symbols are those of the interface; of the others, those that it refers to itself stay.
                "$strip" --strip-unneeded -o "$2" "$1"
                chmod --reference="$1" "$2"
                return
                ;;
            */bin/zonda | *.so | *.so.[0-9]*)
                "$strip" --strip-unneeded -o "$2" "$1"
                chmod --reference="$1" "$2"
                id=$(build_id "$1")
                if [ -n "${ZONDA_DEBUG-}" ] && [ -n "$id" ]; then
                    place=$ZONDA_DEBUG/.build-id/${id:0:2}
                    mkdir -p "$place"
                    "$objcopy" --only-keep-debug --compress-debug-sections "$1" "$place/${id:2}.debug"
                    chmod 644 "$place/${id:2}.debug"
                fi
                return
                ;;
        esac
    fi
    cp -a "$1" "$2"
}

if [ ! -d "$target" ]; then
    mkdir -p "$target"
    echo "folder ." >>"$now"
fi
while IFS= read -r -d '' path; do
    [ "$path" != lib/libnetcdf.a ] || [ "${ZONDA_STATIC-}" = yes ] || continue
    folder "$(dirname "$path")"
    echo "file $path" >>"$now"
    # Under another name first, so that a running program keeps the library it has mapped.
    new=$target/$(dirname "$path")/.zonda-new.$$
    rm -f "$new"
    if [ -L "$dist/$path" ]; then cp -a "$dist/$path" "$new"; else copied "$dist/$path" "$new"; fi
    mv -fT "$new" "$target/$path"
done < <(cd "$dist" && find . \( -type f -o -type l \) -printf '%P\0' | sort -z)

# What an older version had and this one has not; folders that an older version made are still ours to remove.
folder "$(dirname "$list")"
echo "file $list" >>"$now"
while read -r kind path; do
    if [ "$kind" = folder ]; then
        echo "folder $path" >>"$now"
    elif ! grep -qxF "file $path" "$now"; then
        rm -f "$target/$path"
    fi
done <"$before"
sort -u "$now" >"$target/$list"
chmod 644 "$target/$list"
echo "installed in $target ($(du -sh --apparent-size "$target" | cut -f1))"

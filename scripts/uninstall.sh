#!/usr/bin/env bash
# Removes what scripts/install.sh put into a prefix: the files of its list, and the folders it made where nothing else is in them.
#
#   scripts/uninstall.sh PREFIX      DESTDIR is put in front of it, as for install.sh
set -euo pipefail

prefix=${1:?usage: scripts/uninstall.sh PREFIX}
target=${DESTDIR-}$prefix
list=$target/share/zonda/installed.txt
if [ ! -f "$list" ]; then
    echo "uninstall.sh: nothing of Zonda was installed in $target ($list is not there)" >&2
    exit 1
fi
lines=$(mktemp)
trap 'rm -f "$lines"' EXIT
cp "$list" "$lines"
while read -r kind path; do
    # A list that somebody changed must not lead out of the prefix.
    case /$path/ in
        */../* | //*)
            echo "uninstall.sh: $list names $path, which is not below the prefix; nothing was removed" >&2
            exit 1
            ;;
    esac
    [ "$kind" = file ] || [ "$kind" = folder ] || {
        echo "uninstall.sh: $list has a line that is not from install.sh: $kind $path" >&2
        exit 1
    }
done <"$lines"
removed=0
while read -r kind path; do
    [ "$kind" = file ] || continue
    rm -f "$target/$path"
    removed=$((removed + 1))
done <"$lines"
# The deepest first.
sed -n 's/^folder //p' "$lines" | sort -r | while read -r path; do
    path=$target/$path
    path=${path%/.}
    [ ! -d "$path" ] || rmdir --ignore-fail-on-non-empty "$path"
done
echo "removed $removed files of Zonda from $target"

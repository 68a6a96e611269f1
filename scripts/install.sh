#!/usr/bin/env bash
# Copies dist/ to an installation prefix. Everything in it finds its neighbours by relative paths.
#
#   scripts/install.sh PREFIX      DESTDIR is put in front of it, for packagers
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
if [ ! -e dist/lib/libnetcdf.so.19 ]; then
    echo "install.sh: dist/ is not filled; run make build" >&2
    exit 1
fi
mkdir -p "${DESTDIR-}$prefix"
# Removed first, so that a running program keeps the library it has mapped.
cp -a --remove-destination dist/. "${DESTDIR-}$prefix/"
echo "installed in ${DESTDIR-}$prefix"

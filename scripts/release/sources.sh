#!/usr/bin/env bash
# A part of scripts/release.sh: the sources of the last commit, and what pip builds from.
set -euo pipefail

name=zonda-$ZONDA_VERSION
if [ -n "$(git status --porcelain --untracked-files=no)" ]; then
    echo "sources.sh: note: there are changes that are not in the last commit, and so not in the archive"
fi
git archive --prefix="$name/" HEAD | xz -6 >"$ZONDA_RELEASE/$name-sources.tar.xz"
PATH=$(dirname "$ZONDA_TOOLS"):$PATH PYTHONPATH=python/packaging "$ZONDA_TOOLS" -c 'import sys, backend; print(backend.build_sdist(sys.argv[1]))' "$ZONDA_RELEASE"

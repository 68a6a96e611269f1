#!/usr/bin/env bash
# A part of scripts/release.sh: packages for Debian of what the part `wheel` made.
set -euo pipefail

arch=$(dpkg --print-architecture)
wheel=("$ZONDA_RELEASE/zonda-$ZONDA_VERSION"-*-abi3-manylinux*"$(uname -m)".whl)
[ -e "${wheel[0]}" ] || { echo "deb.sh: no wheel in $ZONDA_RELEASE; scripts/release.sh FOLDER wheel makes it" >&2; exit 1; }
rm -f "$ZONDA_RELEASE"/*_"$arch".deb
scripts/release/deb.py "$ZONDA_RELEASE" --dist "$ZONDA_WORK/$(uname -m)/prefix" --wheel "${wheel[0]}" --architecture "$arch"
if command -v lintian >/dev/null; then
    # Prefixes below /usr/lib are not what Debian's own packages do; everything else counts.
    lintian --allow-root --fail-on error --suppress-tags-from-file scripts/release/lintian.txt "$ZONDA_RELEASE"/*_"$arch".deb
else
    echo "skipped: no lintian to check the packages with"
fi

#!/usr/bin/env bash
# A part of scripts/release.sh: licences, the bill of materials and the notes beside the files, and the checksums of all.
set -euo pipefail

cp "$ZONDA_WORK/$(uname -m)/prefix/share/doc/zonda"/* docs/release-notes.md SECURITY.md "$ZONDA_RELEASE/"
cd "$ZONDA_RELEASE"
find . -maxdepth 1 -type f ! -name SHA256SUMS -printf '%P\0' | sort -z | xargs -0 sha256sum >SHA256SUMS
echo "$(wc -l <SHA256SUMS) files in SHA256SUMS"

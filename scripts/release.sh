#!/usr/bin/env bash
# Makes the files of a release. Everything is compiled from nothing, by the profile `release`, in out/release/work.
#
#   scripts/release.sh [FOLDER [PART...]]     out/release and all parts by default
#
#   wheel     the Python package for glibc 2.28 and later (manylinux), and a prefix that can be unpacked anywhere
#   deb       packages for Debian 12 and later, and Ubuntu 22.04 and later
#   aarch64   the same for aarch64
#   musl      a static command, a static library for musl, and the Python package for musl (musllinux)
#   conda     the recipe, checked
#   crates    what crates.io would get, built from its archives; ZONDA_CRATES=quick only makes the archives
#   sources   the sources of the last commit
#   sums      SHA256SUMS of all that is there
#
# A part whose tools cannot be had here says `skipped` and why; the others are made all the same. The exit status is 1 if a part failed.
set -uo pipefail
cd "$(dirname "$0")/.."

folder=${1:-out/release}
shift || true
all=(wheel deb aarch64 musl conda crates sources sums)
(($#)) || set -- "${all[@]}"
mkdir -p "$folder" out/release/work
folder=$(cd "$folder" && pwd)
export ZONDA_WORK=$PWD/out/release/work ZONDA_RELEASE=$folder
ZONDA_VERSION=$(scripts/release/version.py) || exit 1
export ZONDA_VERSION
# The Python with maturin, auditwheel, ziglang and deflate, which setup.sh --release makes.
export ZONDA_TOOLS=${ZONDA_TOOLS:-$PWD/out/venv-release/bin/python}
scripts/release/version.py --check || exit 1
failed=()
for part; do
    [[ " ${all[*]} " == *" $part "* ]] || { echo "release.sh: no part $part; there are: ${all[*]}" >&2; exit 2; }
    echo "== $part"
    "scripts/release/$part.sh" || failed+=("$part")
done
ls -l --block-size=K "$folder" | awk 'NF > 8 && $1 !~ /^d/ { printf "%10s  %s\n", $5, $9 }'
if ((${#failed[@]})); then
    echo "release.sh: failed: ${failed[*]}" >&2
    exit 1
fi

#!/usr/bin/env bash
# What files on servers cost: bytes of libnetcdf.so.19, stripped, with the feature `remote` and without, and the code of each crate
# that comes with it.
#
#   scripts/remote-size.sh        builds both in target/, and leaves dist/ alone
#
# By crate: the symbols of the library that is not stripped, by the first crate in their names. What is inlined counts for who calls it.
set -euo pipefail
cd "$(dirname "$0")/.."

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# built NAME OPTION...: bytes of the stripped library
built() {
    local name=$1
    shift
    cargo build --release --quiet -p zonda-capi "$@"
    cargo build --release --quiet -p zonda-cli
    scripts/link.sh "$scratch/$name" >/dev/null
    cp "$scratch/$name/lib/libnetcdf.so.19" "$scratch/$name.so"
    strip -o "$scratch/$name.stripped" "$scratch/$name.so"
    stat -c %s "$scratch/$name.stripped"
}

without=$(built without --no-default-features)
with=$(built with)
echo "libnetcdf.so.19, stripped: $without bytes without, $with bytes with, $((with - without)) more"
echo "by crate, code and constants that have names:"
# crates FILE: bytes and crate
crates() {
    nm --print-size --size-sort --demangle=rust "$1" | python3 -c '
import collections, re, sys
sums = collections.Counter()
for line in sys.stdin:
    parts = line.rstrip().split(" ", 3)
    if len(parts) < 4 or parts[2] not in "tTrRdD":
        continue
    name = re.sub(r"^[<&(\[*]*(dyn |mut |const )*", "", parts[3])
    crate = re.match(r"([a-z_][a-z0-9_]*)::", name)
    sums[crate[1] if crate else "others"] += int(parts[1], 16)
for crate, n in sums.items():
    print(crate, n)'
}
join -a 1 -e 0 -o 0,1.2,2.2 <(crates "$scratch/with.so" | sort) <(crates "$scratch/without.so" | sort) |
    awk '{ more = $2 - $3; if (more > 2048 || more < -2048) printf "%9d  %s\n", more, $1 }' | sort -rn

#!/usr/bin/env bash
# What files on servers cost: bytes by which one libnetcdf.so.19 is larger than another, stripped, and by crate.
#
#   scripts/remote-size.sh WITHOUT.so WITH.so
#
# Both as scripts/link.sh makes them (dist/lib/libnetcdf.so.19), the first after
#   cargo build --release -p zonda-cli && cargo build --release -p zonda-capi --no-default-features
# By crate: code and constants that have names, by the first crate in these. What is inlined counts for who calls it.
set -euo pipefail

if (($# != 2)); then
    sed -n '4,7s/^# //p' "$0" >&2
    exit 2
fi
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# stripped FILE: bytes without symbols
stripped() {
    strip -o "$scratch/stripped" "$1"
    stat -c %s "$scratch/stripped"
}

# crates FILE: lines of crate and bytes
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
    print(crate, n)' | sort
}

without=$(stripped "$1") with=$(stripped "$2")
echo "stripped: $without and $with bytes, $((with - without)) more"
join -a 1 -e 0 -o 0,1.2,2.2 <(crates "$2") <(crates "$1") |
    awk '{ more = $2 - $3; if (more > 4096 || more < -4096) printf "%9d  %s\n", more, $1 }' | sort -rn

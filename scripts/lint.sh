#!/usr/bin/env bash
# Format, lints, and files that are made from others and must not lag behind.
set -euo pipefail
cd "$(dirname "$0")/.."

cargo fmt --all --check
cargo clippy --workspace --all-targets --quiet -- -D warnings
abi/generate.py --check
scripts/allocations.py

# STYLE: a file of more than 900 lines is several things. Generated and tabular files do not count,
# nor does the one public header, which C programs expect in one piece.
long=$(git ls-files --cached --others --exclude-standard -- '*.rs' '*.py' '*.sh' '*.c' '*.h' |
    grep -vx include/netcdf.h |
    while read -r file; do
        if [ -f "$file" ] && [ "$(wc -l <"$file")" -gt 900 ]; then echo "$file"; fi
    done)
if [ -n "$long" ]; then
    echo "longer than 900 lines: $long" >&2
    exit 1
fi
echo "format, clippy, generated files and lengths are fine"

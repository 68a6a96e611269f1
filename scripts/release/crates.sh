#!/usr/bin/env bash
# A part of scripts/release.sh: what crates.io would get of each crate. Nothing is sent.
set -euo pipefail

# Outside of the folder of the builds, since each crate is built by itself, from its archive.
export CARGO_TARGET_DIR=$ZONDA_WORK/crates CARGO_INCREMENTAL=0 CARGO_PROFILE_DEV_DEBUG=0
quick=()
[ "${ZONDA_CRATES-}" != quick ] || quick=(--no-verify)
cargo publish --workspace --dry-run --locked --allow-dirty "${quick[@]}" 2>&1 | grep -v '^ *\(Compiling\|Downloaded\|Downloading\) ' || exit 1
rm -rf "$CARGO_TARGET_DIR"

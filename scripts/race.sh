#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# The unit tests of what threads share, under ThreadSanitizer: a data race ends them.
#
#   scripts/race.sh              runtime, storage, chunk, shared, zonda
#   scripts/race.sh PACKAGE...
#
# std is as it is delivered, without the sanitizer's eyes: what it does by fences is taken for a race, and named in
# scripts/race.supp. The build is in target/race.
set -euo pipefail
cd "$(dirname "$0")/.."

host=$(rustc -vV | sed -n 's/^host: //p')
export RUSTC_BOOTSTRAP=1 CARGO_TARGET_DIR=$PWD/target/race
export RUSTFLAGS="-Zsanitizer=thread -Cunsafe-allow-abi-mismatch=sanitizer"
export TSAN_OPTIONS="suppressions=$PWD/scripts/race.supp halt_on_error=1 history_size=4"
if [ $# -eq 0 ]; then set -- zonda-runtime zonda-shared zonda-storage zonda-chunk zonda; fi
for package; do
    # Models have threads of their own kind, which the sanitizer does not know.
    cargo test --quiet --target "$host" -p "$package" --lib
done

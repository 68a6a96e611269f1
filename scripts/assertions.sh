#!/usr/bin/env bash
# Builds the release libraries with the assertions and overflow checks of debug builds, and runs the tests
# of what must not be lost on them. What is only checked there is found here; nothing of it is installed.
#
#   scripts/assertions.sh             c, oracle, crash, async
#   scripts/assertions.sh STAGE...    stages of scripts/test.sh
#
# The build is in target/assertions and out/assertions.
set -euo pipefail
cd "$(dirname "$0")/.."

export CARGO_TARGET_DIR=$PWD/target/assertions
export CARGO_PROFILE_RELEASE_DEBUG_ASSERTIONS=true CARGO_PROFILE_RELEASE_OVERFLOW_CHECKS=true
cargo build --release --quiet -p zonda-capi -p zonda-cli -p zonda-tls-engine
scripts/link.sh out/assertions
export ZONDA_LIBDIR=$PWD/out/assertions/lib ZONDA_INCDIR=$PWD/out/assertions/include
# Tests that build programs in Rust use the ordinary ones.
unset CARGO_TARGET_DIR CARGO_PROFILE_RELEASE_DEBUG_ASSERTIONS CARGO_PROFILE_RELEASE_OVERFLOW_CHECKS
if [ $# -gt 0 ]; then stages=("$@"); else stages=(c oracle crash async); fi
exec scripts/test.sh "${stages[@]}"

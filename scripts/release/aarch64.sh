#!/usr/bin/env bash
# A part of scripts/release.sh: wheel, archive and Debian packages for aarch64, on another machine by a cross compiler.
set -euo pipefail

if [ "$(uname -m)" = aarch64 ]; then
    echo "the parts wheel and deb make them here"
    exit 0
fi
skip() {
    echo "skipped: $*"
    exit 0
}
triple=aarch64-unknown-linux-gnu
for tool in aarch64-linux-gnu-gcc qemu-aarch64; do
    command -v "$tool" >/dev/null || skip "no $tool here (Debian: gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user)"
done
if [ ! -d "$(rustc --print sysroot)/lib/rustlib/$triple" ]; then
    rustup target add "$triple" >/dev/null 2>&1 || skip "Rust's library for $triple is not here and cannot be had (rustup target add $triple)"
fi
scripts/release/wheel.sh aarch64
rm -f "$ZONDA_RELEASE"/*_arm64.deb
STRIP=aarch64-linux-gnu-strip OBJCOPY=aarch64-linux-gnu-objcopy scripts/release/deb.py "$ZONDA_RELEASE" --architecture arm64 \
    --dist "$ZONDA_WORK/aarch64/prefix" --wheel "$ZONDA_RELEASE/zonda-$ZONDA_VERSION"-*-abi3-manylinux*aarch64.whl

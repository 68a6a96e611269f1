#!/usr/bin/env bash
# Builds everything for aarch64 Linux and runs the Rust tests there under qemu's user emulation, for
# those who have no such machine. Installs the cross linker, the emulator and Rust's std for it.
# Left out are tests that start themselves as a child: the kernel here cannot start the binaries.
set -euo pipefail
cd "$(dirname "$0")/.."

target=aarch64-unknown-linux-gnu
missing=()
for package in gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user; do
    dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null | grep -q '^installed$' ||
        missing+=("$package")
done
if ((${#missing[@]})); then
    echo "aarch64: installing ${missing[*]}"
    apt-get -qq install -y --no-install-recommends "${missing[@]}" >/dev/null
fi
rustup target list --installed | grep -q "^$target$" || rustup target add "$target"

export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER="qemu-aarch64 -L /usr/aarch64-linux-gnu"
cargo check --quiet --target "$target" --workspace --exclude zonda-python
cargo test --quiet --target "$target" --workspace --exclude zonda-cli --exclude zonda-python --lib --tests -- \
    --skip the_environment

#!/usr/bin/env bash
# A part of scripts/release.sh: what needs no glibc. A command and a library without any shared library, and the Python package for
# distributions that have musl.
#
# ZONDA_MUSL=static leaves out the Python package, which takes a second build: code for shared libraries of musl is compiled otherwise.
set -euo pipefail

skip() {
    echo "skipped: $*"
    exit 0
}
arch=$(uname -m)
triple=$arch-unknown-linux-musl
command -v musl-gcc >/dev/null || skip "no musl-gcc here (Debian: musl-tools)"
if [ ! -d "$(rustc --print sysroot)/lib/rustlib/$triple" ]; then
    rustup target add "$triple" >/dev/null 2>&1 || skip "Rust's library for $triple is not here and cannot be had (rustup target add $triple)"
fi
work=$ZONDA_WORK/musl
mkdir -p "$work/bin"
upper=$(tr 'a-z-' 'A-Z_' <<<"$triple")
export "CC_${triple//-/_}=musl-gcc"

# What musl 1.2.0 has, which musllinux_1_2 stands for: this one's names but those that came later.
nm --dynamic --defined-only --format=posix "/lib/ld-musl-$arch.so.1" | cut -d' ' -f1 | grep -vx -e qsort_r | sort -u >"$work/names"
[ -s "$work/names" ] || { echo "musl.sh: /lib/ld-musl-$arch.so.1 has no names" >&2; exit 1; }

# check FILE...: for this processor, names of no glibc, no library but musl's, and no name that this has not.
check() {
    local file needed
    for file; do
        if ! readelf --file-header --wide "$file" | grep -qi "Machine:.*${arch/_/[-_]}"; then
            echo "musl.sh: $file is not for $arch" >&2
            return 1
        fi
        # Python's names come from the program that loads a module.
        needed=$(nm --dynamic --undefined-only --format=posix "$file" 2>/dev/null | awk '$2 == "U" && $1 !~ /^_?Py/ && $1 !~ /^nc_/ { print $1 }' | sort -u | comm -23 - "$work/names" | head -n 5)
        if [ -n "$needed" ]; then
            echo "musl.sh: $file wants what musl 1.2.0 has not:" $needed >&2
            return 1
        fi
        if readelf --version-info --wide "$file" | grep -q GLIBC_; then
            echo "musl.sh: $file asks for names of glibc" >&2
            return 1
        fi
        needed=$(readelf --dynamic --wide "$file" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | grep -v -e '^libc\.so$' -e '^libnetcdf\.so\.19$' || true)
        if [ -n "$needed" ]; then
            echo "musl.sh: $file needs $needed" >&2
            return 1
        fi
    done
}

# ---- Without shared libraries ----------------------------------------------------------------
export CARGO_TARGET_DIR=$work/static
cargo build --release --locked --target "$triple" --package zonda-capi --package zonda-cli --features zonda-capi/tls-inside,zonda-cli/tls-inside
# gcc's part that unwinds panics asks for names of glibc; this is Rust's, for musl.
unwind=$(rustc --print sysroot)/lib/rustlib/$triple/lib/self-contained/libunwind.a
CC=musl-gcc ZONDA_LINK=static ZONDA_UNWIND=$unwind ZONDA_BUILT=$work/static/$triple/release scripts/link.sh "$work/prefix"
check "$work/prefix/bin/zonda"
# A program in C, and both beside each other.
musl-gcc -static tests/release/hello.c $("$work/prefix/bin/nc-config" --cflags --libs) -o "$work/hello"
check "$work/hello"
# Without this table a panic in the library, which is to be an error, would end the program.
readelf --program-headers --wide "$work/hello" | grep -q GNU_EH_FRAME || { echo "musl.sh: $work/hello cannot unwind" >&2; exit 1; }
"$work/prefix/bin/ncgen" -4 -o "$work/small.nc" tests/release/small.cdl
"$work/hello" "$work/small.nc"
"$work/prefix/bin/ncdump" "$work/small.nc" | grep -q '9, 10, 11, 12 ;'

name=zonda-$ZONDA_VERSION-linux-$arch-musl-static
rm -rf "$work/root"
# What is for shared libraries is not in it.
DESTDIR=$work/root ZONDA_DIST=$work/prefix ZONDA_STATIC=yes scripts/install.sh "/$name"
tar -C "$work/root" --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$(git log -1 --format=%ct)" -cJf "$ZONDA_RELEASE/$name.tar.xz" "$name"
rm -rf "$work/root"
[ "${ZONDA_MUSL-}" != static ] || { echo "skipped: the Python package for musl (ZONDA_MUSL=static)"; exit 0; }

# ---- With them -------------------------------------------------------------------------------
# What unwinds panics is taken in: libgcc_s of this machine is one for glibc, and wheels cannot count on another.
printf 'INPUT ( %s )\n' "$unwind" >"$work/bin/libgcc_s.so"
printf '#!/bin/sh\nexec musl-gcc -L"%s" "$@"\n' "$work/bin" >"$work/bin/cc"
chmod 755 "$work/bin/cc"
export "CARGO_TARGET_${upper}_LINKER=$work/bin/cc" "CARGO_TARGET_${upper}_RUSTFLAGS=-C target-feature=-crt-static" CARGO_TARGET_DIR=$work/shared
cargo build --release --locked --target "$triple" --package zonda-capi --package zonda-cli --package zonda-tls-engine
CC=$work/bin/cc ZONDA_BUILT=$work/shared/$triple/release scripts/link.sh "$work/prefix-shared"
check "$work"/prefix-shared/lib/*.so.19 "$work/prefix-shared/lib/libzonda-preload.so" "$work/prefix-shared/lib/libzonda-tls.so.1" "$work/prefix-shared/bin/zonda"
# musl's loader is here: a program runs on the shared library, too.
"$work/bin/cc" tests/release/hello.c -I "$work/prefix-shared/include" -L "$work/prefix-shared/lib" -lnetcdf -Wl,-rpath,"$work/prefix-shared/lib" -o "$work/hello-shared"
"$work/hello-shared" "$work/small.nc"

rm -rf "$work/wheels" "$ZONDA_RELEASE"/zonda-*-musllinux*.whl
mkdir -p "$work/wheels"
PATH=$(dirname "$ZONDA_TOOLS"):$PATH ZONDA_DIST=$work/prefix-shared PYTHONPATH=python/packaging "$ZONDA_TOOLS" - "$work/wheels" \
    --target "$triple" --interpreter python3.10 --compatibility musllinux_1_2 <<'PYTHON'
import sys

import backend

print(backend.build_wheel(sys.argv[1], {"maturin.build-args": sys.argv[2:]}))
PYTHON
mkdir -p "$work/unpacked"
"$ZONDA_TOOLS" -m zipfile -e "$work"/wheels/*.whl "$work/unpacked"
find "$work/unpacked" -name '*.so*' -print0 | while IFS= read -r -d '' file; do check "$file"; done
rm -rf "$work/unpacked"
mv "$work"/wheels/*.whl "$ZONDA_RELEASE/"
"$ZONDA_TOOLS" scripts/release/repack.py "$ZONDA_RELEASE"/zonda-*-musllinux*.whl

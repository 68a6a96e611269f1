#!/usr/bin/env bash
# A part of scripts/release.sh: the library, the command and the Python package, linked for an older glibc, as a wheel and as an archive.
#
#   scripts/release/wheel.sh [ARCH]      that of this machine by default
#
# All is compiled by the profile `release`, in a folder of its own; ZONDA_PROFILE and ZONDA_TARGET name others, to try these scripts. $ZONDA_WORK/ARCH/prefix has what is installed then: the tests run on it
# with ZONDA_LIBDIR=out/release/work/x86_64/prefix/lib.
set -euo pipefail

glibc=2.28
arch=${1:-$(uname -m)}
triple=$arch-unknown-linux-gnu
work=$ZONDA_WORK/$arch
mkdir -p "$work"
ZONDA_ZIG=$ZONDA_TOOLS scripts/release/glibc.sh "$arch" $glibc "$work/glibc"
cc=$work/glibc/cc
export CARGO_TARGET_DIR=${ZONDA_TARGET:-$work/target}
profile=${ZONDA_PROFILE:-release}
if [ "$arch" = "$(uname -m)" ]; then
    built=$CARGO_TARGET_DIR/$profile
    export RUSTC_WRAPPER=$work/glibc/rustc
    arguments=()
else
    built=$CARGO_TARGET_DIR/$triple/$profile
    upper=$(tr 'a-z-' 'A-Z_' <<<"$triple")
    export "CARGO_TARGET_${upper}_LINKER=$cc" "CC_${triple//-/_}=$arch-linux-gnu-gcc" "AR_${triple//-/_}=$arch-linux-gnu-ar"
    export STRIP=$arch-linux-gnu-strip OBJCOPY=$arch-linux-gnu-objcopy ZONDA_RUNNER="qemu-$arch -L /usr/$arch-linux-gnu"
    arguments=(--target "$triple" --interpreter python3.10)
fi
cargo build --profile "$profile" --locked --package zonda-capi --package zonda-cli --package zonda-tls-engine "${arguments[@]:0:2}"
CC=$cc ZONDA_BUILT=$built scripts/link.sh "$work/prefix"

rm -rf "$work/wheels" "$ZONDA_RELEASE"/zonda-*-abi3-*"$arch".whl
mkdir -p "$work/wheels"
# The backend of pip, without pip: it would make an environment for this alone.
PATH=$(dirname "$ZONDA_TOOLS"):$PATH ZONDA_DIST=$work/prefix PYTHONPATH=python/packaging "$ZONDA_TOOLS" - "$work/wheels" "${arguments[@]}" <<'PYTHON'
import sys

import backend

print(backend.build_wheel(sys.argv[1], {"maturin.build-args": sys.argv[2:]}))
PYTHON
# auditwheel knows other processors, but takes their names only where it runs on one.
PATH=$(dirname "$ZONDA_TOOLS"):$PATH "$ZONDA_TOOLS" - "$arch" repair --plat "manylinux_${glibc/./_}_$arch" --wheel-dir "$ZONDA_RELEASE" "$work"/wheels/*.whl <<'PYTHON'
import sys

from auditwheel.architecture import Architecture
from auditwheel.main import main

asked = Architecture(sys.argv.pop(1))
Architecture.detect = staticmethod(lambda *_, **__: asked)
sys.exit(main())
PYTHON
"$ZONDA_TOOLS" scripts/release/repack.py "$ZONDA_RELEASE"/zonda-*-abi3-*"$arch".whl

# A prefix for those without root and without a package for their system.
name=zonda-$ZONDA_VERSION-linux-$arch-glibc$glibc
rm -rf "${work:?}/$name"
DESTDIR=$work/$name.root ZONDA_DIST=$work/prefix ZONDA_STATIC=yes scripts/install.sh "/$name"
tar -C "$work/$name.root" --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$(git log -1 --format=%ct)" -cJf "$ZONDA_RELEASE/$name.tar.xz" "$name"
rm -rf "$work/$name.root"

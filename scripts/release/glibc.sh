#!/usr/bin/env bash
# Makes a folder with a C compiler whose results run on an older glibc than this machine has.
#
#   scripts/release/glibc.sh ARCH VERSION FOLDER      x86_64 or aarch64; 2.28
#
# FOLDER/rustc, as RUSTC_WRAPPER, has rustc link Zonda's program and module with it. Other programs, which cargo only runs, are left alone.
# FOLDER/cc is gcc with -B FOLDER: it links with the start files and the names of that glibc (its functions are not needed for
# that), which come from the package ziglang of PyPI. They are asked for with `python3 -m ziglang`; ZONDA_ZIG is another Python.
#
# Why not zig as the linker (cargo-zigbuild): the library would be linked by another linker than the tested one, and that
# knows no --auxiliary (scripts/link.sh).
set -euo pipefail

arch=${1:?usage: glibc.sh ARCH VERSION FOLDER} version=${2:?} folder=${3:?}
python=${ZONDA_ZIG:-python3}
case $arch in
    "$(uname -m)") gcc=gcc ;;
    x86_64 | aarch64) gcc=$arch-linux-gnu-gcc ;;
    *)
        echo "glibc.sh: x86_64 or aarch64, not $arch" >&2
        exit 2
        ;;
esac
command -v "$gcc" >/dev/null || { echo "glibc.sh: $gcc is needed" >&2; exit 1; }
"$python" -c 'import ziglang' 2>/dev/null || { echo "glibc.sh: $python needs the package ziglang" >&2; exit 1; }

mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
printf 'int main(void) { return 0; }\n' >"$scratch/main.c"
# It says what it links with, and these files are what is wanted. A cache of its own: a second run would say nothing of start files.
ZIG_GLOBAL_CACHE_DIR=$folder/cache ZIG_LOCAL_CACHE_DIR=$scratch/local ZIG_VERBOSE_LINK=1 "$python" -m ziglang cc \
    -target "$arch-linux-gnu.$version" -pie -fPIE -o "$scratch/main" "$scratch/main.c" -lm 2>"$scratch/said" || { cat "$scratch/said" >&2; exit 1; }
found=0
for word in $(tail -n 1 "$scratch/said"); do
    case ${word##*/} in
        Scrt1.o | libc_nonshared.a | lib*.so.[0-9]*)
            cp "$word" "$folder/"
            found=$((found + 1))
            ;;
    esac
done
((found >= 9)) || { echo "glibc.sh: zig did not say what it links with" >&2; cat "$scratch/said" >&2; exit 1; }
cp "$folder/Scrt1.o" "$folder/crt1.o"
for library in m dl pthread rt util resolv; do
    ln -sfn "$(cd "$folder" && echo "lib$library".so.[0-9])" "$folder/lib$library.so"
done
printf 'GROUP ( %s %s AS_NEEDED ( %s ) )\n' "$folder/libc.so.6" "$folder/libc_nonshared.a" "$folder/libld.so.2" >"$folder/libc.so"
# libgcc_s of this machine asks for names of this machine's glibc, which the one of another machine does not.
printf '#!/bin/sh\nexec %s -B"%s/" -Wl,--allow-shlib-undefined "$@"\n' "$gcc" "$folder" >"$folder/cc"
cat >"$folder/rustc" <<SH
#!/bin/sh
case " \$* " in
    *" --crate-name zonda "*" --crate-type bin "* | *" --crate-name _zonda "*" --crate-type cdylib "*) exec "\$@" -C linker="$folder/cc" ;;
esac
exec "\$@"
SH
chmod 755 "$folder/cc" "$folder/rustc"
echo "$folder/cc makes files for glibc $version on $arch"

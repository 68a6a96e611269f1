#!/usr/bin/env bash
# Links the static library of zonda-capi into the libraries programs load, and fills the install
# prefix around them. The one place that knows how.
#
#   scripts/link.sh [PREFIX]      PREFIX is dist/ by default
#
# Wants `cargo build --release` done before; CARGO_TARGET_DIR says where to look, as for cargo. ZONDA_BUILT names the folder itself, for
# another profile or target: target/fast, target/aarch64-unknown-linux-gnu/release. ZONDA_LINK=static makes no shared library, and a static one
# that takes in ZONDA_UNWIND, an archive that unwinds panics. ZONDA_TLS=no makes no libzonda-tls.so.1.
#
# The libraries are linked here and not by cargo (crate type cdylib), because a cdylib exports
# neither the C functions of shim.c nor anything under a version script of ours.
set -euo pipefail
cd "$(dirname "$0")/.."

prefix=${1:-dist}
built=${ZONDA_BUILT:-${CARGO_TARGET_DIR:-target}/release}
archive=$built/libzonda_capi.a
tls=$built/libzonda_tls_engine.a
cc=${CC:-gcc}
shared=1
[ "${ZONDA_LINK-}" != static ] || shared=
# ZONDA_TLS=no: for what is built without the feature `remote`, or with TLS inside (the feature `tls-inside`).
beside=$shared
[ "${ZONDA_TLS-}" != no ] || beside=

for file in "$archive" "$built/zonda" ${beside:+"$tls"}; do
    if [ ! -e "$file" ]; then
        echo "link.sh: $file is missing; run make build" >&2
        exit 1
    fi
done
abi/generate.py --check

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# Rust's std has the C library drop thread-local values, which it then does in `exit` before any exit
# function, on a thread that may have the lock of the allocator. Where there is no such function (the
# reference is weak), std drops them at the end of each thread by a key of pthread, and in `exit` not
# at all. So the reference gets a name that nobody has. The format is given because the tools would
# else take the bitcode of Rust's std for the objects.
format=$("$cc" -nostdlib -Wl,--print-output-format)
# without_atexit ARCHIVE NEW
without_atexit() {
    "$("$cc" -print-prog-name=objcopy)" -I "$format" -O "$format" \
        --redefine-sym __cxa_thread_atexit_impl=zonda_no_thread_atexit "$1" "$2"
}
without_atexit "$archive" "$scratch/rust.a"
archive=$scratch/rust.a

"$cc" -std=gnu11 -O2 -g -fPIC -Wall -Wextra -Iinclude \
    -c crates/zonda-capi/csrc/shim.c -o "$scratch/shim.o"

# link OUTPUT SONAME MAP [FLAG ...] -- FILE ...
#   nodelete    threads and thread-local destructors of the library outlive a dlclose
#   relro, now  as the distribution's library
#   defs        an undefined symbol is an error here, not in somebody's program
#   gc-sections whole-archive takes in all of Rust's std; what nothing reaches goes out again
#   eh-frame-hdr  the table that unwinding goes by, which gcc asks for by itself but not for musl
link() {
    local output=$1 soname=$2 map=$3 flags=()
    shift 3
    while [ "$1" != -- ]; do
        flags+=("$1")
        shift
    done
    shift
    "$cc" -shared -o "$output" -Wl,-soname,"$soname" -Wl,--version-script="$map" "${flags[@]}" \
        -Wl,-z,nodelete -Wl,-z,relro -Wl,-z,now -Wl,-z,defs -Wl,--gc-sections -Wl,--eh-frame-hdr -Wl,--as-needed \
        -Wl,--whole-archive "$@" -Wl,--no-whole-archive \
        -lgcc_s -lpthread -ldl -lm -lc
}

if [ "$shared" ]; then
    # What filter plugins take from HDF5, for processes that have none. libm, because plugins count on it.
    "$cc" -std=gnu11 -O2 -fPIC -Wall -Wextra -shared -Wl,-soname,libzonda-h5shim.so \
        -Wl,-z,relro -Wl,-z,now -o "$scratch/libzonda-h5shim.so" \
        crates/zonda-plugin/shim/h5shim.c -Wl,--no-as-needed -lm -ldl

    "$cc" -std=gnu11 -O2 -fPIC -Wall -Wextra -shared -Wl,-soname,libzonda-hdf5-version.so \
        -Wl,-z,relro -Wl,-z,now -o "$scratch/libzonda-hdf5-version.so" \
        crates/zonda-capi/csrc/hdf5_version.c -ldl

    # auxiliary: looked for beside the library, and done without where it is not (see hdf5_version.c)
    link "$scratch/libnetcdf.so.19" libnetcdf.so.19 abi/netcdf.map \
        -Wl,--auxiliary=libzonda-hdf5-version.so -Wl,-rpath,'$ORIGIN' -- "$scratch/shim.o" "$archive"
    # What https:// URLs need, loaded for the first of them (crates/zonda-tls). Its number is that of the table.
    if [ "$beside" ]; then
        without_atexit "$tls" "$scratch/tls.a"
        link "$scratch/libzonda-tls.so.1" libzonda-tls.so.1 abi/zonda-tls.map -- "$scratch/tls.a"
    fi
    # What Debian's parallel builds are called, for programs that are linked with one of these: nothing but the
    # names and versions that the loader asks for (see abi/generate.py), and the library itself beside it.
    for flavour in mpi pnetcdf; do
        "$cc" -shared -nostdlib -o "$scratch/libnetcdf_$flavour.so.19" -Wl,-soname,"libnetcdf_$flavour.so.19" \
            -Wl,--version-script="abi/netcdf_$flavour.map" -Wl,-z,relro -Wl,-z,now -Wl,-z,noexecstack \
            -Wl,--enable-new-dtags -Wl,-rpath,'$ORIGIN' -Wl,--no-as-needed "$scratch/libnetcdf.so.19"
    done
    # Put before a libnetcdf that stays loaded: functions that jump to the library beside it.
    "$cc" -std=gnu11 -O2 -fPIC -Wall -Wextra -Iabi -shared -Wl,-soname,libzonda-preload.so -Wl,--version-script=abi/preload.map \
        -Wl,-z,nodelete -Wl,-z,relro -Wl,-z,now -Wl,-z,defs -Wl,-z,noexecstack -Wl,--as-needed -o "$scratch/libzonda-preload.so" \
        crates/zonda-capi/csrc/preload.c crates/zonda-capi/csrc/preload.S -lpthread -ldl
fi

# The static library is one object that shows nothing but the symbols of the ABI, so that a program
# may hold it beside another Rust library, without what these do not reach. The bitcode of Rust's std goes out: tools with an LLVM
# plugin of another version choke on it.
grep -o '^    [^*;]*' abi/netcdf.map | tr -d ' ' >"$scratch/global"
sed '/./s/^/-u /' "$scratch/global" >"$scratch/reached"
[ ! "$beside" ] || echo '-u zonda_tls_linked' >>"$scratch/reached"
"$cc" -r -nostdlib -o "$scratch/whole.o" -Wl,-T,scripts/static.ld -Wl,--gc-sections -Wl,@"$scratch/reached" \
    -Wl,--force-group-allocation "$scratch/shim.o" -Wl,--whole-archive "$archive" -Wl,--no-whole-archive ${ZONDA_UNWIND:+"$ZONDA_UNWIND"}
objcopy=("$("$cc" -print-prog-name=objcopy)" -I "$format" -O "$format" -R .llvmbc -R .llvmcmd)
if [ "$beside" ]; then
    # It has no library beside: the variable that points to the table of TLS takes the place of the empty one (crates/zonda-tls/src/beside.rs).
    "$cc" -r -nostdlib -o "$scratch/whole-tls.o" -Wl,-T,scripts/static.ld -Wl,--gc-sections -Wl,--undefined=zonda_tls_here \
        -Wl,--force-group-allocation -Wl,--whole-archive "$scratch/tls.a" -Wl,--no-whole-archive
    "${objcopy[@]}" --keep-global-symbol=zonda_tls_linked --redefine-sym zonda_tls_here=zonda_tls_linked "$scratch/whole-tls.o" "$scratch/named-tls.o"
    # Names that only what went out referred to, such as those that other parts of Rust's std do without, would be wanted of every program.
    "${objcopy[@]}" --strip-unneeded "$scratch/named-tls.o" "$scratch/tls.o"
    { cat "$scratch/global"; echo zonda_tls_linked; } >"$scratch/both"
    "${objcopy[@]}" --keep-global-symbols="$scratch/both" --weaken-symbol=zonda_tls_linked "$scratch/whole.o" "$scratch/part.o"
    "$cc" -r -nostdlib -o "$scratch/whole.o" "$scratch/part.o" "$scratch/tls.o"
fi
"${objcopy[@]}" --keep-global-symbols="$scratch/global" "$scratch/whole.o" "$scratch/netcdf.o"
"$("$cc" -print-prog-name=ar)" rcs "$scratch/libnetcdf.a" "$scratch/netcdf.o"

# put FILE... FOLDER: replaces files by rename, since programs may have the old ones mapped.
put() {
    local folder=${!#} file
    mkdir -p "$prefix/$folder"
    for file in "${@:1:$#-1}"; do
        cp "$file" "$prefix/$folder/.new.$$"
        mv -f "$prefix/$folder/.new.$$" "$prefix/$folder/$(basename "$file")"
    done
}

put "$scratch"/libnetcdf.a lib
if [ "$shared" ]; then
    put "$scratch"/libnetcdf.so.19 "$scratch"/libnetcdf_mpi.so.19 "$scratch"/libnetcdf_pnetcdf.so.19 "$scratch"/libzonda-preload.so \
        "$scratch"/libzonda-hdf5-version.so "$scratch"/libzonda-h5shim.so ${beside:+"$scratch/libzonda-tls.so.1"} lib
    # One file under all names, so that a process that loads two of them has one engine.
    ln -sfn libnetcdf.so.19 "$prefix/lib/libnetcdf.so"
    ln -sfn libnetcdf.so.19 "$prefix/lib/libnetcdf.so.22"
    # What is linked anew takes the library itself, since the stubs have no symbols.
    ln -sfn libnetcdf.so.19 "$prefix/lib/libnetcdf_mpi.so"
    ln -sfn libnetcdf.so.19 "$prefix/lib/libnetcdf_pnetcdf.so"
fi
put scripts/dist/netcdf.pc lib/pkgconfig
if [ ! "$shared" ]; then
    # What unwinds panics is in it, by a table that musl-gcc does not ask for; and no path to search when programs start.
    sed -i -e "s/^Libs.private:.*/Libs.private: -Wl,--eh-frame-hdr -lm/" -e "s/ -Wl,--p[^ ]*//g" "$prefix/lib/pkgconfig/netcdf.pc"
fi
put scripts/dist/netCDFConfig.cmake scripts/dist/netCDFConfigVersion.cmake \
    scripts/dist/netCDFTargets.cmake lib/cmake/netCDF
put include/*.h include/*.f90 include
put scripts/dist/nc-config bin
chmod 755 "$prefix/bin/nc-config"
if [ ! "$shared" ]; then
    sed -i -e 's/^libs_private=.*/libs_private="-Wl,--eh-frame-hdr -lm"/' -e 's,^libs=.*,libs="$libdir/libnetcdf.a -Wl\,--eh-frame-hdr -lm",' "$prefix/bin/nc-config"
fi

# The second set, where Debian's libnetcdf-mpi-dev has it: the same library, and headers that say parallel. It is a second one
# because programs take a header that says so for a promise of mpi.h (and Python's netCDF4 for one of mpi4py).
mpi=lib/netcdf/mpi
sed -E '/define NC_HAS_(PNETCDF|PARALLEL4|PARALLEL|PAR_FILTERS) /s/ 0 / 1 /' include/netcdf_meta.h >"$scratch/netcdf_meta.h"
put include/*.h include/*.f90 $mpi/include
put "$scratch/netcdf_meta.h" $mpi/include
ln -sfn ../../libnetcdf.so.19 "$prefix/$mpi/libnetcdf.so"
# For those who take a prefix with lib/ and include/ in it.
ln -sfn . "$prefix/$mpi/lib"
sed -e 's,^includedir=.*,includedir=${libdir}/netcdf/mpi/include,' -e 's/^ccompiler=.*/ccompiler=mpicc/' \
    -e 's/^Description: .*/& for programs that use MPI/' scripts/dist/netcdf.pc >"$scratch/netcdf-mpi.pc"
# As netcdf.pc for those who look into this folder first: two folders deeper.
sed -e 's,^prefix=.*,&/../..,' "$scratch/netcdf-mpi.pc" >"$scratch/netcdf.pc"
put "$scratch/netcdf-mpi.pc" lib/pkgconfig
put "$scratch/netcdf.pc" $mpi/pkgconfig
# Not in lib/cmake/netCDF_mpi as Debian's: find_package(netCDF) takes any folder there whose name begins so. The prefix lib/netcdf/mpi
# has it. CMake resolves links and .. in this order only in two steps.
for file in netCDFConfig netCDFTargets; do
    sed -e 's,}/include",}/lib/netcdf/mpi/include",' -e 's/^set(netCDF_C_COMPILER .*/set(netCDF_C_COMPILER "mpicc")/' \
        -e '/^get_filename_component/i get_filename_component(_netCDF_here "${CMAKE_CURRENT_LIST_DIR}" REALPATH)' \
        -e 's,{CMAKE_CURRENT_LIST_DIR}/../../..",{_netCDF_here}/../../../../..",' "scripts/dist/$file.cmake" >"$scratch/$file.cmake"
done
put "$scratch/netCDFConfig.cmake" scripts/dist/netCDFConfigVersion.cmake "$scratch/netCDFTargets.cmake" $mpi/cmake/netCDF
cp scripts/dist/nc-config "$scratch/nc-config.mpi"
put "$scratch/nc-config.mpi" bin
chmod 755 "$prefix/bin/nc-config.mpi"
# Debian's other build has PnetCDF, too; here both are one.
ln -sfn mpi "$prefix/lib/netcdf/pnetcdf"
ln -sfn netcdf-mpi.pc "$prefix/lib/pkgconfig/netcdf-pnetcdf.pc"

put "$built/zonda" bin
# Called by one of these names, it is the tool of netCDF-C of that name.
for tool in ncdump ncgen ncgen3 nccopy; do
    ln -sfn zonda "$prefix/bin/$tool"
done

# Manual pages and completions come from the command's own description.
# ZONDA_RUNNER runs it where it is for another machine.
read -ra runner <<<"${ZONDA_RUNNER-}"
zonda() { "${runner[@]}" "$built/zonda" "$@"; }
zonda man >"$scratch/zonda.1"
for command in run info dump copy check diff recover view tune trace top doctor iod completions man; do
    zonda man "$command" >"$scratch/zonda-$command.1"
done
put "$scratch"/zonda*.1 share/man/man1
zonda completions bash >"$scratch/zonda"
zonda completions zsh >"$scratch/_zonda"
zonda completions fish >"$scratch/zonda.fish"
put "$scratch/zonda" share/bash-completion/completions
put "$scratch/_zonda" share/zsh/site-functions
put "$scratch/zonda.fish" share/fish/vendor_completions.d
scripts/tool_pages.py "$prefix"

if [ ! "$shared" ]; then
    # MPI is found in a program that runs, and CMake's files are about the shared library.
    rm -rf "$prefix/lib/netcdf" "$prefix/lib/cmake" "$prefix"/lib/pkgconfig/netcdf-*.pc "$prefix/bin/nc-config.mpi"
fi

# Licences of others and the bill of materials; and what this is, for those who take it over (python/packaging/backend.py).
triple=$(basename "$(dirname "$built")") target=()
[[ $triple != *-linux-* ]] || target=(--target "$triple")
python3 scripts/release/notices.py "$scratch/doc" "${target[@]}"
put "$scratch"/doc/* share/doc/zonda
printf 'version %s\nprofile %s\n' "$(python3 scripts/release/version.py)" "$(basename "$built")" >"$scratch/build.txt"
put "$scratch/build.txt" share/zonda
library=libnetcdf.so.19
[ "$shared" ] || library=libnetcdf.a
echo "filled $prefix ($(du -sh "$prefix/lib/$library" | cut -f1) $library)"

#!/usr/bin/env bash
# The install prefix does what a prefix is for, also after it was moved: programs are found,
# compiled, linked and run with it by gcc, pkg-config, CMake and nc-config; nc-config takes every
# option that the distribution's takes.
#
#   tests/c/dist.sh [PREFIX]     PREFIX is that of the build under test by default (tests/rig/places.py)
set -uo pipefail
cd "$(dirname "$0")/../.."

eval "$(tests/rig/shell.py)"
built=$prefix
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
# Moved, under a name with a space, without the links' targets being followed.
prefix="$scratch/moved prefix"
cp -a "${1:-$built}" "$prefix" || exit 1
unset LD_LIBRARY_PATH PKG_CONFIG_PATH CMAKE_PREFIX_PATH
# As root, Open MPI wants to be asked twice.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

passed=0 failed=0 skipped=0
# check NAME COMMAND...: the command succeeds, or its output is shown.
check() {
    local name=$1 output
    shift
    if output=$("$@" 2>&1); then
        echo "ok   $name"
        passed=$((passed + 1))
    else
        echo "FAIL $name"
        sed 's/^/     /' <<<"$output"
        failed=$((failed + 1))
    fi
}
skip() {
    echo "skip $1"
    skipped=$((skipped + 1))
}

cat >"$scratch/hello.c" <<'C'
#include <netcdf.h>
#include <netcdf_meta.h>
#include <stdio.h>
#include <string.h>
#include <zonda.h>

/* Uses a text and a data symbol, one of Zonda's own, and one of the shim. */
int main(void) {
    int before;
    ncopts = 0;
    nc_advise("hello", NC_EBADID, "%s", "not shown");
    before = ncerr;
    printf("netCDF %s, Zonda %s\n", nc_inq_libvers(), nc_zonda_version());
    return before != NC_EBADID || strncmp(nc_inq_libvers(), NC_VERSION, strlen(NC_VERSION)) != 0;
}
C

from_zonda() { # from_zonda PROGRAM: it runs, and on the moved libnetcdf
    LD_LIBRARY_PATH="$prefix/lib" "$1" || return 1
    LD_LIBRARY_PATH="$prefix/lib" ldd "$1" | grep -F "libnetcdf.so.19 => $prefix/lib/" >/dev/null
}
# by_itself PROGRAM: it runs on the moved libnetcdf without being told where that is, as README.md says.
by_itself() {
    (unset LD_LIBRARY_PATH LD_PRELOAD
    "$1" && ldd "$1" | grep -F "libnetcdf.so.19 => $prefix/lib/" >/dev/null)
}
with_gcc() {
    gcc "$scratch/hello.c" -I"$prefix/include" -L"$prefix/lib" -lnetcdf -o "$scratch/gcc" &&
        from_zonda "$scratch/gcc"
}
with_gcc_no_pie() { # ncerr and ncopts become copies inside the program
    gcc -fno-pie -no-pie "$scratch/hello.c" -I"$prefix/include" -L"$prefix/lib" -lnetcdf \
        -o "$scratch/nopie" && from_zonda "$scratch/nopie"
}
static() {
    # Words of nc-config are not quoted.
    [ -e "$scratch/plain" ] || cp -a "$prefix" "$scratch/plain"
    gcc "$scratch/hello.c" $("$scratch/plain/bin/nc-config" --cflags --libs --static) -o "$scratch/static" &&
        "$scratch/static" && ! ldd "$scratch/static" | grep netcdf
}
with_pkg_config() {
    export PKG_CONFIG_PATH="$prefix/lib/pkgconfig"
    local flags
    flags=$(pkg-config --cflags --libs netcdf) || return 1
    eval "gcc '$scratch/hello.c' $flags -o '$scratch/pkg'" && from_zonda "$scratch/pkg" &&
        by_itself "$scratch/pkg" &&
        pkg-config --exact-version=4.9.0 netcdf
}
with_nc_config() {
    # Called through a link, it still answers for the folder it lies in.
    ln -sfn "$prefix/bin/nc-config" "$scratch/nc-config"
    [ "$("$scratch/nc-config" --prefix)" = "$prefix" ] &&
        [ "$("$prefix/bin/nc-config" --cflags)" = "-I$prefix/include" ] &&
        [ "$("$prefix/bin/nc-config" --libs)" = "-L$prefix/lib -Wl,-rpath,$prefix/lib -lnetcdf" ] &&
        [ "$("$prefix/bin/nc-config" --version)" = "netCDF 4.9.0" ] &&
        ! "$prefix/bin/nc-config" --no-such-option >/dev/null
}
readme() { # the line of README.md, where paths have no spaces
    [ -e "$scratch/plain" ] || cp -a "$prefix" "$scratch/plain"
    gcc "$scratch/hello.c" $("$scratch/plain/bin/nc-config" --cflags --libs) -o "$scratch/readme" || return 1
    prefix="$scratch/plain" by_itself "$scratch/readme"
}
fortran() { # a program on the distribution's Fortran library, which knows another libnetcdf
    [ -e "$scratch/plain" ] || cp -a "$prefix" "$scratch/plain"
    printf '%s\n' 'program p' 'use netcdf' 'print *, trim(nf90_inq_libvers())' 'end program' >"$scratch/hello.f90"
    (cd "$scratch" && gfortran hello.f90 $("$scratch/plain/bin/nc-config" --fflags --flibs) -o fortran) || return 1
    prefix="$scratch/plain" by_itself "$scratch/fortran"
}
claims() { # netcdf_meta.h, and nc-config with it, says what the library does
    local folder="$scratch/features" name answer wrong=0
    rm -rf "$folder"
    mkdir -p "$folder"
    gcc -Wall -Wextra -Werror tests/c/dist/features.c -I"$prefix/include" -L"$prefix/lib" \
        -Wl,-rpath,"$prefix/lib" -lnetcdf -o "$folder/features" || return 1
    (cd "$folder" && ./features >answers) || return 1
    while read -r name answer; do
        case $name in
            NC2 | NC4 | HDF4 | HDF5 | DAP2 | DAP4 | BYTERANGE | S3 | CDF5 | LOGGING | PNETCDF | PARALLEL | PARALLEL4 | NCZARR) ;;
            SZIP) name=SZLIB ;;
            *) continue ;;
        esac
        if [ "$("$prefix/bin/nc-config" "--has-${name,,}")" != "$answer" ]; then
            echo "nc-config --has-${name,,} does not say $answer"
            wrong=1
        fi
    done <"$folder/answers"
    return $wrong
}
with_cmake() { # with_cmake TARGET
    local project="$scratch/cmake-${1//:/-}"
    mkdir -p "$project"
    cp "$scratch/hello.c" "$project/"
    cat >"$project/CMakeLists.txt" <<CMAKE
cmake_minimum_required(VERSION 3.10)
project(hello C)
find_package(netCDF 4.6 REQUIRED)
if(NOT netCDF_HAS_NC2 OR netCDF_HAS_HDF4 OR NOT netCDF_HAS_DAP OR netCDF_HAS_NCZARR OR NOT netCDF_INCLUDE_DIR)
  message(FATAL_ERROR "netCDF_* variables are wrong")
endif()
add_executable(hello hello.c)
target_link_libraries(hello $1)
CMAKE
    cmake -S "$project" -B "$project/build" -DCMAKE_PREFIX_PATH="$prefix" &&
        cmake --build "$project/build" && from_zonda "$project/build/hello" &&
        by_itself "$project/build/hello"
}
cmake_refuses() { # a version that is not there
    local project="$scratch/cmake-refuses"
    mkdir -p "$project"
    cat >"$project/CMakeLists.txt" <<CMAKE
cmake_minimum_required(VERSION 3.10)
project(hello NONE)
find_package(netCDF $1 CONFIG REQUIRED PATHS "$prefix" NO_DEFAULT_PATH)
CMAKE
    rm -rf "$project/build"
    ! cmake -S "$project" -B "$project/build"
}
cat >"$scratch/parallel.c" <<'C'
#include <mpi.h>
#include <netcdf.h>
#include <netcdf_meta.h>
#include <netcdf_par.h>
#include <stdio.h>
#if !NC_HAS_PARALLEL || !NC_HAS_PARALLEL4 || !NC_HAS_PNETCDF
#error "the headers do not say parallel"
#endif

int main(int argc, char **argv) {
    int nc = -1, answer;
    MPI_Init(&argc, &argv);
    answer = nc_create_par(argc > 1 ? argv[1] : "parallel.nc", NC_NETCDF4, MPI_COMM_WORLD, MPI_INFO_NULL, &nc);
    if (answer == NC_NOERR) answer = nc_close(nc);
    printf("%s, %s\n", nc_inq_libvers(), nc_strerror(answer));
    MPI_Finalize();
    return answer != NC_NOERR && answer != NC_ENOPAR;
}
C
with_mpi() { # with_mpi COMPILER: what the second set says of itself compiles with it, and runs as one rank
    local flags="$scratch/plain/bin/nc-config.mpi"
    [ -e "$scratch/plain" ] || cp -a "$prefix" "$scratch/plain"
    "$1" "$scratch/parallel.c" $("$flags" --cflags --libs) -o "$scratch/$1" || return 1
    (cd "$scratch" && prefix="$scratch/plain" by_itself "$scratch/$1") || return 1
    [ "$("$flags" --has-parallel)$("$flags" --has-parallel4)$("$flags" --has-pnetcdf)" = yesyesyes ] &&
        [ "$("$flags" --cc)" = mpicc ] && [ "$("$flags" --fc)" = mpif90 ] && [ "$("$flags" --includedir)" = "$scratch/plain/lib/netcdf/mpi/include" ]
}
parallel_names() { # what Debian's parallel builds are called leads to this library
    local name
    for name in mpi pnetcdf; do
        [ "$prefix/lib/libnetcdf_$name.so" -ef "$prefix/lib/libnetcdf.so.19" ] &&
            [ "$prefix/lib/netcdf/$name/libnetcdf.so" -ef "$prefix/lib/libnetcdf.so.19" ] &&
            [ "$prefix/lib/netcdf/$name/lib/libnetcdf.so" -ef "$prefix/lib/libnetcdf.so.19" ] &&
            ldd "$prefix/lib/libnetcdf_$name.so.19" | grep -F "libnetcdf.so.19 => $prefix/lib/" >/dev/null || return 1
    done
}
parallel_pkg_config() { # pkg-config finds the second set by either name and by either folder
    local folder name flags
    for name in lib/pkgconfig:netcdf-mpi lib/pkgconfig:netcdf-pnetcdf lib/netcdf/mpi/pkgconfig:netcdf lib/netcdf/pnetcdf/pkgconfig:netcdf; do
        folder=${name%:*}
        flags=$(PKG_CONFIG_PATH="$prefix/$folder" pkg-config --cflags --libs "${name#*:}") || return 1
        eval "gcc -DPARALLEL=1 '$scratch/meta.c' $flags -o '$scratch/meta'" && by_itself "$scratch/meta" || return 1
    done
}
cat >"$scratch/meta.c" <<'C'
#include <netcdf.h>
#include <netcdf_meta.h>

int main(void) { return NC_HAS_PARALLEL != PARALLEL || nc_inq_libvers() == 0; }
C
with_cmake_parallel() { # with_cmake_parallel PREFIX PARALLEL: CMake finds the set that belongs to the prefix
    local project="$scratch/cmake-set-$2"
    rm -rf "$project"
    mkdir -p "$project"
    cp "$scratch/meta.c" "$project/"
    cat >"$project/CMakeLists.txt" <<CMAKE
cmake_minimum_required(VERSION 3.10)
project(meta C)
find_package(netCDF REQUIRED)
if(netCDF_HAS_PARALLEL)
  set(found 1)
else()
  set(found 0)
endif()
if(NOT found EQUAL $2)
  message(FATAL_ERROR "netCDF_HAS_PARALLEL is \${netCDF_HAS_PARALLEL}, in \${netCDF_DIR}")
endif()
add_executable(meta meta.c)
target_compile_definitions(meta PRIVATE PARALLEL=$2)
target_link_libraries(meta netCDF::netcdf)
CMAKE
    cmake -S "$project" -B "$project/build" -DCMAKE_PREFIX_PATH="$1" && cmake --build "$project/build" && by_itself "$project/build/meta"
}
same_options() { # every option the distribution's nc-config knows is answered by ours
    local option theirs ours wrong=0
    for option in $(grep -oE '^ +--[a-z0-9+-]+\)' "$1" | tr -d ' )' | sort -u); do
        ours=$("$prefix/bin/nc-config" "$option")
        if [ $? -ne 0 ]; then
            echo "$option is not accepted"
            wrong=1
        fi
        theirs=$("$1" "$option")
        case $option in
            # The distribution forgets to say that it has szip: netcdf_meta.h has NC_HAS_SZIP 1.
            --has-szlib) ;;
            # The distribution has them, and this library has not.
            --has-dap | --has-dap2 | --has-dap4 | --has-nczarr) ;;
            --has-* | --version)
                if [ "$ours" != "$theirs" ]; then
                    echo "$option: $ours, the distribution has $theirs"
                    wrong=1
                fi
                ;;
        esac
    done
    return $wrong
}
same_lines() { # --all has the same lines and empty lines; what is said there is of the machine
    labels() { "$1" --all | sed -e 's/ -> .*/ ->/'; }
    diff <(labels "$1") <(labels "$prefix/bin/nc-config")
}
classic_tools() { # they are there, and one program
    local tool
    for tool in ncdump ncgen ncgen3 nccopy; do
        [ "$prefix/bin/$tool" -ef "$prefix/bin/zonda" ] || return 1
    done
    # Without arguments it says how it is called, and fails.
    ! "$prefix/bin/nccopy" 2>"$scratch/usage" && grep -q 'infile outfile' "$scratch/usage"
}
one_library() { # all names of libnetcdf are one file
    [ "$prefix/lib/libnetcdf.so" -ef "$prefix/lib/libnetcdf.so.19" ] &&
        [ "$prefix/lib/libnetcdf.so.22" -ef "$prefix/lib/libnetcdf.so.19" ]
}

check "all names are one library" one_library
check "gcc" with_gcc
check "gcc -no-pie" with_gcc_no_pie
check "gcc, static library" static
if command -v pkg-config >/dev/null; then
    check "pkg-config" with_pkg_config
else
    skip "pkg-config: not installed"
fi
if command -v cmake >/dev/null; then
    check "CMake, netCDF::netcdf" with_cmake netCDF::netcdf
    check "CMake, netcdf" with_cmake netcdf
    check "CMake refuses 4.99" cmake_refuses 4.99
    check "CMake refuses 3.6" cmake_refuses 3.6
else
    skip "CMake: not installed"
fi
check "names of parallel builds" parallel_names
if command -v pkg-config >/dev/null; then check "pkg-config, headers for MPI" parallel_pkg_config; fi
if command -v cmake >/dev/null; then
    check "CMake, headers without MPI" with_cmake_parallel "$prefix" 0
    check "CMake, headers for MPI" with_cmake_parallel "$prefix/lib/netcdf/mpi" 1
fi
for compiler in mpicc.mpich mpicc.openmpi; do
    if command -v $compiler >/dev/null; then
        check "$compiler with nc-config.mpi" with_mpi $compiler
    else
        skip "nc-config.mpi: no $compiler"
    fi
done
check "nc-config" with_nc_config
check "cc with nc-config, as README.md says it" readme
if command -v gfortran >/dev/null && command -v nf-config >/dev/null; then
    check "gfortran with nc-config --fflags --flibs" fortran
else
    skip "gfortran with nc-config: no gfortran, or no nf-config"
fi
check "netcdf_meta.h and nc-config say what the library does" claims
check "ncdump, ncgen, ncgen3, nccopy" classic_tools
if [ -x /usr/bin/nc-config ]; then
    check "nc-config takes the distribution's options" same_options /usr/bin/nc-config
    check "nc-config --all has the distribution's lines" same_lines /usr/bin/nc-config
else
    skip "nc-config: none in the distribution to compare with"
fi
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]

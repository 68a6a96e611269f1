#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Installs what `make release` made in fresh root file systems, uses it, upgrades it and removes it.

    run.py [--quick] [--long] [--only REGEX] [--parts LIST] [--release FOLDER]

    deb      Debian 12: the packages; programs in C and Fortran by pkg-config; Python; NCO and CDO before zonda-default, with it and after it;
             removal, after which no file is left; an upgrade from an older version, and removal again
    newer    Debian 13: the packages; its programs, which ask for libnetcdf.so.22; its Python and xarray
    wheel    Debian 12: the wheel in an environment of its own
    archive  an older Debian: the archive, unpacked by a user
    musl     a root file system with nothing in it: the static command, also with a URL of https://, and a program in C that musl-gcc linked with the
             static library
    aarch64  on another machine by qemu's emulation of programs: the archive, a program in C, the packages and the wheel with Debian's Python
    prefix   make install and make uninstall, on this machine
    files    what is in each file of the release: sizes, licences, what they ask of a system

The last lines before the counts are a table of times and sizes. As root; systems.py makes the root file systems.
"""
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import time
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(HERE), str(HERE.parent)]
import rig  # noqa: E402
from rig import certificates, ranges  # noqa: E402
from systems import base, fresh, other_root, private  # noqa: E402

ARCH = subprocess.run(("uname", "-m"), capture_output=True, text=True).stdout.strip()
DEB = {"x86_64": "amd64", "aarch64": "arm64"}[ARCH]
PLACE = f"/usr/lib/{ARCH}-linux-gnu/zonda"
# What users have beside it.
PROGRAMS = "nco cdo netcdf-bin gcc libc6-dev gfortran pkg-config libnetcdff-dev python3-numpy python3-venv python3-xarray"
NEWER = "nco netcdf-bin gcc libc6-dev pkg-config python3-numpy python3-xarray python3-cftime"
# An older version that packages are upgraded from.
OLDER = "0.1.9+git20261101"
# In millions of bytes: what is wanted, which is met (docs/dev/sizes.md), and what must not be reached again.
WANTED = {"libnetcdf.so.19": 11, "installed by make install": 45, "wheel": 18}
LIMITS = {"libnetcdf.so.19": 11, "installed by make install": 29, "wheel": 18}

table = []


def note(what, seconds=None, size=None, installed=None):
    table.append((what, seconds, size, installed))


def show():
    def number(value):
        return "" if value is None else f"{value:.1f}"

    print(f"\n{'':52} {'seconds':>8} {'MB':>8} {'MB installed':>13}")
    for what, seconds, size, installed in table:
        print(f"{what:52} {number(seconds):>8} {number(size):>8} {number(installed):>13}")
    print()


def within(what, megabytes):
    if megabytes > WANTED[what]:
        print(f"note {what}: {megabytes:.1f} MB, and {WANTED[what]} are wanted")
    if megabytes > LIMITS[what]:
        raise rig.Wrong(f"{what}: {megabytes:.1f} MB, at most {LIMITS[what]} were reached before")


def total(folder):
    """Bytes of all files of a folder, each counted once."""
    files = {(s.st_dev, s.st_ino): s.st_size for s in (p.lstat() for p in Path(folder).rglob("*")) if not os.path.stat.S_ISDIR(s.st_mode)}
    return sum(files.values())


def one(release, pattern):
    found = sorted(release.glob(pattern))
    if len(found) != 1:
        raise rig.Wrong(f"there are {len(found)} files {pattern} in {release}; make release makes them")
    return found[0]


def packages(release):
    return [path for path in sorted(release.glob(f"*_{DEB}.deb")) if "-dbgsym" not in path.name]


def older(package, folder, version):
    """The same package as an older version, with a file more."""
    unpacked = folder / package.stem
    folder.mkdir(exist_ok=True)
    subprocess.run(("dpkg-deb", "--raw-extract", package, unpacked), check=True)
    control = unpacked / "DEBIAN/control"
    text = re.sub(rf"^Version: {re.escape(version)}$", f"Version: {OLDER}", control.read_text(), flags=re.M)
    control.write_text(text.replace(f"(= {version})", f"(= {OLDER})"))
    (unpacked / "usr/share/zonda-older").mkdir(parents=True)
    (unpacked / "usr/share/zonda-older" / package.name.split("_")[0]).write_text("gone in newer versions\n")
    made = folder / package.name.replace(version, OLDER)
    subprocess.run(("dpkg-deb", "--root-owner-group", "-Znone", "--build", unpacked, made), check=True, stdout=subprocess.DEVNULL)
    shutil.rmtree(unpacked)


def library_of(system, program, environment=""):
    """Which libnetcdf the loader gives a program."""
    found = re.search(r"libnetcdf\.so\.\d+ => (\S+)", system.run(f"{environment} ldd $(command -v {program})"))
    return found.group(1) if found else "none"


def expect(what, got, wanted):
    if got != wanted:
        raise rig.Wrong(f"{what}: {got!r}, not {wanted!r}")


def contains(what, text, part):
    if part not in text:
        raise rig.Wrong(f"{what}: no {part!r} in {text[-1500:]!r}")


# What NCO and CDO make of the file, as text and as bytes of data.
USE = (
    "cd /tmp; rm -f made*; ncks -O -4 -L 1 -v t /root/small.nc made1.nc; ncks --cdl -H made1.nc; ncwa -O -a lon /root/small.nc made2.nc; ncks --cdl -H -v t made2.nc;"
    " cdo -s output -fldmean -selname,t /root/small.nc; cdo -s -f nc4 -z zip mulc,2 /root/small.nc made3.nc; cdo -s output -selname,t made3.nc"
)


def used(system):
    # CDO and NCO write the time and their command into `history`, which --cdl -H leaves with the attributes.
    return re.sub(r':(?:history|NCO|CDO|CDI|Conventions) = [^\n]*\n|\d\d:\d\d:\d\d', "", system.run(USE))


# A URL of nobody: it is refused for what it is, and not since the library is missing that does TLS.
NOBODY = "import zonda\ntry:\n    zonda.open('https://127.0.0.1:1/x.nc')\nexcept OSError as error:\n    print(error)\n"


def does_tls(system, zonda, python=None):
    """The command and the module find the library that does TLS."""
    contains("zonda doctor", system.run(f"{zonda} doctor /tmp || true"), "https:// URLs open, by ")
    if python:
        said = system.run(f'cd / && {python} -c "{NOBODY}"')
        if "127.0.0.1:1/x.nc" not in said or "libzonda-tls" in said:
            raise rig.Wrong(f"python says of an https:// URL: {said}")


def leftovers(system):
    """Files of a system that have the name, besides those that the test put there."""
    found = system.run("find / -xdev \\( -path /root -o -path /proc -o -path /dev -o -path /var/log -o -path /var/cache \\) -prune -o -iname '*zonda*' -print")
    return found.split()


def deb(counts, options):
    release = options.release
    plain = counts.attempt("deb: a root file system", base, "bookworm", PROGRAMS)
    if plain is None:
        return
    with fresh(plain) as system, rig.scratch() as scratch:
        system.put(HERE / "hello.c", HERE / "hello.f90", HERE / "small.cdl")
        system.put(*packages(release), folder="root/packages")
        system.run("ncgen -4 -o /root/small.nc /root/small.cdl && nccopy -k classic /root/small.nc /root/classic.nc")
        own = f"/lib/{ARCH}-linux-gnu/libnetcdf.so.19"
        before, digest = used(system), system.run(f"md5sum {own}")

        def install():
            expect("ncks before", library_of(system, "ncks"), own)
            files = [f"/root/packages/{path.name}" for path in packages(release) if "zonda-default" not in path.name]
            seconds = system.timed(f"apt-get -qq install -y --no-install-recommends {' '.join(files)}")
            size = sum(path.stat().st_size for path in packages(release)) / 1e6
            note("Debian: libzonda, libzonda-dev, zonda, python3-zonda", seconds, size, None)
            for name in ("libzonda", "libzonda-dev", "zonda", "python3-zonda"):
                kib = int(system.run(f"dpkg-query -W -f '${{Installed-Size}}' {name}"))
                note(f"  {name}", None, one(release, f"{name}_*_{DEB}.deb").stat().st_size / 1e6, kib * 1024 / 1e6)
            expect("ncks after the installation", library_of(system, "ncks"), own)

        def size_of_library():
            within("libnetcdf.so.19", (system.root / PLACE.lstrip("/") / "lib/libnetcdf.so.19").stat().st_size / 1e6)

        def tools():
            # The header, in all its words, as the distribution's ncdump says it.
            expect("ncdump -h", system.run(f"{PLACE}/bin/ncdump -h /root/small.nc"), system.run("ncdump -h /root/small.nc"))
            contains("zonda info", system.run("zonda info /root/small.nc"), "deflate")
            system.run("test -f /usr/share/man/man1/zonda.1.gz || test -f /etc/dpkg/dpkg.cfg.d/docker")

        def tls():
            does_tls(system, "zonda", "/usr/bin/python3")

        def program_in_c():
            system.run("cd /root && gcc hello.c $(pkg-config --cflags --libs netcdf-zonda) -o hello_c")
            contains("hello.c", system.run("/root/hello_c /root/small.nc"), "of Zonda")

        def program_by_folder():
            system.run(f"cd /root && gcc hello.c $(PKG_CONFIG_PATH={PLACE}/lib/pkgconfig pkg-config --cflags --libs netcdf) -o hello_f")
            contains("hello.c", system.run("/root/hello_f /root/classic.nc"), "of Zonda")
            system.run("cd /root && gcc hello.c $(zonda-nc-config --cflags --libs --static) -o hello_static")
            contains("hello.c, static", system.run("/root/hello_static /root/small.nc && ! ldd /root/hello_static | grep netcdf"), "of Zonda")

        def program_in_fortran():
            # The module is in /usr/include, which pkg-config takes for a folder that every compiler searches.
            system.run("cd /root && gfortran -I/usr/include hello.f90 $(pkg-config --cflags --libs netcdf-fortran netcdf-zonda) -o hello_fortran")
            contains("hello.f90", system.run("/root/hello_fortran /root/small.nc"), "of Zonda")

        def python():
            said = system.run(
                "cd / && /usr/bin/python3 -c \"import zonda, importlib.metadata as m; print(zonda.__version__, zonda.get_lib(), "
                "m.version('zonda'), [e.name for e in m.entry_points(group='xarray.backends')]); "
                "print(float(zonda.open('/root/small.nc')['t'][:].sum()))\""
            )
            contains("python3", said, f"{PLACE.replace('/usr/lib', '')}/lib/libnetcdf.so.19" if PLACE in said else "zonda/_dist/lib/libnetcdf.so.19")
            contains("python3", said, "'zonda'")
            contains("python3", said, "78.0")

        def with_old_xarray():
            # Debian 12 has an older one than the engine can use, which says so; everything else goes on.
            said = system.run(
                "cd / && /usr/bin/python3 -c \"import xarray, zonda; print(xarray.__version__, float(zonda.open('/root/small.nc')['t'][:].sum()))\n"
                "try: xarray.open_dataset('/root/small.nc', engine='zonda')\nexcept Exception as error: print(error)\""
            )
            contains("xarray", said, " 78.0")
            contains("xarray", said, "xarray 2024.10 or newer is needed")

        def by_default():
            seconds = system.timed(f"apt-get -qq install -y /root/packages/zonda-default_*_{DEB}.deb")
            note("Debian: zonda-default", seconds, one(release, f"zonda-default_*_{DEB}.deb").stat().st_size / 1e6)
            for program in ("ncks", "cdo", "ncdump"):
                expect(f"{program} with zonda-default", library_of(system, program), f"{PLACE}/lib/libnetcdf.so.19")
            contains("Debian's ncdump", system.run("ncdump 2>&1 || true"), "of Zonda")
            expect("what NCO and CDO make, with zonda-default", used(system), before)

        def without_default():
            seconds = system.timed("apt-get -qq remove -y zonda-default")
            note("Debian: zonda-default removed", seconds)
            for program in ("ncks", "cdo", "ncdump"):
                expect(f"{program} without zonda-default", library_of(system, program), own)
            expect("what NCO and CDO make, after zonda-default", used(system), before)

        def nothing_left():
            expect("files that are left", leftovers(system), [])
            expect("packages that dpkg remembers", system.run("dpkg-query -W -f '${Package} ${Status}\n' '*zonda*' 2>/dev/null | grep -v not-installed || true"), "")
            expect("the distribution's library", system.run(f"md5sum {own}"), digest)
            expect("what NCO and CDO make, at the end", used(system), before)

        def removal():
            seconds = system.timed("apt-get -qq remove -y libzonda libzonda-dev zonda python3-zonda")
            note("Debian: all removed", seconds)
            nothing_left()

        def upgrade():
            for path in packages(release):
                older(path, scratch / "older", options.version)
            system.put(*packages(scratch / "older"), folder="root/older")
            system.run(f"apt-get -qq install -y --no-install-recommends /root/older/*_{DEB}.deb")
            expect("version before", system.run("dpkg-query -W -f '${Version}' libzonda"), OLDER)
            contains("hello.c before the upgrade", system.run("/root/hello_c /root/small.nc"), "of Zonda")
            seconds = system.timed(f"apt-get -qq install -y --no-install-recommends /root/packages/*_{DEB}.deb")
            note("Debian: upgrade of all five", seconds)
            for name in ("libzonda", "libzonda-dev", "zonda", "zonda-default", "python3-zonda"):
                expect(f"version of {name}", system.run(f"dpkg-query -W -f '${{Version}}' {name}"), options.version)
            expect("files of the older version alone", system.run("ls /usr/share/zonda-older 2>/dev/null || true"), "")
            expect("ncks after the upgrade", library_of(system, "ncks"), f"{PLACE}/lib/libnetcdf.so.19")
            contains("hello.c after the upgrade", system.run("/root/hello_c /root/small.nc"), "of Zonda")
            python()

        def removal_of_all():
            # zonda-default goes with the library that it names.
            system.run("apt-get -qq purge -y libzonda")
            nothing_left()

        steps = (install, size_of_library, tools, tls, program_in_c, program_by_folder, program_in_fortran, python, with_old_xarray, by_default, without_default, removal, upgrade, removal_of_all)
        for step in steps:
            if options.wants(step.__name__) or step is install:
                counts.attempt(f"deb: {step.__name__}", step)


def newer(counts, options):
    plain = counts.attempt("newer: a root file system", base, "trixie", NEWER)
    if plain is None:
        return
    with fresh(plain) as system:
        system.put(HERE / "hello.c", HERE / "small.cdl")
        system.put(*packages(options.release), folder="root/packages")
        system.run("ncgen -4 -o /root/small.nc /root/small.cdl")

        def install():
            files = [f"/root/packages/{path.name}" for path in packages(options.release) if "zonda-default" not in path.name]
            note("Debian 13: libzonda, libzonda-dev, zonda, python3-zonda", system.timed(f"apt-get -qq install -y --no-install-recommends {' '.join(files)}"))
            system.run("cd /root && gcc hello.c $(pkg-config --cflags --libs netcdf-zonda) -o hello_c")
            contains("hello.c", system.run("/root/hello_c /root/small.nc"), "of Zonda")

        def programs():
            contains("ncks by itself", library_of(system, "ncks"), "libnetcdf.so.22")
            expect("ncks by LD_LIBRARY_PATH", library_of(system, "ncks", f"LD_LIBRARY_PATH={PLACE}/lib"), f"{PLACE}/lib/libnetcdf.so.22")
            contains("ncdump by zonda run", system.run("zonda run -- ncdump 2>&1 || true"), "of Zonda")
            own = system.run("ncks --cdl -H -v t /root/small.nc")
            expect("what ncks says by zonda run", system.run("zonda run --check -- ncks --cdl -H -v t /root/small.nc >/dev/null 2>&1; zonda run -- ncks --cdl -H -v t /root/small.nc"), own)

        def python():
            said = system.run(
                "cd / && /usr/bin/python3 -W error -c \"import xarray, zonda; ds = xarray.open_dataset('/root/small.nc', engine='zonda'); "
                "print(float(ds.t.sum())); zonda.to_netcdf(ds, '/root/again.nc'); print(xarray.open_dataset('/root/again.nc', engine='zonda').identical(ds))\""
            )
            expect("xarray", said.split(), ["78.0", "True"])

        def removal():
            system.run("apt-get -qq purge -y libzonda")
            expect("files that are left", leftovers(system), [])

        for step in (install, programs, python, removal):
            counts.attempt(f"newer: {step.__name__}", step)


def wheel(counts, options):
    plain = counts.attempt("wheel: a root file system", base, "bookworm", PROGRAMS)
    if plain is None:
        return
    file = counts.attempt("wheel: the file", one, options.release, f"zonda-*-abi3-manylinux*_{ARCH}.whl")
    if file is None:
        return
    with fresh(plain) as system:
        system.put(HERE / "small.cdl", file)
        system.run("ncgen -4 -o /root/small.nc /root/small.cdl")

        def install():
            # NumPy is the distribution's: no index is asked.
            system.run("python3 -m venv --system-site-packages /root/venv")
            seconds = system.timed(f"/root/venv/bin/pip install -q --no-index /root/{file.name}")
            (place,) = (system.root / "root/venv/lib").glob("python3*/site-packages/zonda")
            note("wheel: pip install", seconds, file.stat().st_size / 1e6, total(place) / 1e6)
            within("wheel", file.stat().st_size / 1e6)

        def use():
            expect("ncdump -h", system.run("/root/venv/bin/ncdump -h /root/small.nc"), system.run("ncdump -h /root/small.nc"))
            said = system.run("cd / && /root/venv/bin/python -c \"import zonda; print(zonda.__version__, float(zonda.open('/root/small.nc')['t'][:].sum()))\"")
            expect("python", said.split(), [options.version, "78.0"])
            contains("zonda run", system.run("/root/venv/bin/zonda run -- ncdump 2>&1 || true"), "of Zonda")
            does_tls(system, "/root/venv/bin/zonda", "/root/venv/bin/python")

        def remove():
            system.run("/root/venv/bin/pip uninstall -q -y zonda")
            expect("files that are left", [str(path) for path in (system.root / "root/venv").rglob("*zonda*")], [])

        for step in (install, use, remove):
            counts.attempt(f"wheel: {step.__name__}", step)


def archive(counts, options):
    plain = counts.attempt("archive: a root file system", base, "bullseye")
    file = counts.attempt("archive: the file", one, options.release, f"zonda-*-linux-{ARCH}-glibc*.tar.xz")
    if plain is None or file is None:
        return
    with fresh(plain) as system:

        def use():
            start = time.monotonic()
            with tarfile.open(file) as packed:
                packed.extractall(system.root / "opt")
            (place,) = (system.root / "opt").glob("zonda-*")
            note("archive: unpacked", time.monotonic() - start, file.stat().st_size / 1e6, total(place) / 1e6)
            bin = f"/opt/{place.name}/bin"
            system.put(HERE / "small.cdl")
            system.run(f"{bin}/ncgen -4 -o /root/small.nc /root/small.cdl")
            contains("ncdump", system.run(f"{bin}/ncdump /root/small.nc"), "9, 10, 11, 12 ;")
            does_tls(system, f"{bin}/zonda")
            contains("glibc of the system", system.run("ldd --version"), "2.31")

        counts.attempt("archive: use", use)


def musl(counts, options):
    file = counts.attempt("musl: the file", one, options.release, f"zonda-*-linux-{ARCH}-musl-static.tar.xz")
    if file is None:
        return
    with rig.scratch() as root:

        def alone(*command):
            """A program in a root file system that has nothing else."""
            return rig.must(("chroot", root, *command))

        def command():
            start = time.monotonic()
            with tarfile.open(file) as packed:
                packed.extractall(root)
            (place,) = root.glob("zonda-*")
            note("musl, static: unpacked", time.monotonic() - start, file.stat().st_size / 1e6, total(place) / 1e6)
            shutil.copy2(HERE / "small.cdl", root)
            (root / "tmp").mkdir()
            alone(f"/{place.name}/bin/ncgen", "-4", "-o", "/small.nc", "/small.cdl")
            contains("ncdump", alone(f"/{place.name}/bin/ncdump", "/small.nc"), "9, 10, 11, 12 ;")
            contains("zonda info", alone(f"/{place.name}/bin/zonda", "info", "/small.nc"), "deflate")
            alone(f"/{place.name}/bin/zonda", "copy", "-q", "-F", "zstd", "/small.nc", "/copy.nc")
            alone(f"/{place.name}/bin/zonda", "diff", "/small.nc", "/copy.nc")

        def program_in_c():
            if rig.missing("musl-gcc"):
                raise rig.Skip("no musl-gcc")
            (place,) = root.glob("zonda-*")
            flags = rig.must((place / "bin/nc-config", "--cflags", "--libs")).split()
            rig.must(("musl-gcc", "-static", HERE / "hello.c", *flags, "-o", root / "hello"))
            contains("hello.c", alone("/hello", "/small.nc"), "of Zonda")
            note("  a program in C", None, None, (root / "hello").stat().st_size / 1e6)

        def https():
            """TLS is inside: there is no library to be loaded."""
            openssl = rig.tool("openssl")
            if not openssl:
                raise rig.Skip("no openssl")
            (place,) = root.glob("zonda-*")
            made = root / "certificates"
            made.mkdir()
            certificates.make(made, openssl)
            shutil.copy2(root / "small.nc", made)
            with ranges.RangeServer(made, made / "server.pem") as server:
                url = f"{server.url}/small.nc"
                for trusted, status, words in (("ca", 0, "9, 10, 11, 12 ;"), ("other-ca", 1, "is not trusted")):
                    environment = rig.environment(None, ("CURL_", "SSL_CERT", "http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"), SSL_CERT_FILE=f"/certificates/{trusted}.pem", HOME="/root", ZONDA_EXPLAIN="1")
                    done = rig.run(("chroot", root, f"/{place.name}/bin/zonda", "dump", url), environment)
                    if done.returncode != status or words not in done.stdout + done.stderr:
                        raise rig.Wrong(f"with {trusted} it ends with {done.returncode} and says {(done.stdout + done.stderr)[-400:]}")

        for step in (command, program_in_c, https):
            counts.attempt(f"musl: {step.__name__}", step)


def aarch64(counts, options):
    release = options.release
    if ARCH == "aarch64":
        counts.skip("aarch64", "it is this machine")
        return
    if lacking := rig.missing("qemu-aarch64", "aarch64-linux-gnu-gcc"):
        counts.skip("aarch64", f"no {' and no '.join(lacking)}")
        return
    with rig.scratch() as scratch:

        def emulated(root, *command, **environment):
            """A program for the other processor, with the shared libraries of a folder."""
            given = [word for name, value in environment.items() for word in ("-E", f"{name}={value}")]
            return rig.must(("qemu-aarch64", "-L", root, *given, *command))

        def archive_and_c():
            file = one(release, "zonda-*-linux-aarch64-glibc*.tar.xz")
            start = time.monotonic()
            with tarfile.open(file) as packed:
                packed.extractall(scratch)
            (place,) = scratch.glob("zonda-*-aarch64-*")
            note("aarch64: archive unpacked", time.monotonic() - start, file.stat().st_size / 1e6, total(place) / 1e6)
            cross = "/usr/aarch64-linux-gnu"
            emulated(cross, place / "bin/zonda", "--version")
            # Started by the emulator, the command has its file's name; the tools' names are links to it.
            emulated(cross, "-0", "ncgen", place / "bin/ncgen", "-4", "-o", scratch / "small.nc", HERE / "small.cdl")
            contains("ncdump", emulated(cross, "-0", "ncdump", place / "bin/ncdump", scratch / "small.nc"), "9, 10, 11, 12 ;")
            rig.must(("aarch64-linux-gnu-gcc", HERE / "hello.c", "-I", place / "include", "-L", place / "lib", "-lnetcdf", f"-Wl,-rpath,{place}/lib", "-o", scratch / "hello"))
            contains("hello.c", emulated(cross, scratch / "hello", scratch / "small.nc"), "of Zonda")

        def python():
            root = other_root(scratch / "root")
            for path in sorted(release.glob("*_arm64.deb")):
                if "-dbgsym" not in path.name:
                    subprocess.run(("dpkg-deb", "-x", path, root), check=True)
            libraries = ":".join(f"/usr/lib/aarch64-linux-gnu/{name}" for name in ("blas", "lapack"))
            code = f"import numpy, zonda; print(zonda.get_lib()); print(float(zonda.open('{scratch}/small.nc')['t'][:].sum()), zonda.__version__)"
            interpreter = next((root / "usr/bin").glob("python3.[0-9]*"))
            how = {"PYTHONHOME": root / "usr", "LD_LIBRARY_PATH": libraries}
            said = emulated(root, interpreter, "-c", code, **how)
            contains("python3-zonda", said, f"78.0 {options.version}")
            note("aarch64: packages", None, sum(path.stat().st_size for path in release.glob("*_arm64.deb") if "-dbgsym" not in path.name) / 1e6)
            file = one(release, "zonda-*-abi3-manylinux*_aarch64.whl")
            shutil.rmtree(root / "usr/lib/python3/dist-packages/zonda")
            with zipfile.ZipFile(file) as packed:
                packed.extractall(scratch / "wheel")
            contains("wheel", emulated(root, interpreter, "-c", code, PYTHONPATH=scratch / "wheel", **how), f"78.0 {options.version}")
            note("aarch64: wheel", None, file.stat().st_size / 1e6, total(scratch / "wheel") / 1e6)

        for step in (archive_and_c, python):
            counts.attempt(f"aarch64: {step.__name__}", step)


def prefix(counts, options):
    with rig.scratch() as scratch:
        place = scratch / "opt"
        (place / "bin").mkdir(parents=True)
        (place / "bin/other").write_text("somebody's\n")

        def install():
            start = time.monotonic()
            subprocess.run((ROOT / "scripts/install.sh", place), check=True, stdout=subprocess.DEVNULL)
            whole = total(place) / 1e6
            note("make install", time.monotonic() - start, None, whole)
            for name in ("lib/libnetcdf.so.19", "lib/libzonda-tls.so.1", "lib/libzonda-preload.so", "bin/zonda"):
                note(f"  {name}", None, None, (place / name).stat().st_size / 1e6)
            within("libnetcdf.so.19", (place / "lib/libnetcdf.so.19").stat().st_size / 1e6)
            within("installed by make install", whole)

        def static():
            said = rig.run((place / "bin/nc-config", "--libs", "--static"))
            expect("nc-config without the static library", (said.returncode != 0, "ZONDA_STATIC=yes" in said.stderr), (True, True))
            rig.must((ROOT / "scripts/install.sh", place), env=rig.environment(ZONDA_STATIC="yes"))
            note("  lib/libnetcdf.a, with ZONDA_STATIC=yes", None, None, (place / "lib/libnetcdf.a").stat().st_size / 1e6)
            contains("nc-config with it", rig.run((place / "bin/nc-config", "--libs", "--static")).stdout, "lib/libnetcdf.a")

        def again():
            # A file of an older version goes, others stay.
            (place / "lib/old.so").write_text("")
            with open(place / "share/zonda/installed.txt", "a") as list_of_files:
                list_of_files.write("file lib/old.so\n")
            subprocess.run((ROOT / "scripts/install.sh", place), check=True, stdout=subprocess.DEVNULL)
            expect("a file of an older version", (place / "lib/old.so").exists(), False)

        def away():
            subprocess.run((ROOT / "scripts/uninstall.sh", place), check=True, stdout=subprocess.DEVNULL)
            expect("what is left", sorted(str(path.relative_to(place)) for path in place.rglob("*")), ["bin", "bin/other"])

        def nothing_else():
            # A list that leads elsewhere removes nothing.
            subprocess.run((ROOT / "scripts/install.sh", place), check=True, stdout=subprocess.DEVNULL)
            (scratch / "precious").write_text("")
            with open(place / "share/zonda/installed.txt", "a") as list_of_files:
                list_of_files.write("file ../precious\n")
            done = rig.run((ROOT / "scripts/uninstall.sh", place))
            expect("exit status for a list that leads elsewhere", done.returncode, 1)
            expect("files", ((scratch / "precious").exists(), (place / "lib/libnetcdf.so.19").exists()), (True, True))

        for step in (install, static, again, away, nothing_else):
            counts.attempt(f"prefix: {step.__name__}", step)


def files(counts, options):
    release = options.release

    def asks_for(limit, path):
        """The glibc that an ELF file asks for is not newer than a limit."""
        said = subprocess.run(("readelf", "--version-info", "--wide", path), capture_output=True, text=True).stdout
        newest = max((tuple(map(int, v.split("."))) for v in re.findall(r"\bGLIBC_([\d.]+)", said)), default=(0,))
        if newest > limit:
            raise rig.Wrong(f"{path.name} asks for glibc {'.'.join(map(str, newest))}")

    def is_for(machine, path):
        said = subprocess.run(("readelf", "--file-header", "--wide", path), capture_output=True, text=True).stdout
        contains(f"machine of {path.name}", re.search(r"Machine: *(.*)", said).group(1), machine)

    def wheels():
        found = sorted(release.glob("zonda-*.whl"))
        if not found:
            raise rig.Wrong("there is no wheel")
        for path in found:
            within("wheel", path.stat().st_size / 1e6)
            with zipfile.ZipFile(path) as packed, rig.scratch() as scratch:
                names = packed.namelist()
                for wanted in ("THIRD-PARTY-NOTICES.txt", "zonda.cdx.json", "LICENSE-MIT", "libnetcdf.so.19", "libzonda-tls.so.1"):
                    if not any(name.endswith("/" + wanted) for name in names):
                        raise rig.Wrong(f"{path.name} has no {wanted}")
                packed.extractall(scratch)
                # musl has none of glibc's names.
                found = re.search(r"manylinux_(\d+)_(\d+)", path.name)
                limit = tuple(map(int, found.groups())) if found else (0,)
                for file in [*scratch.rglob("*.so*"), *scratch.rglob("bin/zonda")]:
                    asks_for(limit, file)
                    is_for("AArch64" if "aarch64" in path.name else {"x86_64": "X86-64", "aarch64": "AArch64"}[ARCH], file)

    def bill():
        document = json.loads((release / "zonda.cdx.json").read_text())
        names = {component["name"] for component in document["components"]}
        missing = {"zonda-capi", "zonda-nc4", "ring", "zstd-sys", "rust-std", "zonda-tls-engine", "DejaVu Sans", "Natural Earth"} - names
        if missing or document["bomFormat"] != "CycloneDX":
            raise rig.Wrong(f"the bill of materials lacks {missing}")
        references = {component["bom-ref"] for component in document["components"]} | {document["metadata"]["component"]["bom-ref"]}
        for entry in document["dependencies"]:
            if not references >= {entry["ref"], *entry["dependsOn"]}:
                raise rig.Wrong(f"{entry['ref']} depends on what is not in the bill")

    def sums():
        for line in (release / "SHA256SUMS").read_text().splitlines():
            digest, name = line.split("  ", 1)
            expect(name, hashlib.sha256((release / name).read_bytes()).hexdigest(), digest)

    def debug_symbols():
        with rig.scratch() as scratch:
            subprocess.run(("dpkg-deb", "-x", one(release, f"libzonda-dbgsym_*_{DEB}.deb"), scratch / "symbols"), check=True)
            subprocess.run(("dpkg-deb", "-x", one(release, f"libzonda_*_{DEB}.deb"), scratch / "library"), check=True)
            library = scratch / "library" / PLACE.lstrip("/") / "lib/libnetcdf.so.19"
            mark = re.search(r"Build ID: (\w+)", subprocess.run(("readelf", "-n", library), capture_output=True, text=True).stdout).group(1)
            symbols = scratch / "symbols/usr/lib/debug/.build-id" / mark[:2] / f"{mark[2:]}.debug"
            sections = subprocess.run(("readelf", "-S", "--wide", symbols), check=True, capture_output=True, text=True).stdout
            contains("debug file of libnetcdf.so.19", sections, ".debug_line")

    for step in (wheels, bill, sums, debug_symbols):
        if options.wants(step.__name__):
            counts.attempt(f"files: {step.__name__}", step)


PARTS = {
    "files": (files, rig.QUICK), "prefix": (prefix, rig.QUICK), "deb": (deb, rig.FULL), "newer": (newer, rig.FULL), "wheel": (wheel, rig.FULL), "archive": (archive, rig.FULL),
    "musl": (musl, rig.FULL), "aarch64": (aarch64, rig.FULL),
}  # fmt: skip


def main():
    made = rig.parser(__doc__, parts={part: mark for part, (_, mark) in PARTS.items()})
    made.add_argument("--release", type=Path, default=ROOT / "out/release", help="what make release made (%(default)s)")
    options = rig.arguments(made)
    options.version = subprocess.run((ROOT / "scripts/release/version.py",), check=True, capture_output=True, text=True).stdout.strip()
    counts = rig.Counts()
    if not options.release.is_dir():
        rig.skip_all(f"there is no {options.release}: make release makes it")
    if os.geteuid() != 0 or not private():
        rig.skip_all("root file systems need root and mounts")
    for part in options.chosen():
        PARTS[part][0](counts, options)
    show()
    return counts


if __name__ == "__main__":
    rig.main(main)

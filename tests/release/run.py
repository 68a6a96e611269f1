#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Installs what `make release` made in fresh root file systems, uses it, upgrades it and removes it.

    run.py [--quick] [--long] [--only REGEX] [--parts LIST] [--release FOLDER]

    deb      Debian 12: the packages; programs in C and Fortran by pkg-config; Python; NCO and CDO before zonda-default, with it and after it;
             an upgrade; removal, after which no file is left
    wheel    Debian 12: the wheel in an environment of its own
    archive  an older Debian: the archive, unpacked by a user
    prefix   make install and make uninstall, on this machine
    files    what is in each file of the release: sizes, licences, what they ask of a system

The last lines before the counts are a table of times and sizes. As root; the root file systems are made by debootstrap once, in
out/release/work, and nothing is written to them afterwards (overlayfs).
"""
import ctypes
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
from contextlib import contextmanager
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(1, str(HERE.parent))
import rig  # noqa: E402

WORK = ROOT / "out/release/work"
ARCH = subprocess.run(("uname", "-m"), capture_output=True, text=True).stdout.strip()
DEB = {"x86_64": "amd64", "aarch64": "arm64"}[ARCH]
PLACE = f"/usr/lib/{ARCH}-linux-gnu/zonda"
MIRROR = os.environ.get("ZONDA_DEBIAN", "http://deb.debian.org/debian")
# What users have beside it.
PROGRAMS = "nco cdo netcdf-bin gcc libc6-dev gfortran pkg-config libnetcdff-dev python3-numpy python3-venv"
# In millions of bytes: what is wanted, and what it is today, which must not become more.
WANTED = {"libnetcdf.so.19": 11, "installed by make install": 45, "wheel": 18}
LIMITS = {"libnetcdf.so.19": 12.8, "installed by make install": 31, "wheel": 18.6}

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


class System:
    """A root file system that programs are run in."""

    def __init__(self, root):
        self.root = root

    def run(self, command, seconds=600, check=True, **more):
        environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LC_ALL": "C.UTF-8", "DEBIAN_FRONTEND": "noninteractive", **more}
        done = subprocess.run(
            ("chroot", self.root, "/bin/sh", "-ec", command), env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL, timeout=seconds,
        )  # fmt: skip
        if check and done.returncode != 0:
            raise rig.Wrong(f"{command}: exit {done.returncode}\n{done.stdout[-3000:]}")
        return done.stdout

    def timed(self, command, **more):
        start = time.monotonic()
        self.run(command, **more)
        return time.monotonic() - start

    def put(self, *files, folder="root"):
        target = self.root / folder
        target.mkdir(parents=True, exist_ok=True)
        for file in files:
            shutil.copy2(file, target)


def mount(*arguments):
    subprocess.run(("mount", *map(str, arguments)), check=True)


@contextmanager
def mounted(root):
    """With what programs expect of a root file system."""
    for kind in ("proc", "dev"):
        (root / kind).mkdir(exist_ok=True)
    mount("-t", "proc", "proc", root / "proc")
    mount("--rbind", "/dev", root / "dev")
    try:
        shutil.copy2("/etc/resolv.conf", root / "etc/resolv.conf")
        yield System(root)
    finally:
        # In a mount namespace of this process; a program that stays behind must not keep it from going.
        subprocess.run(("umount", "--lazy", "--recursive", root / "dev"), check=False)
        subprocess.run(("umount", "--lazy", root / "proc"), check=False)


@contextmanager
def fresh(base):
    """A system like `base`, which is left as it is."""
    with rig.scratch() as scratch:
        for name in ("upper", "work", "root"):
            (scratch / name).mkdir()
        root = scratch / "root"
        # The scratch folder may lie on an overlay itself, which cannot be the upper one.
        mount("-t", "tmpfs", "tmpfs", scratch / "upper")
        for name in ("data", "work"):
            (scratch / "upper" / name).mkdir()
        mount("-t", "overlay", "overlay", "-o", f"lowerdir={base},upperdir={scratch}/upper/data,workdir={scratch}/upper/work", root)
        try:
            with mounted(root) as system:
                yield system
        finally:
            subprocess.run(("umount", "--lazy", root), check=False)
            subprocess.run(("umount", "--lazy", scratch / "upper"), check=False)


def base(suite, packages=""):
    """A root file system with Debian and further packages, made once."""
    made = WORK / "roots" / (suite + ("-programs" if packages else ""))
    if (made / "complete").exists():
        return made
    if not shutil.which("debootstrap"):
        raise rig.Skip("there is no debootstrap")
    shutil.rmtree(made, ignore_errors=True)
    made.parent.mkdir(parents=True, exist_ok=True)
    if packages:
        subprocess.run(("cp", "-a", "--reflink=auto", base(suite), made), check=True)
        with mounted(made) as system:
            system.run(f"apt-get -qq update && apt-get -qq install -y --no-install-recommends {packages}", seconds=3000)
    else:
        done = rig.run(("debootstrap", "--variant=minbase", suite, made, MIRROR), seconds=1800)
        if done.returncode != 0:
            shutil.rmtree(made, ignore_errors=True)
            raise rig.Skip(f"debootstrap {suite}: {(done.stdout or done.stderr).strip().splitlines()[-1]}")
    (made / "complete").touch()
    return made


def one(release, pattern):
    found = sorted(release.glob(pattern))
    if len(found) != 1:
        raise rig.Wrong(f"there are {len(found)} files {pattern} in {release}; make release makes them")
    return found[0]


def packages(release):
    return [path for path in sorted(release.glob(f"*_{DEB}.deb")) if "-dbgsym" not in path.name]


def later(package, folder, version, newer):
    """The same package as a later version."""
    unpacked = folder / package.stem
    folder.mkdir(exist_ok=True)
    subprocess.run(("dpkg-deb", "--raw-extract", package, unpacked), check=True)
    control = unpacked / "DEBIAN/control"
    text = re.sub(rf"^Version: {re.escape(version)}$", f"Version: {newer}", control.read_text(), flags=re.M)
    control.write_text(text.replace(f"(= {version})", f"(= {newer})"))
    made = folder / package.name.replace(version, newer)
    subprocess.run(("dpkg-deb", "--root-owner-group", "-Znone", "--build", unpacked, made), check=True, stdout=subprocess.DEVNULL)
    shutil.rmtree(unpacked)


def library_of(system, program):
    """Which libnetcdf the loader gives a program."""
    found = re.search(r"libnetcdf\.so\.19 => (\S+)", system.run(f"ldd $(command -v {program})"))
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

        def by_default():
            seconds = system.timed(f"apt-get -qq install -y /root/packages/zonda-default_*_{DEB}.deb")
            note("Debian: zonda-default", seconds, one(release, f"zonda-default_*_{DEB}.deb").stat().st_size / 1e6)
            for program in ("ncks", "cdo", "ncdump"):
                expect(f"{program} with zonda-default", library_of(system, program), f"{PLACE}/lib/libnetcdf.so.19")
            contains("Debian's ncdump", system.run("ncdump 2>&1 || true"), "of Zonda")
            expect("what NCO and CDO make, with zonda-default", used(system), before)

        def upgrade():
            newer = f"{options.version}+test1"
            for path in packages(release):
                later(path, scratch / "newer", options.version, newer)
            system.put(*packages(scratch / "newer"), folder="root/newer")
            seconds = system.timed(f"apt-get -qq install -y /root/newer/*_{DEB}.deb")
            note("Debian: upgrade of all five", seconds)
            for name in ("libzonda", "zonda-default", "python3-zonda"):
                expect(f"version of {name}", system.run(f"dpkg-query -W -f '${{Version}}' {name}"), newer)
            expect("ncks after the upgrade", library_of(system, "ncks"), f"{PLACE}/lib/libnetcdf.so.19")
            contains("hello.c after the upgrade", system.run("/root/hello_c /root/small.nc"), "of Zonda")

        def without_default():
            seconds = system.timed("apt-get -qq remove -y zonda-default")
            note("Debian: zonda-default removed", seconds)
            for program in ("ncks", "cdo", "ncdump"):
                expect(f"{program} without zonda-default", library_of(system, program), own)
            expect("what NCO and CDO make, after zonda-default", used(system), before)

        def removal():
            seconds = system.timed("apt-get -qq remove -y libzonda libzonda-dev zonda python3-zonda")
            note("Debian: all removed", seconds)
            expect("files that are left", leftovers(system), [])
            expect("the distribution's library", system.run(f"md5sum {own}"), digest)
            expect("what NCO and CDO make, at the end", used(system), before)

        for step in (install, size_of_library, tools, tls, program_in_c, program_by_folder, program_in_fortran, python, by_default, upgrade, without_default, removal):
            if options.wants(step.__name__) or step is install:
                counts.attempt(f"deb: {step.__name__}", step)


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
                if "manylinux" in path.name:
                    packed.extractall(scratch)
                    limit = tuple(map(int, re.search(r"manylinux_(\d+)_(\d+)", path.name).groups()))
                    for file in [*scratch.rglob("*.so*"), *scratch.rglob("bin/zonda")]:
                        asks_for(limit, file)

    def bill():
        document = json.loads((release / "zonda.cdx.json").read_text())
        names = {component["name"] for component in document["components"]}
        missing = {"zonda-capi", "zonda-nc4", "ring", "zstd-sys", "rust-std", "zonda-tls-engine"} - names
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


PARTS = {"files": rig.QUICK, "prefix": rig.QUICK, "deb": rig.FULL, "wheel": rig.FULL, "archive": rig.FULL}


def private():
    """Mounts of this process are nobody else's from here on."""
    CLONE_NEWNS = 0x20000
    if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNS) != 0:
        return False
    return subprocess.run(("mount", "--make-rprivate", "/")).returncode == 0


def main():
    made = rig.parser(__doc__, parts=PARTS)
    made.add_argument("--release", type=Path, default=ROOT / "out/release", help="what make release made (%(default)s)")
    options = rig.arguments(made)
    options.version = subprocess.run((ROOT / "scripts/release/version.py",), check=True, capture_output=True, text=True).stdout.strip()
    counts = rig.Counts()
    if not options.release.is_dir():
        rig.skip_all(f"there is no {options.release}: make release makes it")
    if os.geteuid() != 0 or not private():
        rig.skip_all("root file systems need root and mounts")
    for part in options.chosen():
        {"deb": deb, "wheel": wheel, "archive": archive, "prefix": prefix, "files": files}[part](counts, options)
    show()
    return counts


if __name__ == "__main__":
    rig.main(main)

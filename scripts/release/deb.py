#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Debian packages of what is in dist/ and of a wheel.

    deb.py FOLDER [--dist DIST] [--wheel FILE] [--architecture ARCH]

    libzonda         libnetcdf.so.19 with its other names and its parallel stubs, and what goes in front of a program's own one
    libzonda-dev     headers, those that say parallel, the static library, pkg-config, CMake, nc-config
    zonda            the command, the tools, manual pages, completions
    python3-zonda    the Python package (with --wheel)
    zonda-default    one file that makes the loader look here first, so that all programs take Zonda
    *-dbgsym         what debuggers read

All but the Python package lies under /usr/lib/TRIPLET/zonda, a prefix like dist/, beside the distribution's netCDF: no file of
another package is touched. Stripping, folders and names are those of scripts/install.sh.
"""
import argparse
import gzip
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap
import zipfile
from dataclasses import dataclass, field
from email.utils import format_datetime
from datetime import datetime, timezone
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
TRIPLETS = {"amd64": "x86_64-linux-gnu", "arm64": "aarch64-linux-gnu"}
PAGE = "https://github.com/zonda-io/zonda"


@dataclass
class Package:
    """One package: its files are in `root`."""

    name: str
    root: Path
    summary: str
    description: str
    section: str
    depends: list[str]
    fields: dict[str, str] = field(default_factory=dict)
    scripts: dict[str, str] = field(default_factory=dict)
    triggers: str = ""


def run(*command, **options):
    return subprocess.run([str(word) for word in command], check=True, **options)


def workspace(name):
    """A value of [workspace.package], the first where it is a list."""
    text = (ROOT / "Cargo.toml").read_text()
    part = text[text.index("[workspace.package]") :]
    return re.search(rf'^{name} = \[?"([^"]*)"', part, re.M).group(1)


def when():
    """The time that the files of the packages have: SOURCE_DATE_EPOCH, or that of the last commit."""
    given = os.environ.get("SOURCE_DATE_EPOCH")
    if not given:
        said = subprocess.run(("git", "log", "-1", "--format=%ct"), cwd=ROOT, capture_output=True, text=True)
        given = said.stdout.strip() or str(int(datetime.now().timestamp()))
    return int(given)


def move(source, target):
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.move(source, target)


def link(target, name):
    name.parent.mkdir(parents=True, exist_ok=True)
    name.symlink_to(target)


def libc(*files):
    """The oldest glibc that has all that these files ask for, as a dependency."""
    asked = subprocess.run(("readelf", "--version-info", "--wide", *files), check=True, capture_output=True, text=True).stdout
    versions = {tuple(map(int, found.split("."))) for found in re.findall(r"\bGLIBC_(\d+(?:\.\d+)+)\b", asked)}
    return "libc6 (>= {}.{})".format(*max(versions)[:2])


def has_lines(file):
    return ".debug_" in subprocess.run(("readelf", "--section-headers", "--wide", file), check=True, capture_output=True, text=True).stdout


def compressed(source, target):
    target.parent.mkdir(parents=True, exist_ok=True)
    # Without name and time, so that the same page is the same file.
    with open(target, "wb") as raw, gzip.GzipFile("", "wb", 9, raw, mtime=0) as file:
        file.write(source if isinstance(source, bytes) else source.read_bytes())


class Release:
    """All packages of a version for an architecture, in a scratch folder until `write`."""

    def __init__(self, options, scratch):
        self.options, self.scratch, self.packages = options, scratch, []
        self.triplet = TRIPLETS[options.architecture]
        # Where all of them put things, seen from the root.
        self.place = Path("usr/lib") / self.triplet / "zonda"
        self.exactly = f"(= {options.version})"

    def package(self, name, **rest):
        made = Package(name, self.scratch / "packages" / name, **rest)
        made.root.mkdir(parents=True)
        self.packages.append(made)
        return made

    def divide(self):
        """Makes libzonda, libzonda-dev, zonda and their debug packages of the prefix."""
        whole, debug = self.scratch / "whole", self.scratch / "debug"
        environment = {**os.environ, "DESTDIR": str(whole), "ZONDA_DIST": str(self.options.dist), "ZONDA_DEBUG": str(debug), "ZONDA_STATIC": "yes"}
        run(ROOT / "scripts/install.sh", f"/{self.place}", env=environment, stdout=subprocess.DEVNULL)
        prefix = whole / self.place
        # dpkg keeps lists of its own.
        shutil.rmtree(prefix / "share/zonda")
        self.documents = prefix / "share/doc/zonda"
        library = self.package(
            "libzonda", section="libs", summary="netCDF library on every core, in the place of libnetcdf",
            description=(
                "Programs that load libnetcdf.so.19 run on this library unchanged: netCDF classic and netCDF-4 files, serial, "
                "parallel by any MPI, and behind HTTP, S3 and OPeNDAP. It lies in a folder of its own beside the "
                "distribution's library. Programs take it when LD_LIBRARY_PATH or 'zonda run' says so, when they were "
                "linked with it, or all of them with the package zonda-default."
            ), depends=[], fields={"Multi-Arch": "same"}, triggers="activate-noawait ldconfig\n",
        )  # fmt: skip
        develop = self.package(
            "libzonda-dev", section="libdevel", summary="netCDF library on every core: headers and static library",
            description=(
                "Headers of the netCDF C interface and of Zonda's additions, a second set that says parallel, the static "
                "library, and files for pkg-config (netcdf-zonda), CMake and zonda-nc-config."
            ), depends=[f"libzonda {self.exactly}", "libc6-dev"], fields={"Suggests": "libnetcdff-dev, pkg-config"},
        )  # fmt: skip
        tools = self.package(
            "zonda", section="science", summary="netCDF files: information, copies, checks, repair, traces, plots",
            description=(
                "The command zonda shows, dumps, copies, checks, compares, repairs and plots netCDF files, runs programs on "
                "Zonda's library, and shows what they read and write. Called ncdump, ncgen, ncgen3 or nccopy, it is the tool "
                f"of that name; these names are in /{self.place}/bin."
            ), depends=[f"libzonda {self.exactly}"], fields={"Suggests": "libzonda-dev, python3-zonda, zonda-default"},
        )  # fmt: skip
        for path in sorted((prefix / "lib").iterdir()):
            is_library = re.search(r"\.so\.\d+$", path.name) or path.name.startswith("libzonda-")
            move(path, (library if is_library else develop).root / self.place / "lib" / path.name)
        move(prefix / "include", develop.root / self.place / "include")
        for path in sorted((prefix / "bin").iterdir()):
            move(path, (develop if path.name.startswith("nc-config") else tools).root / self.place / "bin" / path.name)

        # Those of tools that have the distribution's names are in the prefix, where `man` finds them if its bin is on the path.
        for path in sorted((prefix / "share/man/man1").iterdir()):
            package = develop if path.name.startswith("nc-config") else tools
            share = "usr/share" if path.name.startswith("zonda") else f"{self.place}/share"
            compressed(path, package.root / share / "man/man1" / f"{path.name}.gz")
        for source, target in (
            ("bash-completion/completions/zonda", "bash-completion/completions/zonda"),
            ("zsh/site-functions/_zonda", "zsh/vendor-completions/_zonda"),
            ("fish/vendor_completions.d/zonda.fish", "fish/vendor_completions.d/zonda.fish"),
        ):
            move(prefix / "share" / source, tools.root / "usr/share" / target)
        here = f"../lib/{self.triplet}/zonda/bin"
        link(f"{here}/zonda", tools.root / "usr/bin/zonda")
        link(f"{here}/nc-config", develop.root / "usr/bin/zonda-nc-config")
        link(f"../../../lib/{self.triplet}/zonda/share/man/man1/nc-config.1.gz", develop.root / "usr/share/man/man1/zonda-nc-config.1.gz")
        # Found without a variable, by a name that is not the distribution's.
        found = develop.root / "usr/lib" / self.triplet / "pkgconfig/netcdf-zonda.pc"
        found.parent.mkdir(parents=True)
        text = (develop.root / self.place / "lib/pkgconfig/netcdf.pc").read_text()
        found.write_text(text.replace("prefix=${pcfiledir}/../..", f"prefix=/{self.place}", 1))

        libraries = sorted((library.root / self.place / "lib").glob("*.so*"))
        library.depends += [libc(*libraries), "libgcc-s1"]
        program = tools.root / self.place / "bin/zonda"
        tools.depends += [libc(program), "libgcc-s1"]
        for package, files in ((library, libraries), (tools, [program])):
            self.debug(package, files, debug)

    def debug(self, package, files, folder):
        """The package with the debug files of another one's files."""
        made = self.package(
            f"{package.name}-dbgsym", section="debug", summary=f"debug symbols for {package.name}",
            description=f"What debuggers and profilers need to show functions and lines of {package.name}.",
            depends=[f"{package.name} {self.exactly}"], fields={"Auto-Built-Package": "debug-symbols"},
        )  # fmt: skip
        for path in files:
            said = subprocess.run(("readelf", "-n", path), capture_output=True, text=True).stdout
            if not (match := re.search(r"Build ID: ([0-9a-f]+)", said)) or path.is_symlink():
                continue
            name = Path(match[1][:2]) / f"{match[1][2:]}.debug"
            # Stubs and helpers in C have no lines to show.
            if (folder / ".build-id" / name).exists() and has_lines(folder / ".build-id" / name):
                move(folder / ".build-id" / name, made.root / "usr/lib/debug/.build-id" / name)

    def python(self, wheel):
        """Makes python3-zonda: the wheel with the libraries of libzonda in the place of its own."""
        made = self.package(
            "python3-zonda", section="python", summary="netCDF on every core for Python and xarray",
            description=(
                "The xarray engine 'zonda', a low-level interface to netCDF files, and netCDF4-python's names, without a lock "
                "that threads would wait for."
            ), depends=[f"libzonda {self.exactly}", f"zonda {self.exactly}", "python3 (>= 3.10)", "python3-numpy (>= 1:1.23)"],
            fields={"Recommends": "python3-xarray (>= 2024.10), python3-cftime", "Suggests": "libzonda-dev, python3-dask"},
            scripts={
                "postinst": '#!/bin/sh\nset -e\nif [ "$1" = configure ] && command -v py3compile >/dev/null; then\n    py3compile -p python3-zonda\nfi\n',
                "prerm": "#!/bin/sh\nset -e\nif command -v py3clean >/dev/null; then\n    py3clean -p python3-zonda\nelse\n"
                "    find /usr/lib/python3/dist-packages/zonda -depth -name __pycache__ -exec rm -rf {} +\nfi\n",
            },
        )  # fmt: skip
        modules = made.root / "usr/lib/python3/dist-packages"
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(modules)
        # A repaired wheel keeps copies of libraries that Debian has anyway; ours needs none.
        if extra := sorted(modules.glob("zonda.libs/*")):
            raise SystemExit(f"deb.py: {wheel} brings {', '.join(path.name for path in extra)}")
        shutil.rmtree(modules / "zonda/_dist")
        link(f"../../../{self.triplet}/zonda", modules / "zonda/_dist")
        (about,) = modules.glob("zonda-*.dist-info")
        # dpkg knows the files; /usr/bin/zonda is the other package's.
        (about / "RECORD").unlink()
        (about / "INSTALLER").write_text("dpkg\n")
        entries = about / "entry_points.txt"
        entries.write_text(re.sub(r"\[console_scripts\]\n(?:[^\[\n].*\n?|\n)*", "", entries.read_text()))
        module = next((modules / "zonda").glob("_zonda*.so"))
        made.depends += [libc(module), "libgcc-s1"]

    def default(self):
        """Makes zonda-default."""
        made = self.package(
            "zonda-default", section="science", summary="all programs take Zonda as their netCDF library",
            description=(
                "One file for the loader: it makes programs that were linked with libnetcdf.so.19 (NCO, CDO, GDAL, ncdump, Python's "
                "netCDF4, ...) take Zonda's library. No file of another package is replaced, and when this package is removed, "
                "programs take the distribution's library again."
            ), depends=[f"libzonda {self.exactly}"], triggers="activate-noawait ldconfig\n",
        )  # fmt: skip
        # Read in the order of names: before the folder of the distribution's libraries. Not marked as a configuration file, which
        # dpkg would keep when the package is removed: then programs would go on taking Zonda.
        target = made.root / "etc/ld.so.conf.d" / f"00-zonda-{self.triplet}.conf"
        target.parent.mkdir(parents=True)
        target.write_text(f"# Programs take the netCDF library of the package libzonda. Remove zonda-default to end that.\n/{self.place}/lib\n")
        ignored = made.root / "usr/share/lintian/overrides/zonda-default"
        ignored.parent.mkdir(parents=True)
        ignored.write_text(
            "# Its removal has to restore what was before, without a purge.\n"
            "zonda-default: file-in-etc-not-marked-as-conffile *\nzonda-default: package-modifies-ld.so-search-path *\n"
        )

    def write(self):
        """The archives, in the folder that was asked for."""
        stamp = when()
        environment = {**os.environ, "SOURCE_DATE_EPOCH": str(stamp)}
        date = format_datetime(datetime.fromtimestamp(stamp, timezone.utc))
        entry = (
            f"zonda ({self.options.version}) stable; urgency=medium\n\n  * Version {self.options.version}: {PAGE}/blob/main/CHANGELOG.md\n\n"
            f" -- {workspace('authors')}  {date}\n"
        )
        for package in self.packages:
            shared = package.root / "usr/share/doc" / package.name
            is_debug = package.name.endswith("-dbgsym")
            if is_debug:
                link(package.name.removesuffix("-dbgsym"), shared)
            else:
                shared.mkdir(parents=True)
                (shared / "copyright").write_text(self.copyright())
                compressed(entry.encode(), shared / "changelog.gz")
            if not is_debug and package.name != "zonda-default":
                compressed(self.documents / "THIRD-PARTY-NOTICES.txt", shared / "THIRD-PARTY-NOTICES.txt.gz")
                compressed(self.documents / "zonda.cdx.json", shared / "zonda.cdx.json.gz")
            self.control(package)
            file = self.options.folder / f"{package.name}_{self.options.version}_{self.options.architecture}.deb"
            # All that read .deb files know xz; what debuggers read is compressed already.
            how = ("-Zxz", "-z1") if is_debug else ("-Zxz",)
            run("dpkg-deb", "--root-owner-group", *how, "--build", package.root, file, env=environment, stdout=subprocess.DEVNULL)
            print(f"{file.stat().st_size / 1e6:8.2f} MB  {file}")

    def copyright(self):
        """The machine-readable file of copyrights."""
        mit = (ROOT / "LICENSE-MIT").read_text()
        terms = textwrap.indent(mit[mit.index("Permission") :], " ", lambda line: True).replace(" \n", " .\n").rstrip()
        return (
            "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n"
            f"Upstream-Name: zonda\nSource: {PAGE}\n\n"
            "Files: *\nCopyright: 2026 The Zonda authors\nLicense: Expat or Apache-2.0\n"
            "Comment: The libraries and programs contain crates of others; THIRD-PARTY-NOTICES.txt.gz of libzonda has them all.\n\n"
            f"License: Expat\n{terms}\n\n"
            "License: Apache-2.0\n On Debian systems, the text is in /usr/share/common-licenses/Apache-2.0.\n"
        )

    def control(self, package):
        """DEBIAN/: what dpkg reads, made last, since it counts all others."""
        files = sorted(path for path in package.root.rglob("*") if path.is_file() and not path.is_symlink())
        for path in package.root.rglob("*"):
            if not path.is_symlink():
                path.chmod(0o755 if path.is_dir() or (os.access(path, os.X_OK) and "/bin/" in str(path)) else 0o644)
        folder = package.root / "DEBIAN"
        folder.mkdir(mode=0o755)
        # As dpkg-gencontrol counts: KiB of each file, rounded up, and one for each other entry.
        size = sum(-(-path.stat().st_size // 1024) for path in files) + sum(1 for path in package.root.rglob("*") if path.is_symlink() or path.is_dir())
        lines = {
            "Package": package.name, "Source": "zonda", "Version": self.options.version, "Architecture": self.options.architecture,
            "Maintainer": workspace("authors"), "Installed-Size": str(size), "Depends": ", ".join(package.depends), **package.fields,
            "Section": package.section, "Priority": "optional", "Homepage": PAGE,
        }  # fmt: skip
        text = "".join(f"{key}: {value}\n" for key, value in lines.items() if value)
        body = textwrap.fill(package.description, 76, initial_indent=" ", subsequent_indent=" ", break_long_words=False)
        (folder / "control").write_text(f"{text}Description: {package.summary}\n{body}\n")
        digests = (f"{hashlib.md5(path.read_bytes()).hexdigest()}  {path.relative_to(package.root)}\n" for path in files)
        (folder / "md5sums").write_text("".join(digests))
        for name, script in package.scripts.items():
            (folder / name).write_text(script)
            (folder / name).chmod(0o755)
        if package.triggers:
            (folder / "triggers").write_text(package.triggers)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--dist", type=Path, default=ROOT / "dist")
    parser.add_argument("--wheel", type=Path, help="the package for Python; without it there is no python3-zonda")
    parser.add_argument("--architecture", choices=TRIPLETS, default="arm64" if os.uname().machine == "aarch64" else "amd64")
    options = parser.parse_args()
    options.version = workspace("version")
    options.dist = options.dist.resolve()
    options.folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        release = Release(options, Path(scratch))
        release.divide()
        if options.wheel:
            release.python(options.wheel)
        release.default()
        release.write()
    return 0


if __name__ == "__main__":
    sys.exit(main())

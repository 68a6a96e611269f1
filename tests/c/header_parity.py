#!/usr/bin/env python3
"""Compares include/ with the distribution's netCDF headers, and with abi/symbols.txt.

tests/c/header_parity.py [HEADERS]

For each header: every macro with its value (gcc -E -dM), every prototype (gcc -aux-info), and the
layout of every struct (a program with sizeof and offsetof, run with both). What the distribution
has, ours has too and equal; what ours has in addition is in ADDED below; both lists of exceptions
may hold no stale entry. All headers also compile without a warning in C89, C11 and C++, each
alone and all together in either order.

The second set, for programs that use MPI (lib/netcdf/mpi/include of the build under test), is compared with that
of Debian's parallel build with PnetCDF, and differs from the first one in what netcdf_meta.h says of parallel files.

HEADERS is the folder of the distribution's headers, /usr/include by default. Headers that are not
there are reported as skipped. The last line counts passes and failures.
"""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
OURS = ROOT / "include"
sys.path[1:1] = [str(ROOT / "tests"), str(ROOT / "abi")]
import rig  # noqa: E402  (needs the path above)
import symbols  # noqa: E402

HEADERS = [
    "netcdf.h",
    "netcdf_aux.h",
    "netcdf_dispatch.h",
    "netcdf_filter.h",
    "netcdf_filter_build.h",
    "netcdf_mem.h",
    "netcdf_meta.h",
    "netcdf_par.h",
]

# Macros that differ on purpose: name -> reason.
DIFFERENT = {
    "NC_HAS_ZSTD": "the filter is built in; the distribution left it to a plugin",
    "NC_HAS_BYTERANGE": "the distribution was built without; tests/c/dist/features.c tries each claim",
    "NC_HAS_NCZARR": "not there",
    "NC_HAS_PAR_FILTERS": "those for one process say no, as of all that is parallel; the second set says yes",
    "NC_HAS_ERANGE_FILL": "values out of range are stored converted, by the distribution's library too",
}

# Macros that only ours has: pattern -> reason.
ADDED = {
    r"NC_UDF[2-9]|NC_FORMATX_UDF[2-9]|NC_MAX_UDF_FORMATS": "4.10.0",
    r"NC_FillValue|NC_FORMATX_ZARR|NC_ENOTZARR": "4.9.3",
    r"NC_EZARRMETA": "4.10.0",
    r"NC_HAS_S3": "4.9.2",
    r"NC_HAS_BZ2|NC_HAS_BLOSC": "4.9.1; netCDF4-python takes their lack for that of the functions",
    r"H5Z_\w+|H5(allocate|resize|free)_memory": (
        "netcdf_filter_build.h includes a header that the distribution does not install; "
        "ours has what it needs itself"
    ),
}

# Structs whose members are compared; members of NC_Dispatch are read from the header.
STRUCTS = {
    "netcdf.h": {"nc_vlen_t": ["len", "p"]},
    "netcdf_aux.h": {"struct NC_H5_Filterspec": ["filterid", "nparams", "params"]},
    "netcdf_mem.h": {"struct NC_memio": ["size", "memory", "flags"]},
    "netcdf_filter_build.h": {
        "struct NCZ_codec_t": [
            "version",
            "sort",
            "codecid",
            "hdf5id",
            "NCZ_codec_initialize",
            "NCZ_codec_finalize",
            "NCZ_codec_to_hdf5",
            "NCZ_hdf5_to_codec",
            "NCZ_modify_parameters",
        ]
    },
}

# Enumerators are no macros: print them.
ENUMERATORS = {
    "netcdf_filter.h": """BLOSC_NOSHUFFLE BLOSC_SHUFFLE BLOSC_BITSHUFFLE BLOSC_LZ BLOSC_LZ4
        BLOSC_LZ4HC BLOSC_SNAPPY BLOSC_ZLIB BLOSC_ZSTD""".split()
}

# Stand-ins for what a header includes and this machine may lack. The distribution's
# netcdf_filter_build.h includes netcdf_filter_hdf5_build.h, which is not installed with it.
STAND_INS = {
    "mpi.h": "#ifndef STAND_IN_MPI\n#define STAND_IN_MPI\n"
    "typedef int MPI_Comm;\ntypedef int MPI_Info;\n#endif\n",
    "netcdf_filter_hdf5_build.h": "#include <netcdf.h>\n#include <netcdf_filter.h>\n",
}


class Failure(Exception):
    """A compiler or program that failed, with what it printed."""


def run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise Failure(f"{' '.join(command)}\n{done.stderr}")
    return done.stdout


class Side:
    """One set of headers, compiled in a scratch folder of its own."""

    def __init__(self, folder: Path, scratch: Path):
        self.folder = folder
        self.scratch = scratch
        scratch.mkdir()
        # Only the headers under comparison are seen, whatever else lies in the folder.
        for header in HEADERS:
            if (folder / header).exists():
                (scratch / header).symlink_to(folder / header)
        for name, text in STAND_INS.items():
            (scratch / name).write_text(text)

    def has(self, header: str) -> bool:
        return (self.folder / header).exists()

    def source(self, header: str, rest: str = "") -> str:
        path = self.scratch / "probe.c"
        path.write_text(
            "#include <stdio.h>\n#include <stdlib.h>\n#include <stddef.h>\n#include <errno.h>\n"
            f"#include <netcdf.h>\n#include <{header}>\n{rest}"
        )
        return str(path)

    def macros(self, header: str) -> dict[str, str]:
        text = run("gcc", "-I", str(self.scratch), "-E", "-dM", self.source(header))
        found = {}
        for line in text.splitlines():
            name, _, value = line.removeprefix("#define ").partition(" ")
            if "(" in name:  # a parameter list may hold spaces
                name, _, value = re.fullmatch(r"(\w+\(.*?\))( )?(.*)", line[8:]).groups()
                name = name.replace(" ", "")
            found[name] = re.sub(r"\s+", "", value)
        return found

    def prototypes(self, header: str) -> dict[str, str]:
        out = self.scratch / "prototypes"
        run("gcc", "-I", str(self.scratch), "-fsyntax-only", "-aux-info", str(out), self.source(header))
        found = {}
        for line in out.read_text().splitlines():
            where, _, declaration = line.partition("*/ ")
            if f"{self.scratch}/" not in where:
                continue
            declaration = re.sub(r";\s*$", "", declaration)
            declaration = re.sub(r"^extern ", "", declaration)
            name = re.search(r"(\w+) \(", declaration).group(1)
            found[name] = declaration
        return found

    def layout(self, header: str) -> str:
        structs = dict(STRUCTS.get(header, {}))
        if header == "netcdf_dispatch.h":
            text = re.sub(r"/\*.*?\*/", "", (self.folder / header).read_text(), flags=re.S)
            body = re.search(r"struct NC_Dispatch\s*\{(.*?)\n\};", text, re.S).group(1)
            structs["struct NC_Dispatch"] = [
                re.search(r"\(\*\s*(\w+)\)|(\w+)\s*$", member).group(1)
                or re.search(r"(\w+)\s*$", member).group(1)
                for member in body.split(";")
                if member.strip()
            ]
        lines = [f'printf("{name} %d\\n", (int){name});' for name in ENUMERATORS.get(header, [])]
        for struct, members in structs.items():
            lines.append(f'printf("{struct} %zu\\n", sizeof({struct}));')
            lines += [
                f'printf("{struct}.{member} %zu %zu\\n", offsetof({struct}, {member}), '
                f"sizeof((({struct} *)0)->{member}));"
                for member in members
            ]
        if not lines:
            return ""
        program = str(self.scratch / "probe")
        source = self.source(header, "int main(void) {\n" + "\n".join(lines) + "\nreturn 0; }\n")
        run("gcc", "-I", str(self.scratch), source, "-o", program)
        return run(program)


def compare(header: str, ours: Side, theirs: Side, used: set[str]) -> list[str]:
    wrong = []
    mine, reference = ours.macros(header), theirs.macros(header)
    for name, value in reference.items():
        if name not in mine:
            wrong.append(f"macro {name} is missing")
        elif mine[name] != value:
            if name in DIFFERENT:
                used.add(name)
            else:
                wrong.append(f"macro {name} is {mine[name]!r}, not {value!r}")
    for name in mine.keys() - reference.keys():
        reason = next((p for p in ADDED if re.fullmatch(p, name.partition("(")[0])), None)
        if reason is None:
            wrong.append(f"macro {name} is in ours only, and not listed in ADDED")
        else:
            used.add(reason)

    newer = {row.name for row in symbols.read() if row.release > (4, 9, 0)}
    mine, reference = ours.prototypes(header), theirs.prototypes(header)
    for name, prototype in reference.items():
        if mine.get(name) != prototype:
            wrong.append(f"{mine.get(name, name + ' is missing')}; the reference has {prototype}")
    for name in mine.keys() - reference.keys() - newer:
        wrong.append(f"{name} is in ours only, and not newer than 4.9.0 in abi/symbols.txt")

    mine, reference = ours.layout(header), theirs.layout(header)
    if mine != reference:
        wrong.append(f"layout:\n{mine}the reference has:\n{reference}")
    return wrong


def compare_table(ours: Side) -> list[str]:
    """Every prototype of the headers is the one of abi/symbols.txt, and none is missing."""
    declared = {}
    for header in HEADERS:
        declared.update(ours.prototypes(header))
    (ours.scratch / "zonda.h").symlink_to(OURS / "zonda.h")
    declared.update(ours.prototypes("zonda.h"))
    wrong = []
    for row in symbols.read():
        if row.kind == "text" and row.public and declared.get(row.name) != row.prototype:
            wrong.append(f"{row.prototype} in abi/symbols.txt, {declared.get(row.name)} declared")
    table = {row.name for row in symbols.read()}
    for name in declared.keys() - table:
        wrong.append(f"{name} is declared, but not in abi/symbols.txt")
    return wrong


def compile_all(ours: Side) -> list[str]:
    """Each header after netcdf.h, all of them, and all backwards; in three languages."""
    every = [*HEADERS[1:], "zonda.h"]
    orders = [[header] for header in every] + [every, every[::-1], ["netcdf.h"] * 2]
    wrong = []
    for language in (
        ["gcc", "-std=c89", "-pedantic", "-Wno-long-long"],
        ["gcc", "-std=c11", "-pedantic", "-Wstrict-prototypes"],
        ["g++", "-std=c++11", "-pedantic", "-xc++"],
    ):
        for order in orders:
            text = "".join(f"#include <{header}>\n" for header in ["netcdf.h", *order])
            source = ours.scratch / "compile.c"
            source.write_text(text + "int zonda_probe;\n")
            try:
                run(*language, "-Wall", "-Wextra", "-Werror", "-I", str(ours.scratch),
                    "-fsyntax-only", str(source))  # fmt: skip
            except Failure as failure:
                wrong.append(f"{' '.join(order)}: {failure}")
    # zonda.h needs no other header.
    (ours.scratch / "compile.c").write_text("#include <zonda.h>\nint zonda_probe;\n")
    run("gcc", "-I", str(ours.scratch), "-fsyntax-only", str(ours.scratch / "compile.c"))
    return wrong


def of_first_set(second: Side) -> list[str]:
    """The second set is the first one but for four lines."""
    wrong = []
    for path in sorted(OURS.glob("*.h")):
        text = path.read_text()
        if path.name == "netcdf_meta.h":
            text = re.sub(r"(define NC_HAS_(?:PNETCDF|PARALLEL4|PARALLEL|PAR_FILTERS) )0", r"\g<1>1", text)
        other = second.folder / path.name
        if not other.exists() or other.read_text() != text:
            wrong.append(f"{other} is not made of {path}")
    return wrong


def main() -> rig.Counts:
    parser = rig.parser(__doc__, only=None)
    parser.add_argument("headers", nargs="?", type=Path, default=Path("/usr/include"))
    reference, counts = rig.arguments(parser).headers, rig.Counts()

    def report(name: str, wrong: list[str]) -> None:
        if counts.check(name, "".join(f"\n     {line}" for line in wrong)):
            print(f"ok   {name}")

    with rig.scratch() as scratch:
        ours = Side(OURS, scratch / "ours")
        theirs = Side(reference, scratch / "theirs")
        report("prototypes are those of abi/symbols.txt", compare_table(ours))
        report("headers compile in C89, C11 and C++", compile_all(ours))
        used: set[str] = set()
        for header in HEADERS:
            if theirs.has("netcdf.h") and theirs.has(header):
                report(f"{header} as in {reference}", compare(header, ours, theirs, used))
            else:
                counts.skip(header, f"not in {reference}")
        if counts.skipped == 0 or (theirs.has("netcdf.h") and counts.skipped == 1):
            stale = [entry for entry in [*DIFFERENT, *ADDED] if entry not in used]
            report("no listed exception is stale", [f"{entry} is not used" for entry in stale])

        second = Side(rig.LIBDIR / "netcdf" / "mpi" / "include", scratch / "second")
        if not second.has("netcdf.h"):
            counts.skip("headers for programs that use MPI", f"not in {rig.LIBDIR}; run make build")
            return counts
        report("headers for programs that use MPI are the others", of_first_set(second))
        parallel = rig.parallel_reference()
        if not parallel:
            counts.skip("the same as in Debian's parallel build", "it is not there; scripts/setup.sh --par gets it")
            return counts
        # The one that has both ways to parallel files.
        theirs = Side(parallel / "netcdf" / "pnetcdf" / "include", scratch / "theirs-parallel")
        for header in HEADERS:
            report(f"{header} as in {theirs.folder}", compare(header, second, theirs, used))
    return counts


if __name__ == "__main__":
    rig.main(main)

#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""libzonda-preload.so in front of a library whose functions say which they are: each call arrives at the function of its name, and the first
one, from a constructor and with arguments in all registers and on the stack, with what it was called with. Without a library beside it the
program is told, and ends at its first call.

    tests/c/preload.py [--quick] [--long] [--only REGEX] [--seed N]
"""
import re
import subprocess
import sys
from pathlib import Path

sys.path.insert(1, str(Path(__file__).resolve().parents[1]))
import rig  # noqa: E402

CSRC = rig.ROOT / "crates/zonda-capi/csrc"
# Made the first call: its arguments are kept while all functions are looked for.
FIRST = "nc_set_chunk_cache"
TYPES = "long, long, float, long, long, long, long, long, long, double, double, float, double, double, double, double, double"


def sources(folder, names):
    """A library whose functions give their numbers, and a program that calls all of them."""
    arguments = ", ".join(f"{kind.strip()} a{at}" for at, kind in enumerate(TYPES.split(",")))
    shown = ", ".join(f"(double)a{at}" for at in range(TYPES.count(",") + 1))
    formats = " ".join(["%g"] * (TYPES.count(",") + 1))
    library = [f"int {name}(void) {{ return {index}; }}" for name, index in names if name != FIRST]
    library.append(f'#include <stdio.h>\nint {FIRST}({arguments}) {{ printf("{formats}\\n", {shown}); return {dict(names)[FIRST]}; }}')
    (folder / "library.c").write_text("\n".join(library))
    values = ", ".join(f"{at + 1}" for at in range(TYPES.count(",") + 1))
    program = [
        "#include <stdio.h>", f"int {FIRST}({TYPES});", *(f"int {name}(void);" for name, _ in names if name != FIRST),
        f'__attribute__((constructor)) static void early(void) {{ if ({FIRST}({values}) != {dict(names)[FIRST]}) printf("wrong\\n"); }}',
        "int main(void) {",
        *(f'    if ({name}() != {index}) printf("{name}\\n");' for name, index in names if name != FIRST),
        "    return 0;", "}",
    ]  # fmt: skip
    (folder / "program.c").write_text("\n".join(program))


def main():
    rig.arguments(rig.parser(__doc__))
    counts = rig.Counts()
    names = [(name, int(index)) for name, index in re.findall(r"ZONDA_NAME\((\w+), (\d+)\)", (rig.ROOT / "abi/preload_names.h").read_text())]
    with rig.scratch() as scratch:
        sources(scratch, names)
        rig.must(("gcc", "-w", "-fno-builtin", "-shared", "-fPIC", scratch / "library.c", "-o", scratch / "libnetcdf.so.19"))
        rig.must(
            ("gcc", "-O2", "-fPIC", "-shared", f"-I{rig.ROOT / 'abi'}", "-Wl,-z,now", "-Wl,-z,defs", f"-Wl,--version-script={rig.ROOT / 'abi/preload.map'}",
             CSRC / "preload.c", CSRC / "preload.S", "-lpthread", "-ldl", "-o", scratch / "libzonda-preload.so")
        )  # fmt: skip
        rig.must(
            ("gcc", "-w", "-fno-builtin", scratch / "program.c", f"-L{scratch}", "-l:libzonda-preload.so", f"-Wl,-rpath,{scratch}", "-o", scratch / "program")
        )

        def each_call_arrives():
            done = subprocess.run((scratch / "program",), capture_output=True, text=True)
            expected = " ".join(str(at + 1) for at in range(TYPES.count(",") + 1)) + "\n"
            if (done.returncode, done.stdout, done.stderr) != (0, expected, ""):
                raise rig.Wrong(f"exit {done.returncode}: {done.stdout}{done.stderr}")

        def no_library_is_told():
            (scratch / "libnetcdf.so.19").unlink()
            done = subprocess.run((scratch / "program",), capture_output=True, text=True)
            if done.returncode != 127 or "libnetcdf.so.19" not in done.stderr or done.stdout:
                raise rig.Wrong(f"exit {done.returncode}: {done.stdout}{done.stderr}")

        counts.attempt(f"each of {len(names)} calls arrives", each_call_arrives)
        counts.attempt("no library beside it", no_library_is_told)
    return counts


if __name__ == "__main__":
    rig.main(main)

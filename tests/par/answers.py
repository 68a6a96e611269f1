#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""What Debian's parallel library (netCDF-C 4.9.0 with HDF5 1.10.8 and PnetCDF 1.12.3) answers to the calls of answers.c, with two ranks.

    answers.py      writes answers.txt anew, from Debian's library with Open MPI

A line of answers.txt is `case|rank|call: answer`, with rank 2 where both ranks say the same. Cases in which it dies or does not end are
left out. Those in which the library answers otherwise on purpose are in answers-differ.txt.
"""
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(1, str(HERE.parent))
import debian  # noqa: E402
import launch  # noqa: E402
import rig  # noqa: E402

RECORD = HERE / "answers.txt"
DIFFERENT = HERE / "answers-differ.txt"
RANKS = 2
SECONDS = 20


def compiled(mpi, folder, libdir, headers, library):
    program = folder / ("answers-%s" % mpi.name)
    words = ["-std=gnu11", "-O1", "-g", "-Wall", "-Wextra", "-I%s" % headers, HERE / "answers.c", "-o", program]
    rig.must([rig.tool(mpi.compiler), *words, "-L%s" % libdir, "-l:" + library, "-Wl,--allow-shlib-undefined"], launch.environment(mpi))
    return program


def names(program, libdir):
    return rig.must([program, "list"], rig.environment(libdir)).split()


def said(mpi, program, case, libdir, folder):
    """The lines of a case, or what became of it."""
    file = folder / ("%s.nc" % case)
    command = launch.command(mpi, RANKS, [program, case, file])
    status = launch.ends_with(command, launch.environment(mpi, libdir), folder, SECONDS, folder / "log")
    if status != 0:
        return None, "does not end" if status is None else "ends with %d" % status
    texts = [file.with_name("%s.said.%d" % (file.name, rank)).read_text() for rank in range(RANKS)]
    each = [(RANKS, texts[0])] if texts[0] == texts[1] else enumerate(texts)
    return ["%s|%d|%s" % (case, rank, line.partition(" ")[2]) for rank, text in each for line in text.splitlines()], None


def recorded():
    """Lines by case."""
    found = {}
    for line in RECORD.read_text().splitlines():
        if not line.startswith("#"):
            found.setdefault(line.partition("|")[0], []).append(line)
    return found


def different():
    rows = (line.partition("|") for line in DIFFERENT.read_text().splitlines() if line and not line.startswith("#"))
    return {name.strip(): reason.strip() for name, _, reason in rows}


def one(mpi, program, case, expected, folder):
    lines, wrong = said(mpi, program, case, rig.LIBDIR, folder)
    if wrong:
        raise rig.Wrong(wrong)
    if lines == expected or expected is None or case in different():
        # Of the latter, that they end is all that is asked.
        return
    at = next((at for at, (mine, theirs) in enumerate(zip(lines, expected)) if mine != theirs), min(len(lines), len(expected)))
    show = [each[at] if at < len(each) else "nothing more" for each in (lines, expected)]
    raise rig.Wrong("%s; the reference: %s" % tuple(show))


def cases(mpi, folder):
    """Name, test and arguments of each case."""
    program, known = compiled(mpi, folder, rig.LIBDIR, rig.LIBDIR / "netcdf" / "mpi" / "include", rig.SONAME), recorded()
    for case in names(program, rig.LIBDIR):
        yield case, one, mpi, program, case, known.get(case), folder


def record():
    libdir, mpi = debian.get(), next(mpi for mpi in launch.known() if mpi.name == "openmpi")
    text = "# Made by tests/par/answers.py.\n"
    with rig.scratch() as scratch:
        program = compiled(mpi, scratch, libdir, libdir / "netcdf" / "pnetcdf" / "include", rig.PARALLEL[1])
        for case in names(program, libdir):
            lines, wrong = said(mpi, program, case, libdir, scratch)
            text += "".join(line + "\n" for line in lines or ()) or "# %s %s\n" % (case, wrong)
    RECORD.write_text(text)


if __name__ == "__main__":
    record()

# SPDX-License-Identifier: MIT OR Apache-2.0
"""The programs of docs/guides/mpi.md and docs/guides/python.md: compiled as the guide says and run, and what they leave has the same text."""
import re

import datasets
import launch
import rig

RANKS, SECONDS = 3, 120


def program(page, language, word):
    """The first program on a page in this language with this word in it."""
    found = re.findall(r"^```%s\n(.*?)^```" % language, (rig.ROOT / "docs" / "guides" / page).read_text(), re.M | re.S)
    return next(text for text in found if word in text)


def configured(*options):
    """What nc-config.mpi answers."""
    return rig.must([rig.BIN / "nc-config.mpi", *options]).split()


def left_by(mpi, folder, words, name, **env):
    """Runs ranks; the text of the file that they leave, without its name."""
    log = folder / "said"
    status = launch.ends_with(launch.command(mpi, RANKS, words), launch.environment(mpi, rig.LIBDIR, ZONDA_PAR_TIMEOUT="60", **env), folder, SECONDS, log)
    if status != 0:
        raise rig.Wrong("ends with %s: %s" % (status, log.read_text(errors="backslashreplace")[-600:]))
    text = rig.must([rig.BIN / "ncdump", folder / name], rig.environment(rig.LIBDIR))
    return text[text.index("\n") :]


def judge(text, other=None):
    """The values of the last rank and step are there; where there is another program, it left the same values."""
    last = "%d" % (1000 * 4 + RANKS - 1)
    if not text.rstrip().endswith(", ".join([last] * 3) + " ;\n}") or "time = 0, 6, 12, 18, 24 ;" not in text:
        raise rig.Wrong("the values are others: %s" % text[-300:])
    # The order of dimensions is Fortran's there.
    if other is not None and text[text.index("data:") :] != other[other.index("data:") :]:
        raise rig.Wrong("two languages leave other values")


def compiled(mpi, scratch):
    folder = scratch / ("guide-" + mpi.name)
    folder.mkdir()
    env = launch.environment(mpi)
    (folder / "model.c").write_text(program("mpi.md", "c", "nc_create_par"))
    rig.must([rig.tool(mpi.compiler), folder / "model.c", "-o", folder / "model-c", *configured("--cflags", "--libs")], env)
    first = left_by(mpi, folder, [folder / "model-c"], "c.nc")
    judge(first)
    (folder / "model.f90").write_text(program("mpi.md", "fortran", "nf90_create_par"))
    # Debian's module lies with its library's headers.
    rig.must([rig.tool(mpi.fortran), folder / "model.f90", "-o", folder / "model-f", *configured("--fflags", "--flibs")], env)
    judge(left_by(mpi, folder, [folder / "model-f"], "f.nc"), first)
    traced(mpi, folder)


def traced(mpi, folder):
    """What the page reads in traces is there: a file for each rank, and the tables."""
    left_by(mpi, folder, [folder / "model-c"], "c.nc", ZONDA_TRACE=folder / "trace.%r")
    for rank in range(RANKS):
        said = rig.must([rig.ZONDA, "trace", folder / ("trace.%d" % rank)], rig.environment(rig.LIBDIR))
        waits = said[said.find("waits for ranks") :]
        lacking = [row for row in ("caller in the library", "caller elsewhere", "file       write") if row not in said]
        if lacking or not all(call in waits for call in ("nc_put_vara", "nc_close")):
            raise rig.Wrong("the trace of rank %d has no %s: %s" % (rank, ", ".join(lacking) or "waits of calls", said))


def interpreted(mpi, package, page, scratch):
    folder = scratch / ("guide-%s-%s" % (mpi.name, page))
    folder.mkdir()
    (folder / "model.py").write_text(program(page, "python", "comm=comm"))
    text = left_by(mpi, folder, [mpi.python, folder / "model.py"], "p.nc", PYTHONPATH=package)
    if ", 4002, 4002 ;" not in text:
        raise rig.Wrong("the values are others: %s" % text[-300:])
    if page == "mpi.md":
        judge(text)


def cases(mpi, options):
    """Names, tests and their arguments."""
    if mpi.fortran:
        yield "guide, C and Fortran", compiled, mpi, options.scratch
    if mpi.python:
        for page in ("mpi.md", "python.md"):
            yield "guide, Python in %s" % page, interpreted, mpi, datasets.package(options.scratch, mpi.python), page, options.scratch

# SPDX-License-Identifier: MIT OR Apache-2.0
"""Puts of columns, whose short runs ranks exchange: the bytes are the same for any number of ranks and with any hint. For run.py."""
from pathlib import Path

import launch
import rig

HERE = Path(__file__).resolve().parent
KINDS = ("records", "fixed", "contiguous", "chunks")
HINTS = ("automatic", "enable", "disable")


def _made(mpi, program, folder, ranks, words):
    kind, hint, seed = words
    file = folder / "columns.nc"
    file.unlink(missing_ok=True)
    done = rig.run(launch.command(mpi, ranks, [program, kind, file, hint, seed]), launch.environment(mpi, rig.LIBDIR))
    if done.returncode or done.stdout.count("ok") != ranks:
        raise rig.Wrong("%d ranks, %s: %s" % (ranks, hint, done.stderr.strip()[-400:]))
    return file.read_bytes()


def _one(mpi, program, folder, kind, counts, seed):
    expected = _made(mpi, program, folder, 1, (kind, "disable", seed))
    for ranks in counts:
        for hint in HINTS:
            if _made(mpi, program, folder, ranks, (kind, hint, seed)) != expected:
                raise rig.Wrong("%d ranks, %s: other bytes than of one rank; seed %d" % (ranks, hint, seed))


def cases(mpi, folder, options):
    """A case for each kind of variable: its name, the test, arguments."""
    program = folder / ("columns-%s" % mpi.name)
    rig.must([rig.tool(mpi.compiler), "-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-I", rig.LIBDIR / "netcdf/mpi/include", HERE / "columns.c", "-o", program,
              "-L", rig.LIBDIR, "-l:" + rig.SONAME, "-Wl,--allow-shlib-undefined"], launch.environment(mpi))  # fmt: skip
    counts = options.by((3,), (2, 5), (2, 3, 5, 8, 16))
    for kind in KINDS:
        yield "columns, %s" % kind, _one, mpi, program, folder, kind, counts, options.seed

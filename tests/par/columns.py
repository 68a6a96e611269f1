# SPDX-License-Identifier: MIT OR Apache-2.0
"""Puts of columns, whose short runs ranks exchange: the bytes are the same for any number of ranks and with any hint. For run.py."""
import re
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


def _told(mpi, program, folder, seed):
    """What hints did is in the trace of each rank."""
    trace, file = folder / "hints.trace", folder / "columns.nc"
    for old in folder.glob("hints.trace*"):
        old.unlink()
    file.unlink(missing_ok=True)
    hints = "cb_nodes=2;cb_buffer_size=65536;striping_factor=4;striping_unit=131072;romio_cb_read=enable;nc_var_align_size=4096;romio_ds_write=enable"
    variables = launch.environment(mpi, rig.LIBDIR, PNETCDF_HINTS=hints, ZONDA_TRACE="%s.%%p" % trace)
    rig.must(launch.command(mpi, 3, [program, "records", file, "enable", seed]), variables)
    traces = list(folder.glob("hints.trace.*"))
    if len(traces) != 3:
        raise rig.Wrong("%d traces of 3 ranks" % len(traces))
    for one in traces:
        shown = rig.must([rig.ZONDA, "trace", one])
        for wanted in (
            r"cb_nodes: ranks that own stripes +2 +2 ",
            r"cb_buffer_size: bytes that a rank hands on at once +65_?536 +65_?536 ",
            r"striping_unit: bytes of a stripe of owners +131_?072 +131_?072 ",
            r"striping_factor: no effect, the file is not on Lustre +4 ",
            r"romio_cb_read: no effect",
            r"romio_cb_write: each put of several runs goes to owners of stripes",
            r"nc_var_align_size: data begin at a multiple +4_?096 +4_?096 ",
            r"exchange of runs",
        ):
            if not re.search(wanted, shown):
                raise rig.Wrong("the trace does not say %s: %s" % (wanted, shown[-3000:]))
        if "romio_ds_write" in shown:
            raise rig.Wrong("the trace has a hint of others")


def cases(mpi, folder, options):
    """A case for each kind of variable: its name, the test, arguments."""
    program = folder / ("columns-%s" % mpi.name)
    rig.must([rig.tool(mpi.compiler), "-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-I", rig.LIBDIR / "netcdf/mpi/include", HERE / "columns.c", "-o", program,
              "-L", rig.LIBDIR, "-l:" + rig.SONAME, "-Wl,--allow-shlib-undefined"], launch.environment(mpi))  # fmt: skip
    counts = options.by((3,), (2, 5), (2, 3, 5, 8, 16))
    for kind in KINDS:
        yield "columns, %s" % kind, _one, mpi, program, folder, kind, counts, options.seed
    yield "columns, hints in the trace", _told, mpi, program, folder, options.seed

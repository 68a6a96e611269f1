# SPDX-License-Identifier: MIT OR Apache-2.0
"""How many requests a whole variable takes whose chunks and the leaves of their index lie mixed: a few, whatever the speed of the line.

The index of 10,000 chunks has some 170 leaves, and each lies where the file ended when it was full. Asked for one by one, they and the runs between them
would be 350 requests.
"""
import rig
from latency import Line
from rig import Wrong

# Ranges of half a megabyte and more of 12 MB, the leaves that are looked at first, and the levels above them.
MOST = 60
SCRIPT = """
import sys, h5py, numpy
values = numpy.random.default_rng(1).integers(0, 200, (100, 400, 250)).astype("f4")
with h5py.File(sys.argv[1], "w") as file:
    file.create_dataset("v", data=values, chunks=(5, 20, 10), compression=1)
"""


def all_of(bench):
    python = rig.python("h5py")
    if "nginx" not in bench.servers.running or not python:
        bench.counts.skip("requests", "no nginx, or no h5py")
        return
    path = bench.files / "mixed.h5"
    rig.must([python, "-c", SCRIPT, path], rig.environment())
    path.chmod(0o644)
    for rtt in (2.0, 40.0):
        if bench.options.wants("requests at %g ms" % rtt):
            bench.counts.attempt("requests at %g ms" % rtt, whole, bench, rtt, path)
    path.unlink()


def whole(bench, rtt, path):
    env = rig.environment(rig.LIBDIR, HOME=bench.homes)
    copies = [bench.scratch / name for name in ("near.nc", "far.nc")]
    with Line(bench.servers.port, rtt) as through:
        url = "http://127.0.0.1:%d/%s#mode=bytes" % (through.port, path.name)
        for where, copy in zip((path, url), copies):
            rig.must([rig.BIN / "nccopy", "-k", "64-bit offset", where, copy], env)
        counted = through.counts()
    if copies[0].read_bytes() != copies[1].read_bytes():
        raise Wrong("by URL it has other values than by path")
    if counted["requests"] > MOST:
        raise Wrong("%d requests" % counted["requests"])
    if counted["got"] > 1.05 * path.stat().st_size + (1 << 20):
        raise Wrong("%d bytes of %d" % (counted["got"], path.stat().st_size))

# SPDX-License-Identifier: MIT OR Apache-2.0
"""Programs of others under `zonda run`: what they say of a URL is what they say of the same data in a file."""
import client
import foreign
import rig
from places import Way
from rig import Wrong


class Seen:
    """What tests/remote/foreign.py wants of a bench, of our own server."""

    def __init__(self, bench):
        self.options, self.counts, self.scratch, self.run = bench.options, bench.counts, bench.scratch, bench.run
        self.servers, self.local = self, bench.scratch / "cf.nc"
        self.server = bench.server()
        self.running, self.port = ("nginx",), self.server.port

    def log(self):
        return self.server.log()

    def path_alone(self, _name):
        return self.local


def all_of(bench):
    if bench.options.reference:
        bench.counts.skip("programs", "they run under Zonda")
        return
    seen, way = Seen(bench), Way("dap", bench.server().url, bench.home)
    if not bench.counts.attempt("programs: the file", copied, bench, seen, way):
        return
    for name, command in foreign.programs():
        case = "programs %s" % name
        if not bench.options.wants(case):
            continue
        if name == "ncra":
            # It wants a dimension that can grow, which DAP2 has none of.
            continue
        if command is None:
            bench.counts.skip(case, "it is not installed")
        else:
            bench.counts.attempt(case, foreign.same, seen, command, way, "cf")
    for name, words in (("ncdump -h", ["-h"]), ("ncdump -v", ["-v", "tas,lat"])):
        if bench.options.wants("programs ours %s" % name):
            bench.counts.attempt("programs ours %s" % name, ours, bench, seen, way, words)
    if bench.options.wants("programs zonda"):
        for name, words in (("info", ["info"]), ("copy", ["copy"])):
            bench.counts.attempt("programs zonda %s" % name, command_of_ours, bench, seen, way, words)


def copied(bench, seen, way):
    """The distribution's library copies the dataset to a file, which stands beside it from then on."""
    if not rig.reference():
        raise rig.Skip("no library of the distribution to copy with")
    rig.must([rig.tool("nccopy") or rig.BIN / "nccopy", "-k", "classic", way.url("cf"), seen.local], rig.environment(rig.reference(), HOME=bench.home))


def ours(bench, seen, way, words):
    wanted, got = (rig.must([rig.BIN / "ncdump", "-n", "x", *words, target], bench.environment()) for target in (seen.local, way.url("cf")))
    if wanted != got:
        raise Wrong("by path and by URL: %s" % [(a, b) for a, b in zip(wanted.splitlines(), got.splitlines()) if a != b][:2])


def command_of_ours(bench, seen, way, words):
    out = bench.scratch / "copied.nc"
    out.unlink(missing_ok=True)
    target = [out] if words == ["copy"] else []
    done = bench.run([rig.ZONDA, *words, way.url("cf"), *target], bench.environment(), seconds=client.SECONDS)
    if done.returncode:
        raise Wrong("it ends with %d: %s" % (done.returncode, done.stderr.strip()[-300:]))
    if target:
        wanted, got = (rig.must([rig.BIN / "ncdump", "-n", "x", path], bench.environment()) for path in (seen.local, out))
        if wanted != got:
            raise Wrong("the copy differs: %s" % [(a, b) for a, b in zip(wanted.splitlines(), got.splitlines()) if a != b][:2])
    elif "tas" not in done.stdout:
        raise Wrong("it does not name the variable: %.200r" % done.stdout)

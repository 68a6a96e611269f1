#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""OPeNDAP: datasets behind servers, as a C program, tools and Python get them.

    run.py [--quick] [--long] [--only REGEX] [--parts LIST] [--seed N] [--reference]

own       our own server (dap_server.py), which has every type of both versions: whole, single, partial, strided and empty selections by C
data      the reference's test data by HTTP: ncdump says what it says of the same responses as files
servers   pydap, xpublish-opendap, opendap-protocol: each type and selection equals the served arrays
xarray    xarray through Zonda's engine equals xarray's pydap engine
programs  ncdump, nccopy, NCO, CDO, GDAL and netCDF4-python, with a URL as with the same data in a file
ways      login, cookies, redirects, certificates, a proxy
hostile   servers that break their word: the code, fill in the caller's memory, bounded time and memory

--reference runs the same on the distribution's library: what fails there is what it gets wrong, or what differs.
"""
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(1, str(HERE.parent))
import rig  # noqa: E402

rig.needs("numpy")
# In front: its servers are files', ours are in peers.py.
sys.path.insert(1, str(HERE.parent / "remote"))
sys.path.insert(1, str(HERE))
import breaking  # noqa: E402
import client  # noqa: E402
import datasets  # noqa: E402
import peers  # noqa: E402
import places  # noqa: E402
import programs  # noqa: E402
import ways  # noqa: E402
import wire2  # noqa: E402
import wire4  # noqa: E402
from dap_server import Server  # noqa: E402
from rig import Wrong  # noqa: E402
from servers import Servers  # noqa: E402

# The reference's source package, which `tests/conformance` fetches.
SOURCE = rig.ROOT / "out" / "conformance" / "src" / "netcdf-c-4.9.0"


class Bench:
    def __init__(self, options, counts, scratch, servers):
        self.options, self.counts, self.scratch = options, counts, scratch
        self.libdir = rig.reference() if options.reference else rig.LIBDIR
        self.homes = scratch / "homes"
        self.homes.mkdir()
        self.home = places.home_of(self.homes, "plain")
        self.reader = rig.compile_c(scratch / "read", HERE / "read.c", link="reference" if options.reference else "ours")
        self.made = datasets.made()
        self.servers, self.peers, self.own = servers, {}, None

    def server(self):
        """Our own, which runs until the end of the tests."""
        self.own = self.own or Server(self.made)
        return self.own

    def environment(self, home=None, **more):
        return rig.environment(self.libdir, places.NETWORK, HOME=home or self.home, **more)

    def run(self, command, env=None, **how):
        """Runs a program; no secret of the servers may be in what it says."""
        done = rig.run(command, env or self.environment(), **how)
        for text in (done.stdout or "", done.stderr or ""):
            said = text if isinstance(text, str) else text.decode("latin-1")
            if any(secret in said for secret in self.servers.secrets()):
                raise Wrong("a secret is in what %s says" % command[0])
        return done

    def dump(self, url, *words, tool=None, env=None):
        """(status, text, errors) of ncdump, the distribution's on the library under test, or ours."""
        done = self.run([tool or rig.tool("ncdump") or rig.BIN / "ncdump", *words, url], env, seconds=client.SECONDS)
        return done.returncode, done.stdout, done.stderr


# ---- Our own server

def of_made(bench, name):
    dataset = bench.made[name]
    return list(client.of_dap2(dataset.variables) if isinstance(dataset, wire2.Dataset) else client.of_dap4(dataset.variables))


WAYS = (
    ("made2", "{}/made2"), ("made2", "[dap2]{}/made2"), ("made2", "{}/made2#mode=dap2"), ("made2", "{}/whole/made2"), ("sequences", "{}/sequences"),
    ("made4", "[dap4]{}/made4"), ("made4", "{}/made4#mode=dap4"), ("made4", "{}/made4#dap4"), ("made4", "[dap4]{}/big/made4"), ("made4", "[dap4]{}/nosums/made4"),
    ("made4", "[dap4]{}/tiny/made4"), ("made4", "[dap4]{}/whole/made4"), ("made4", "[dap4]{}/mute/made4"), ("made4", "dap4{}/made4"), ("made2", "dods{}/made2"),
)  # fmt: skip


def own(bench):
    server = bench.server()
    for name, form in WAYS:
        case = "own %s" % form.format("")
        if bench.options.wants(case):
            url = form.format(server.url.removeprefix("http") if form.startswith(("dap4{", "dods{")) else server.url)
            bench.counts.attempt(case, equal_own, bench, server, name, url)


def equal_own(bench, server, name, url):
    server.log()
    names = client.equal(bench, url, of_made(bench, name), bench.environment(), bench.options.seed, bench.options.by(1, 2, 20))
    wanted = {each.name.lstrip("/") for each in of_made(bench, name)}
    if not set(names) <= wanted:
        raise Wrong("there are more variables than served: %s" % sorted(set(names) - wanted))
    if not server.log():
        raise Wrong("the server was asked nothing")


# ---- The reference's data

def source_data():
    """{name: dataset} of the saved responses that our decoders read; and the folder of each."""
    found = {}
    for path in sorted((SOURCE / "ncdap_test" / "testdata3").glob("*.dods")):
        found[path.with_suffix("")] = wire2.Dataset.read
    for path in sorted((SOURCE / "dap4_test" / "daptestfiles").glob("*.dap")):
        found[path.with_suffix("")] = wire4.Dataset.read
    return found


def data(bench):
    if not SOURCE.exists():
        bench.counts.skip("data", "no source package of the reference: tests/conformance/run.py fetches it")
        return
    datasets = {}
    for path, read in source_data().items():
        try:
            datasets[path.name] = path, read(path)
        except (ValueError, AttributeError, KeyError) as why:
            bench.counts.skip("data %s" % path.name, "our own decoder says: %s" % why)
    chosen = sorted(datasets)[:: bench.options.by(10, 2, 1)]
    with Server({name: dataset for name, (_, dataset) in datasets.items()}) as server:
        for name in chosen:
            if bench.options.wants("data %s" % name):
                path, dataset = datasets[name]
                bench.counts.attempt("data %s" % name, same_as_file, bench, server, path, "[dap4]" if isinstance(dataset, wire4.Dataset) else "")


def same_as_file(bench, server, path, before):
    wanted = bench.dump("%sfile://%s" % (before, path))
    got = bench.dump("%s%s/%s" % (before, server.url, path.name))
    if wanted[0]:
        raise Wrong("the file itself is refused: %s" % wanted[2][-300:])
    if got[:2] != wanted[:2]:
        lines = [(a, b) for a, b in zip(wanted[1].splitlines(), got[1].splitlines()) if a != b][:2]
        raise Wrong("as a file and by URL: %s, status %d, %s" % (lines, got[0], got[2][-300:]))


def servers_of_others(bench):
    peers.all_of(bench)


def by_xarray(bench):
    for engine in ("zonda",) if not bench.options.reference else ("netcdf4",):
        for name, url in (("ours", lambda: bench.server().url + "/cf"), ("pydap", lambda: peers.start(bench, "pydap") + "/all")):
            case = "xarray %s %s" % (engine, name)
            if bench.options.wants(case):
                bench.counts.attempt(case, lambda: peers.xarray(bench, url(), engine))  # noqa: B023


def by_programs(bench):
    programs.all_of(bench)


def by_ways(bench):
    ways.all_of(bench, of_made)


def hostile(bench):
    breaking.all_of(bench)


PARTS = {"own": (rig.QUICK, own), "data": (rig.QUICK, data), "servers": (rig.FULL, servers_of_others), "xarray": (rig.FULL, by_xarray), "programs": (rig.FULL, by_programs),
         "ways": (rig.FULL, by_ways), "hostile": (rig.FULL, hostile)}  # fmt: skip


def main():
    p = rig.parser(__doc__, parts={name: mark for name, (mark, _) in PARTS.items()}, seed=1)
    p.add_argument("--reference", action="store_true", help="on the distribution's library")
    options, counts = rig.arguments(p), rig.Counts()
    if not options.reference and not rig.LIBRARY.exists():
        raise rig.Setup("no %s in %s; run make build" % (rig.SONAME, rig.LIBDIR))
    with rig.scratch() as scratch, Servers(scratch / "servers") as servers:
        bench = Bench(options, counts, scratch, servers)
        for part in options.chosen():
            PARTS[part][1](bench)
    return counts


if __name__ == "__main__":
    rig.main(main)

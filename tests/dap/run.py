#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""OPeNDAP: datasets behind servers, as a C program, tools and Python get them.

    run.py [--quick] [--long] [--only REGEX] [--parts LIST] [--seed N] [--reference]

own       our own server (dap_server.py), which has every type of both versions: whole, single, partial, strided and empty selections by C
data      the reference's test data by HTTP: ncdump says what it says of the same responses as files
saved     the same data as files: ncdump says what it says with the distribution's library
random    random datasets of DAP2 as files: the same, where that library has an answer
expected  the expected output of the reference's tests of its server, constraints in URLs among them
servers   pydap, xpublish-opendap, opendap-protocol: each type and selection equals the served arrays
xarray    xarray through Zonda's engine equals xarray's pydap engine
programs  ncdump, nccopy, NCO, CDO, GDAL and netCDF4-python, with a URL as with the same data in a file
ways      login, cookies, redirects, certificates, a proxy
tools     zonda info, copy, dump, diff, check, view, trace; copies that break off and are completed; the examples of docs/guides/opendap.md
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
import everywhere  # noqa: E402
import peers  # noqa: E402
import places  # noqa: E402
import programs  # noqa: E402
import random2  # noqa: E402
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
# A constraint in the URL, and what is left of the dataset then.
CONSTRAINED = (
    ("made2", "{}/made2?af64[0:2][1:2:5]", "af64[0:2][1:2:5]"), ("made2", "{}/made2?i32,ai16[1][2:4],last", "i32,ai16[1][2:4],last"), ("made2", "{}/made2?g.g[0:2:4][1:3]", "g.g[0:2:4][1:3]"),
    ("made2", "{}/made2?st.values[1:2],st.n", "st.values[1:2],st.n"), ("made4", "[dap4]{}/made4?dap4.ce=/aint32[0:1][1:2:5]", "/aint32[0:1][1:2:5]"),
    ("made4", "[dap4]{}/made4?dap4.ce=/g/v[1:2][0:3];/float64", "/g/v[1:2][0:3];/float64"),
)  # fmt: skip


def own(bench):
    server = bench.server()
    for name, form in WAYS:
        case = "own %s" % form.format("")
        if bench.options.wants(case):
            url = form.format(server.url.removeprefix("http") if form.startswith(("dap4{", "dods{")) else server.url)
            bench.counts.attempt(case, equal_own, bench, server, name, url)
    for name, form, chosen in CONSTRAINED:
        case = "own constraint %s" % form.format("")
        if bench.options.wants(case):
            bench.counts.attempt(case, equal_part, bench, server, form.format(server.url), name, chosen)
    for name, form, variable in (("made2", "{}/plenty2", "v"), ("made4", "[dap4]{}/plenty4", "v")):
        case = "own only what is asked for %s" % form.format("")
        if bench.options.wants(case):
            bench.counts.attempt(case, only_a_part, bench, server, form.format(server.url), variable)


def equal_part(bench, server, url, name, chosen):
    """A constraint in the URL makes the dataset, and selections are made of that."""
    dataset = bench.made[name]
    parts = dataset.chosen(chosen)
    expected = list(client.of_dap2(parts) if isinstance(dataset, wire2.Dataset) else client.of_dap4(parts))
    names = client.equal(bench, url, expected, bench.environment(), bench.options.seed, bench.options.by(1, 2, 20))
    if sorted(names) != sorted(each.name.lstrip("/") for each in expected):
        raise Wrong("there are %s, not %s" % (names, [each.name for each in expected]))


def only_a_part(bench, server, url, variable):
    """A part of a large variable costs no more than that."""
    server.log()
    code, answers = client.ask(bench, url, ["vars %s 100 200 3 4 2 5" % variable], bench.environment())
    if code or answers.value()[0]:
        raise Wrong("an error: %d" % code)
    sizes = [len(server.answer(name, query, frozenset())[1]) for name, query, _ in server.log()]
    if sum(sizes) > 16384 or not sizes:
        raise Wrong("%d values took %s bytes" % (12, sizes))


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


def tools(bench):
    if not bench.options.reference:
        everywhere.all_of(bench)


def hostile(bench):
    breaking.all_of(bench)


def saved(bench):
    """Every saved response of the reference's source package, as a file: what the distribution's library says of it."""
    if not SOURCE.exists() or not rig.reference():
        bench.counts.skip("saved", "no source package of the reference, or no library of the distribution")
        return
    for path in sorted(source_data())[:: bench.options.by(10, 1, 1)]:
        if bench.options.wants("saved %s" % path.name):
            bench.counts.attempt("saved %s" % path.name, as_the_reference, bench, ("[dap4]file://%s" if path.parent.name == "daptestfiles" else "file://%s") % path)


def at_random(bench):
    """Random datasets of DAP2. The distribution's library refuses some, ends by a signal for others, and takes two dimensions for one where three
    lengths have one name."""
    if not rig.reference():
        bench.counts.skip("random", "no library of the distribution")
        return
    folder = bench.scratch / "random"
    folder.mkdir()
    for seed in range(bench.options.seed, bench.options.seed + bench.options.by(20, 100, 3000)):
        if bench.options.wants("random %d" % seed):
            bench.counts.attempt("random %d" % seed, as_the_reference, bench, "file://%s" % random2.write(folder, seed))


# The reference reads one element of an array field of a structure where the body has two (test_vlen4 of its tests; the CDL of that file has both).
LOST = ("{{1}, {3}, {5}, {7}}, {}}", "{{1}, {3}, {5}, {7}}, {{100}, {200}}}")


def as_the_reference(bench, url):
    wanted = bench.dump(url, env=rig.environment(rig.reference(), HOME=bench.home))
    wanted = (wanted[0], wanted[1].replace(*LOST), *wanted[2:])
    got = bench.dump(url)
    if wanted[0] or "duplicate dim names" in wanted[2]:
        # What it refuses we may read; that it ends is seen.
        if got[0] < 0:
            raise Wrong("ncdump ends with %d" % got[0])
        return
    if wanted[:2] != got[:2]:
        lines = [(a, b) for a, b in zip(wanted[1].splitlines(), got[1].splitlines()) if a != b][:2]
        raise Wrong("the reference and we: %s, status %d, %s" % (lines, got[0], got[2][-300:]))


# What the reference's tests ask of its server with a constraint; the number is that of the expected output.
CONSTRAINTS = {"test.01.1": "f64", "test.02.1": "b[1:2:10]", "test.03.1": "i32[0:1][1:2][0:2]", "test.03.2": "s1", "test.04.1": "types.i32", "test.05.1": "types.floats.f32",
               "test.07.1": "person.age", "test.07.3": "person", "test.07.4": "types.f32", "test.06.1": "ThreeD"}  # fmt: skip


def expected_remote(bench):
    """The expected output of the reference's tests of its own server, which had the same data as its files for most of them: where the
    distribution's library says something else of our server, too, the data are others."""
    folder = SOURCE / "ncdap_test" / "expectremote3"
    if not folder.exists():
        bench.counts.skip("expected", "no source package of the reference: tests/conformance/run.py fetches it")
        return
    served, cases = {}, []
    for path in sorted(folder.glob("*.dmp")):
        name = path.stem if path.stem not in CONSTRAINTS else path.stem.rpartition(".")[0]
        data = SOURCE / "ncdap_test" / "testdata3" / name
        if data.with_name(name + ".dods").exists() and bench.options.wants("expected %s" % path.stem):
            try:
                served[name] = wire2.Dataset.read(data)
                cases.append((path, name, CONSTRAINTS.get(path.stem, "")))
            except (ValueError, AttributeError, KeyError) as why:
                bench.counts.skip("expected %s" % path.stem, "our own decoder says: %s" % why)
    with Server(served) as server:
        for path, name, constraint in cases:
            bench.counts.attempt("expected %s" % path.stem, as_expected, bench, path, "%s/%s%s" % (server.url, name, "?" + constraint if constraint else ""))


def as_expected(bench, path, url):
    def shape(text):
        return "".join(text.replace("\\r", "").split())

    wanted = path.read_text(errors="replace")
    status, text, said = bench.dump(url)
    if shape(text) == shape(wanted) and status == 0:
        return
    if not bench.options.reference and rig.reference() and shape(bench.dump(url, env=rig.environment(rig.reference(), HOME=bench.home))[1]) != shape(wanted):
        raise rig.Skip("the reference says something else, too")
    lines = [(a, b) for a, b in zip(wanted.splitlines(), text.splitlines()) if shape(a) != shape(b)][:2]
    raise Wrong("expected and said: %s, status %d, %s" % (lines, status, said[-300:]))


PARTS = {"own": (rig.QUICK, own), "data": (rig.QUICK, data), "saved": (rig.QUICK, saved), "random": (rig.QUICK, at_random), "expected": (rig.FULL, expected_remote), "servers": (rig.FULL, servers_of_others), "xarray": (rig.FULL, by_xarray), "programs": (rig.FULL, by_programs), "tools": (rig.FULL, tools),
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

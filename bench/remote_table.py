#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Remote against local: the same arrays in a local file, by OPeNDAP and by byte ranges, at 0 ms and at 20 ms a request.

    remote_table.py                 everything, some ten minutes: out/study/remote-table.md, .csv, .svg, and a record
    remote_table.py --rounds N      rounds of each cell (5)
    remote_table.py --only REGEX    cells with such a name ("dap2 20 ms large variable")
    remote_table.py --peers LIST    of zonda,wheel,curl

Each run is a process that has opened nothing before (engines/remote.c); the peers of a cell take turns. Our own server (tests/dap/dap_server.py)
gives OPeNDAP, with all responses made before, nginx gives byte ranges; at 20 ms the proxy of tests/remote/latency.py stands between.

    zonda, wheel   dist/lib and the library of the netCDF4 wheel, from the open to the end of the close
    curl           the limit: the data responses (or the ranges) that Zonda asked for in the warm-up, 8 at once, without decoding: the clock of the
                   last one; for more than 8 the process less what an empty one takes. For a local file: `cat`

`get` is what of Zonda's time the calls of nc_get_var take. Correct first: who read other values than Zonda from the local file gets no time.
"""
import argparse
import csv
import datetime
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.parse
from pathlib import Path

import harness
from harness import ROOT, Failed

# In front of this folder, which has other `servers`.
sys.path.insert(0, str(ROOT / "tests" / "remote"))
sys.path.insert(0, str(ROOT / "tests" / "dap"))
import places  # noqa: E402
import rig  # noqa: E402
from latency import Line  # noqa: E402
from servers import Servers  # noqa: E402

PEERS = ("zonda", "wheel", "curl")
COLOURS = {"zonda": "#0072b2", "wheel": "#d55e00", "curl": "#888888"}
# Name, round trip in ms; "dap2 0" is one without a proxy.
WAYS = (("local", 0), ("dap2", 0), ("dap2", 20), ("dap4", 0), ("dap4", 20), ("bytes", 0), ("bytes", 20))
# What is read: dataset, operation, variable.
WORKS = {"20 variables, header": ("wide", "header", ""), "one of 20 variables": ("wide", "variable", "v7"), "20 variables, all": ("wide", "all", ""),
         "large variable": ("large", "variable", "v0")}  # fmt: skip
SHAPES = {"wide": (20, (360, 640)), "large": (1, (4096, 4096))}
# Times of the wheel over Zonda's, and Zonda's over curl's of the same body, at least and at most.
FASTER, SAME, LIMIT = 3.0, 1.0, 1.1
# What a run may take, and from where on it is not repeated.
SECONDS, LONG = 300, 5
# Requests of curl at a time.
AT_ONCE = 8


def arrays(np, name):
    n, shape = SHAPES[name]
    rng = np.random.default_rng(len(name))
    return {"v%d" % k: rng.standard_normal(shape, dtype="f4") for k in range(n)}


def made(folder):
    """The datasets, as files and for our server: needs NumPy and netCDF4."""
    import netCDF4
    import numpy as np
    import wire2
    import wire4

    served = {}
    for name, (_, shape) in SHAPES.items():
        data = arrays(np, name)
        with netCDF4.Dataset(folder / (name + ".nc"), "w", format="NETCDF3_64BIT_OFFSET") as file:
            for dim, size in zip("yx", shape):
                file.createDimension(dim, size)
            for key, values in data.items():
                file.createVariable(key, "f4", ("y", "x"))[:] = values
                file[key].units = "K"
        dims = "[y = %d][x = %d]" % shape
        served[name] = wire2.Dataset(name, wire2.parsed("Dataset {\n%s} d;" % "".join("Float32 %s%s;\n" % (key, dims) for key in data))[1],
                                     "Attributes {\n%s}\n" % "".join('%s { String units "K"; }\n' % key for key in data))  # fmt: skip
        four = "".join('<Float32 name="%s"><Dim name="/y"/><Dim name="/x"/><Attribute name="units" type="String"><Value>K</Value></Attribute></Float32>' % key for key in data)
        served[name + "4"] = wire4.Dataset(wire4.tree('<Dataset name="%s" dapVersion="4.0" dmrVersion="1.0"><Dimension name="y" size="%d"/><Dimension name="x" size="%d"/>%s</Dataset>' % (name, *shape, four)))
        for dataset in (served[name], served[name + "4"]):
            for var in dataset.variables:
                var.data = data[var.name]
    for path in folder.iterdir():
        path.chmod(0o644)
    return served


class Bench:
    def __init__(self, options, folder, libs, servers, dap):
        self.options, self.folder, self.servers, self.dap = options, folder, servers, dap
        self.engine = ROOT / "out" / "bench-bin" / "remote"
        home = places.home_of(folder, "bench")
        self.env = {peer: {**rig.environment(None, places.NETWORK), "HOME": str(home)} for peer in PEERS}
        for peer in ("zonda", "wheel"):
            if peer in libs:
                self.env[peer]["LD_LIBRARY_PATH"] = libs[peer]["env"]["LD_LIBRARY_PATH"]
        self.empty = min(self.took(["curl", "-s", "file:///dev/null"], "curl") for _ in range(5))

    def took(self, command, peer):
        began = time.monotonic()
        done = subprocess.run([str(word) for word in command], env=self.env[peer], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=SECONDS, check=False)
        if done.returncode:
            raise Failed("%s: %s" % (command[0], done.stderr[-300:]))
        return time.monotonic() - began

    def url(self, way, name, port):
        path = self.folder / "files" / (name + ".nc")
        return {"local": str(path), "dap2": "[dap2]http://127.0.0.1:%d/%s" % (port, name), "dap4": "[dap4]http://127.0.0.1:%d/%s4" % (port, name),
                "bytes": "http://127.0.0.1:%d/%s.nc#mode=bytes" % (port, name)}[way]  # fmt: skip

    def library(self, peer, way, work, port):
        """{"seconds", "digest", "params": {"open", "get"}} of a run."""
        name, op, var = WORKS[work]
        done = subprocess.run([self.engine, "--file", self.url(way, name, port), "--op", op, "--var", var], env=self.env[peer], capture_output=True, text=True, timeout=SECONDS, check=False)
        if done.returncode:
            raise Failed("%s ends with %s: %s" % (peer, done.returncode, (done.stderr.strip().splitlines() or ["nothing said"])[-1][:300]))
        return json.loads(done.stdout.splitlines()[-1])

    def asked(self, way, port, line):
        """What was asked for since the last call, as curl is to ask for it: (URL, range) each."""
        if way in ("dap2", "dap4"):
            rows = [(name, query) for name, query, _ in self.dap.log() if name.endswith((".dods", ".dap"))]
            return [("http://127.0.0.1:%d/%s?%s" % (port, name, urllib.parse.quote(query, safe="=&")), "") for name, query in rows]
        time.sleep(0.05)
        # nginx's log has the path; the proxy counts at 20 ms what nginx sees, too.
        return [("http://127.0.0.1:%d%s" % (port, row[4]), row[5].removeprefix("bytes=")) for row in self.servers.log() if row[5].startswith("bytes=")]

    def limit(self, way, work, requests):
        if way == "local":
            return self.took(["cat", self.folder / "files" / (WORKS[work][0] + ".nc")], "curl") if "header" not in work and "one of" not in work else None
        if not requests:
            return None
        config = self.folder / "curl.conf"
        each = ['url = "%s"\noutput = "/dev/null"\nwrite-out = "%%{time_total}\\n"\n%s' % (url, 'range = "%s"\n' % part if part else "") for url, part in requests]
        config.write_text("next\n".join(each))
        command = ["curl", "--silent", "--fail", "--globoff", "--parallel", "--parallel-max", str(AT_ONCE), "--config", config]
        if len(requests) > AT_ONCE:
            return max(self.took(command, "curl") - self.empty, 1e-4)
        # All begin at once: the last one's own clock, in which there is no start of a process.
        said = subprocess.run([str(word) for word in command], env=self.env["curl"], capture_output=True, text=True, timeout=SECONDS, check=False)
        if said.returncode:
            raise Failed("curl: %s" % said.stderr[-300:])
        return max(float(line) for line in said.stdout.split())


def one_cell(bench, way, rtt, work, port, digests):
    """All rounds of a cell."""
    cell = {"way": way, "rtt_ms": rtt, "work": work, "seconds": {}, "get": [], "failed": {}, "requests": 0}
    peers, requests = [], []
    bench.asked(way, port, None)
    for peer in bench.options.peers:
        try:
            if peer == "curl":
                if bench.limit(way, work, requests) is None:
                    continue
            else:
                told = bench.library(peer, way, work, port)
                found = bench.asked(way, port, None)
                if peer == "zonda":
                    requests, cell["requests"] = found, len(found)
                # The header differs by way: attributes of DAP4 are strings, a file has no names for lengths, and so on.
                key = work if "header" not in work else (work, way)
                if digests.setdefault(key, told["digest"]) != told["digest"]:
                    raise Failed("it read other values than Zonda from the file" if "header" not in work else "another header than Zonda")
                if told["seconds"] > LONG:
                    # Once is enough.
                    cell["seconds"][peer] = [told["seconds"]]
                    continue
            peers.append(peer)
        except (Failed, subprocess.TimeoutExpired) as why:
            cell["failed"][peer] = str(why)
    for number in range(bench.options.rounds):
        for peer in harness.in_turn(peers, number):
            if peer == "curl":
                seconds = bench.limit(way, work, requests)
            else:
                told = bench.library(peer, way, work, port)
                seconds = told["seconds"]
                if peer == "zonda":
                    cell["get"].append(told["params"]["get"])
            cell["seconds"].setdefault(peer, []).append(seconds)
    return cell


def ratio(first, second):
    """(median, least, most) of the rounds' ratios."""
    if not first or not second:
        return None
    # By rounds; who takes long ran once, and is compared with all of the other's.
    each = [a / b for a, b in zip(first, second)] if len(first) == len(second) else [a / b for a in first for b in second]
    return statistics.median(each), min(each), max(each)


def judged(cell):
    """What misses its target."""
    missed = []
    wheel = ratio(cell["seconds"].get("wheel"), cell["seconds"].get("zonda"))
    least = FASTER if cell["work"] == "20 variables, all" and cell["rtt_ms"] and cell["way"].startswith("dap") else SAME
    if wheel and wheel[0] < least:
        missed.append("wheel / zonda %.2f, not %.1f" % (wheel[0], least))
    limit = ratio(cell["get"], cell["seconds"].get("curl"))
    if limit and cell["way"].startswith("dap") and cell["work"] == "large variable" and limit[0] > LIMIT:
        missed.append("get / curl %.2f, not %.1f" % (limit[0], LIMIT))
    return missed + ["%s: %s" % found for found in cell["failed"].items() if found[0] == "zonda"]


def ms(times):
    return "-" if not times else "%.3g (%.3g to %.3g)" % tuple(1000 * value for value in (statistics.median(times), min(times), max(times)))


def shown(found):
    return "-" if found is None else "%.2f (%.2f to %.2f)" % found


HEAD = ("what is read", "way", "round trip, ms", "zonda, ms", "of it get, ms", "netCDF-C, ms", "curl, ms", "netCDF-C / zonda", "get / curl", "data requests", "targets")


def row_of(cell):
    seconds = cell["seconds"]
    return [cell["work"], cell["way"], str(cell["rtt_ms"]), ms(seconds.get("zonda")), ms(cell["get"]), "failed" if "wheel" in cell["failed"] else ms(seconds.get("wheel")), ms(seconds.get("curl")),
            shown(ratio(seconds.get("wheel"), seconds.get("zonda"))), shown(ratio(cell["get"], seconds.get("curl"))), str(cell["requests"]), "; ".join(judged(cell)) or "met"]  # fmt: skip


def plot(cells):
    """A panel for each work: bars of milliseconds, logarithmic, by way."""
    import math

    works = list(dict.fromkeys(cell["work"] for cell in cells))
    ways = list(dict.fromkeys((cell["way"], cell["rtt_ms"]) for cell in cells))
    times = [value for cell in cells for each in cell["seconds"].values() for value in each]
    low, high = math.floor(math.log10(min(times) * 1000)), math.ceil(math.log10(max(times) * 1000))
    wide, tall, left, top = 60 * len(ways), 220, 70, 44
    out = ['<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="11">' % (left + wide + 20, (tall + 80) * len(works) + 30),
           '<rect width="100%" height="100%" fill="white"/>']  # fmt: skip
    for number, work in enumerate(works):
        y0 = top + number * (tall + 80)

        def at(value, y0=y0):
            return y0 + tall * (high - math.log10(max(value * 1000, 10**low))) / max(high - low, 1)

        out.append('<text x="%d" y="%d" font-size="13">%s</text><rect x="%d" y="%d" width="%d" height="%d" fill="none" stroke="#888"/>' % (left, y0 - 8, work, left, y0, wide, tall))
        for power in range(low, high + 1):
            y = at(10**power / 1000)
            out.append('<line x1="%d" x2="%d" y1="%.1f" y2="%.1f" stroke="#ddd"/><text x="%d" y="%.1f" text-anchor="end">%g ms</text>' % (left, left + wide, y, y, left - 4, y + 4, 10**power))
        for place, (way, rtt) in enumerate(ways):
            x = left + 60 * place
            out.append('<text x="%d" y="%d" text-anchor="middle">%s</text><text x="%d" y="%d" text-anchor="middle">%s</text>' % (x + 30, y0 + tall + 14, way, x + 30, y0 + tall + 28, "" if way == "local" else "%d ms" % rtt))
            for cell in cells:
                if (cell["work"], cell["way"], cell["rtt_ms"]) != (work, way, rtt):
                    continue
                for k, (peer, each) in enumerate(cell["seconds"].items()):
                    y = at(statistics.median(each))
                    left_of = x + 6 + 16 * k
                    out.append('<rect x="%d" y="%.1f" width="14" height="%.1f" fill="%s"/>' % (left_of, y, y0 + tall - y, COLOURS[peer]))
                    out.append('<line x1="%d" x2="%d" y1="%.1f" y2="%.1f" stroke="black"/>' % (left_of + 7, left_of + 7, at(min(each)), at(max(each))))
    for k, (peer, name) in enumerate((("zonda", "Zonda"), ("wheel", "netCDF-C"), ("curl", "curl of the same bytes"))):
        x = left + 130 * k
        out.append('<rect x="%d" y="8" width="12" height="12" fill="%s"/><text x="%d" y="18">%s</text>' % (x, COLOURS[peer], x + 16, name))
    return "\n".join([*out, "</svg>", ""])


def measured(bench, options, dap_port, nginx_port):
    cells, digests = [], {}
    for way, rtt in WAYS:
        works = [work for work in WORKS if re.search(options.only, "%s %d ms %s" % (way, rtt, work))]
        if not works:
            continue
        to = {"bytes": nginx_port, "local": 0}.get(way, dap_port)
        line = Line(to, rtt) if rtt else None
        try:
            for work in works:
                cells.append(one_cell(bench, way, rtt, work, line.port if line else to, digests))
                print("| %s |" % " | ".join(row_of(cells[-1])), flush=True)
                for peer, why in cells[-1]["failed"].items():
                    print("  %s: %s" % (peer, why), file=sys.stderr, flush=True)
        finally:
            if line:
                line.close()
    return cells


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--only", default="", metavar="REGEX")
    p.add_argument("--peers", default=list(PEERS), type=lambda words: words.split(","))
    o = p.parse_args()
    if not rig.found_python("netCDF4", "numpy"):
        sys.exit("no Python with netCDF4: scripts/setup.sh --test")
    from dap_server import Server

    bin_dir, out = ROOT / "out" / "bench-bin", ROOT / "out" / "study"
    harness.ENGINES = {"arrays": harness.ENGINES["arrays"], "remote": ("bench/engines/remote.c", ["-std=c99", "-O2", "-lnetcdf"])}
    gcc = harness.build(bin_dir)
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="zonda-table-", dir=os.environ.get("BENCH_MEMORY", "/dev/shm")) as folder:
        folder = Path(folder)
        if wheel := rig.newest(folder / "wheel", sys.executable):
            os.environ["NETCDF_LIBS"] = "wheel=%s" % wheel
        libs = harness.libraries(bin_dir)
        if "zonda" not in libs:
            return 1
        (folder / "files").mkdir()
        served = made(folder / "files")
        started, host = datetime.datetime.now(datetime.timezone.utc), harness.machine()
        heading = harness.heading(host, gcc, libs, started, "%d rounds" % o.rounds)
        print(heading, end="\n\n")
        print("| %s |\n|%s" % (" | ".join(HEAD), "---|" * len(HEAD)))
        with Server(served) as dap, Servers(folder / "servers") as servers:
            servers.nginx(folder / "files")
            cells = measured(Bench(o, folder, libs, servers, dap), o, dap.port, servers.port)
    table = "%s\n\n| %s |\n|%s\n%s" % (heading, " | ".join(HEAD), "---|" * len(HEAD), "".join("| %s |\n" % " | ".join(row_of(cell)) for cell in cells))
    (out / "remote-table.md").write_text(table)
    with (out / "remote-table.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["work", "way", "rtt_ms", "peer", "round", "seconds"])
        rows.writerows([cell["work"], cell["way"], cell["rtt_ms"], peer, n, value] for cell in cells for peer, each in cell["seconds"].items() for n, value in enumerate(each))
    if any(cell["seconds"] for cell in cells):
        (out / "remote-table.svg").write_text(plot(cells))
    print("\nwritten: " + ", ".join("out/study/remote-table." + end for end in ("md", "csv", "svg")))
    if not o.only and o.peers == list(PEERS):
        print(harness.keep(host, started, "-remote-table", {"libraries": harness.identity(libs), "gcc": gcc, "rounds": o.rounds}, cells))
    return 1 if any("zonda" in cell["failed"] for cell in cells) else 0


if __name__ == "__main__":
    sys.exit(main())

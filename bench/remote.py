#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Files behind a server, at 20 ms and at 0 ms a request, beside the peers and curl.

    remote.py                everything, some half an hour; a table and a record
    remote.py --rounds N     rounds of each row (5; what takes long is run once)
    remote.py --only REGEX   rows with such a name ("20 ms nc4-20 header")
    remote.py --rtt LIST     round trips in ms (20,0)
    remote.py --peers LIST   of zonda,wheel,fsspec,gdal,curl,local

Each run is a process that has opened nothing before, and nothing is cached but by the server. nginx serves the files; a proxy
(tests/remote/latency.py) makes the line longer and counts; at 0 ms nothing stands between, and nginx's log counts. The peers take turns.

    zonda, wheel   engines/remote.c on dist/lib and on the library of the netCDF4 wheel (`#mode=bytes`); the clock is around open to close
    fsspec         h5netcdf, for classic files SciPy, on fsspec's HTTP file; the clock is the same, imports are done
    gdal           gdalinfo or gdal_translate on /vsicurl/: the process, less what `gdalinfo --version` takes
    local          as zonda, on the file itself: what inflating and copying take where nothing has to come over a line
    curl           curl --parallel, 8 connections, of the very ranges that Zonda asked for in the warm-up: the process, less what an empty one takes

Correct first: zonda and wheel must have read the same, else neither gets a time. Reports, and decides nothing.
"""
import argparse
import datetime
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import harness
from harness import ROOT, Failed

# In front of this folder, which has other `servers`.
sys.path.insert(0, str(ROOT / "tests" / "remote"))
import places  # noqa: E402
import rig  # noqa: E402
from latency import Line  # noqa: E402
from servers import Servers  # noqa: E402

ENGINES = ROOT / "bench" / "engines"
PEERS = ("zonda", "wheel", "fsspec", "gdal", "curl", "local")
# File, what is read of it, and targets: trips at 20 ms; times curl at 20 and 0 ms; the wheel's time over Zonda's at 20 ms.
ROWS = (
    ("nc4-20", "header", "", {"trips": 4, "wheel": 10}),
    ("nc4-20", "variable", "v7", {"curl": 1.5, "wheel": 10, "stored": True}),
    ("nc4-20", "all", "", {"curl": 1.5, "wheel": 10, "stored": True}),
    ("nc4-2000", "header", "", {"wheel": 10}),
    ("chunks-1000", "variable", "v0", {"curl": 1.5, "wheel": 10, "stored": True}),
    ("chunks-10000", "variable", "v0", {"curl": 1.5, "wheel": 10, "stored": True}),
    ("classic-20", "header", "", {"trips": 4, "wheel": 1}),
    ("classic-20", "variable", "v7", {"curl": 1.5, "wheel": 10, "stored": True}),
    ("classic-2000", "header", "", {"wheel": 1}),
    ("records", "variable", "v7", {"wheel": 100}),
    ("records", "all", "", {"curl": 1.5, "wheel": 100, "stored": True}),
)
# What a run may take, and from where on it is not repeated.
SECONDS, LONG = 300, 15


class Bench:
    def __init__(self, options, folder, libs, python):
        self.options, self.folder, self.libs, self.python = options, folder, libs, python
        self.files = folder / "files"
        self.files.mkdir()
        self.bin_dir = ROOT / "out" / "bench-bin"
        self.home = places.home_of(folder, "bench")
        env = {"HOME": str(self.home)}
        self.env = {peer: {**rig.environment(None, places.NETWORK), **env} for peer in PEERS}
        for peer, lib in (("zonda", "zonda"), ("wheel", "wheel"), ("local", "zonda")):
            if lib in libs:
                self.env[peer]["LD_LIBRARY_PATH"] = libs[lib]["env"]["LD_LIBRARY_PATH"]
        # No cache between processes for anybody; what GDAL wants so that it does not look for neighbours, as its manual recommends.
        self.env["gdal"].update(GDAL_DISABLE_READDIR_ON_OPEN="EMPTY_DIR", CPL_VSIL_CURL_ALLOWED_EXTENSIONS=".nc", GDAL_PAM_ENABLED="NO")
        self.begins = {"gdal": self.least(["gdalinfo", "--version"]), "curl": self.least(["curl", "-s", "file:///dev/null"])}

    def least(self, command):
        times = []
        for _ in range(5):
            began = time.monotonic()
            if not rig.tool(command[0]):
                return 0.0
            subprocess.run(command, capture_output=True, check=False)
            times.append(time.monotonic() - began)
        return min(times)

    def make(self, names):
        subprocess.run([self.python, ENGINES / "remote_peer.py", "files", self.files, *names], check=True, env=rig.environment())
        for path in self.files.iterdir():
            path.chmod(0o644)

    def command(self, peer, name, op, var, url, ranges):
        """The words of a run; None where this peer has no way to do it."""
        if peer in ("zonda", "wheel", "local"):
            file = self.files / (name + ".nc") if peer == "local" else url + "#mode=bytes"
            return [self.bin_dir / "remote", "--file", file, "--op", op, "--var", var]
        classic = name.startswith(("classic", "records"))
        if peer == "fsspec":
            return [self.python, ENGINES / "remote_peer.py", "scipy" if classic else "h5netcdf", op, url, var]
        if peer == "gdal":
            if not rig.tool("gdalinfo") or op == "all":
                return None
            # Its netCDF driver reads classic files by page faults; HDF5 files it reads faster by its HDF5 driver.
            source = ("NETCDF" if classic else "HDF5") + ':"/vsicurl/%s"' % url
            if op == "header":
                return ["gdalinfo", "--config", "GDAL_SKIP", "" if classic else "netCDF", "/vsicurl/%s" % url]
            return ["gdal_translate", "-q", "-of", "MEM", source + (":" if classic else "://") + var, "none"]
        if not ranges:
            return None
        config = self.folder / "curl.conf"
        each = ['url = "%s"\noutput = "/dev/null"\nrange = "%s"\n' % (url, asked) for asked in ranges]
        config.write_text("next\n".join(each))
        return ["curl", "--silent", "--fail", "--parallel", "--parallel-max", "8", "--config", config]

    def run(self, peer, name, op, var, url, ranges=()):
        """One run: {"seconds", "digest"}; None where the peer cannot do it at all."""
        command = self.command(peer, name, op, var, url, ranges)
        if command is None:
            return None
        began = time.monotonic()
        try:
            done = subprocess.run([str(word) for word in command], env=self.env[peer], capture_output=True, text=True, timeout=SECONDS, check=False)
        except subprocess.TimeoutExpired:
            raise Failed("more than %d s" % SECONDS) from None
        took = time.monotonic() - began
        if done.returncode:
            raise Failed("%s ends with %s: %s" % (peer, done.returncode, (done.stderr.strip().splitlines() or ["nothing said"])[-1][:300]))
        if peer in self.begins:
            return {"seconds": max(took - self.begins[peer], 1e-4), "digest": None}
        told = json.loads(done.stdout.splitlines()[-1])
        return {"seconds": told["seconds"], "digest": told.get("digest")}


class Counter:
    """What went over the line in a run, from the proxy or from nginx."""

    def __init__(self, servers, line):
        self.servers, self.line = servers, line
        self.url = "http://127.0.0.1:%d" % (line.port if line else servers.port)

    def counts(self):
        if self.line:
            return self.line.counts()
        # nginx writes its line when the answer has left, which the client may know first.
        time.sleep(0.05)
        rows = self.servers.log()
        return {"requests": len(rows), "trips": None, "connections": None, "got": sum(row[2] for row in rows), "sent": None,
                "asked": [row[5] if row[5] != "-" else None for row in rows]}  # fmt: skip


def stored(path, op, var, python):
    """Bytes that the values of a variable, or of a whole file, take in it."""
    if op == "header":
        return None
    if op == "all":
        return path.stat().st_size
    if path.name.startswith(("classic", "records")):
        # All its variables are alike.
        return path.stat().st_size // 20
    script = "import h5py,sys; print(h5py.File(sys.argv[1])[sys.argv[2]].id.get_storage_size())"
    return int(subprocess.run([python, "-c", script, path, var], capture_output=True, text=True, check=True).stdout)


def middle(row, peer):
    times = row["seconds"].get(peer)
    return statistics.median(times) if times else None


def text(value, digits=3):
    return "-" if value is None else "%.*g" % (digits, value) if value < 1000 else "%.0f" % value


def ratio(row, one, other):
    """The median of the rounds' ratios, and the least and the most; by medians where a peer ran once."""
    first, second = row["seconds"].get(one), row["seconds"].get(other)
    if not first or not second:
        return None
    if len(first) == len(second):
        each = [a / b for a, b in zip(first, second)]
    else:
        each = [a / b for a in first for b in second]
    return statistics.median(each), min(each), max(each)


def ratio_text(found):
    return "-" if found is None else "%s (%s to %s)" % tuple(text(value) for value in found)


def judge(row, targets, rtt, size):
    """What misses its target."""
    missed = []
    if rtt:
        if "trips" in targets and row["counts"]["zonda"]["trips"] > targets["trips"]:
            missed.append("%d trips, not %d" % (row["counts"]["zonda"]["trips"], targets["trips"]))
        found = ratio(row, "wheel", "zonda")
        if found and found[0] < targets.get("wheel", 0):
            missed.append("wheel / zonda %s, not %d" % (text(found[0]), targets["wheel"]))
    curl = ratio(row, "zonda", "curl")
    most = targets.get("curl") and (targets["curl"] if rtt else 1.3)
    if curl and most and curl[0] > most:
        missed.append("zonda / curl %s, not %s" % (text(curl[0]), most))
    if targets.get("stored") and size and row["counts"]["zonda"]["got"] > 1.05 * size + (1 << 20):
        missed.append("%d bytes of %d" % (row["counts"]["zonda"]["got"], size))
    times = {peer: middle(row, peer) for peer in row["seconds"] if peer not in ("curl", "local")}
    if times and min(times, key=times.get) != "zonda":
        missed.append("%s is first" % min(times, key=times.get))
    return missed


def one_row(bench, counter, rtt, name, op, var):
    """All rounds of a row."""
    url = "%s/%s.nc" % (counter.url, name)
    row = {"rtt_ms": rtt, "file": name, "op": op, "seconds": {}, "counts": {}, "failed": {}}
    ranges = []
    peers, digests = [peer for peer in PEERS if peer in bench.options.peers], {}
    # The warm-up says what each does, who cannot, who takes long; and Zonda's ranges are curl's.
    for peer in peers:
        counter.counts()
        try:
            done = bench.run(peer, name, op, var, url, ranges)
        except Failed as why:
            row["failed"][peer] = str(why)
            continue
        if done is None:
            continue
        row["counts"][peer] = counter.counts()
        asked = row["counts"][peer].pop("asked")
        if peer == "zonda":
            ranges = [value.removeprefix("bytes=") for value in asked if value and "," not in value]
            row["ranges"] = ranges[:200]
        digests[peer] = done["digest"]
        row["seconds"][peer] = [done["seconds"]]
    if digests.get("zonda") and digests.get("wheel") and digests["zonda"] != digests["wheel"]:
        row["failed"]["zonda"] = "it read other values than the wheel"
        row["seconds"].pop("zonda")
    repeated = [peer for peer in row["seconds"] if row["seconds"][peer][0] < LONG]
    for peer in repeated:
        row["seconds"][peer] = []
    for number in range(bench.options.rounds):
        for peer in harness.in_turn(repeated, number):
            try:
                row["seconds"][peer].append(bench.run(peer, name, op, var, url, ranges)["seconds"])
            except Failed as why:
                row["failed"][peer] = str(why)
    row["seconds"] = {peer: times for peer, times in row["seconds"].items() if times}
    return row


def show(row, missed, size):
    counts = row["counts"]
    cells = ["%d ms %s %s" % (row["rtt_ms"], row["file"], row["op"])]
    cells += [text(1000 * middle(row, peer)) if middle(row, peer) else "failed" if peer in row["failed"] else "-" for peer in PEERS]
    cells += [ratio_text(ratio(row, "zonda", "curl")), ratio_text(ratio(row, "wheel", "zonda"))]
    cells += [" / ".join(text(counts[peer]["requests"]) if peer in counts else "-" for peer in PEERS[:4])]
    cells += [text(counts["zonda"]["trips"]) if "zonda" in counts else "-"]
    cells += [" / ".join("%.2f" % (counts[peer]["got"] / 1e6) if peer in counts else "-" for peer in PEERS[:4])]
    cells += ["-" if size is None else "%.2f" % (size / 1e6), "; ".join(missed) or "met"]
    print("| %s |" % " | ".join(cells), flush=True)
    for peer, why in row["failed"].items():
        print("  %s: %s" % (peer, why), file=sys.stderr, flush=True)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--only", default="", metavar="REGEX")
    p.add_argument("--rtt", default="20,0", type=lambda words: [float(word) for word in words.split(",")])
    p.add_argument("--peers", default=list(PEERS), type=lambda words: words.split(","))
    o = p.parse_args()
    python = rig.python("netCDF4", "h5netcdf", "fsspec", "aiohttp", "scipy", "h5py")
    if not python:
        sys.exit("no Python with netCDF4, h5netcdf, fsspec, aiohttp and scipy: scripts/setup.sh --test")
    bin_dir = ROOT / "out" / "bench-bin"
    harness.ENGINES = {"arrays": harness.ENGINES["arrays"], "remote": ("bench/engines/remote.c", ["-std=c99", "-O2", "-lnetcdf"])}
    gcc = harness.build(bin_dir)
    chosen = [(rtt, row) for rtt in o.rtt for row in ROWS if re.search(o.only, "%g ms %s %s" % (rtt, row[0], row[1]))]
    if not chosen:
        sys.exit("no row is called so")
    rows, missing = [], False
    with tempfile.TemporaryDirectory(prefix="zonda-remote-", dir=os.environ.get("BENCH_MEMORY", "/dev/shm")) as folder:
        folder = Path(folder)
        if wheel := rig.newest(folder / "wheel", python):
            os.environ["NETCDF_LIBS"] = "wheel=%s" % wheel
        libs = harness.libraries(bin_dir)
        if "zonda" not in libs:
            return 1
        bench = Bench(o, folder, libs, python)
        bench.make(sorted({row[0] for _, row in chosen}))
        started, host = datetime.datetime.now(datetime.timezone.utc), harness.machine()
        print(harness.heading(host, gcc, libs, started, "%d rounds" % o.rounds), end="\n\n")
        print("| ms | %s | zonda / curl | wheel / zonda | requests: zonda / wheel / fsspec / gdal | trips | MB: the same | stored, MB | targets |" % " | ".join(PEERS))
        print("|---" * (len(PEERS) + 7) + "|")
        with Servers(folder / "servers") as servers:
            servers.nginx(bench.files)
            for rtt in o.rtt:
                line = Line(servers.port, rtt) if rtt else None
                try:
                    counter = Counter(servers, line)
                    for name, op, var, targets in [row for at, row in chosen if at == rtt]:
                        row = one_row(bench, counter, rtt, name, op, var)
                        size = stored(bench.files / (name + ".nc"), op, var, python)
                        missed = judge(row, targets, rtt, size) if "zonda" in row["seconds"] else ["no time"]
                        missing = missing or "zonda" in row["failed"]
                        rows.append({**row, "stored": size, "missed": missed})
                        show(row, missed, size)
                finally:
                    if line:
                        line.close()
    facts = {"libraries": harness.identity(libs), "gcc": gcc, "rounds": o.rounds}
    if not o.only and o.peers == list(PEERS):
        print("\n%s" % harness.keep(host, started, "-remote", facts, rows))
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())

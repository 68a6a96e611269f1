#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""What I/O servers cost: the program that puts, and the processor time of the servers, at work and idle.

    servers.py                 everything, some two minutes; a table and a record
    servers.py --rounds N      rounds of each size (5)
    servers.py --clients N     idle clients of the idle row (64)
    servers.py --seconds S     how long servers are idle (10)

The program (engines/served_puts.c) times each put and a memcpy of the same bytes to memory that was written before, in turns; served and direct
runs take turns, too. "Processor" is the time that the thread which puts spends, whoever else has the cores. The server's is that of the whole process, from
/proc. A row of `share` computes on one core and puts 32 MB after each 0.4 s: how much of its time output is. Reports, and decides nothing.
"""

import argparse
import datetime
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import harness
from harness import ROOT, Failed

# Bytes of a put: puts, in bursts of so many.
SIZES = {4: (20000, 100), 4096: (8000, 40), 65536: (1600, 16), 1 << 20: (240, 8), 4 << 20: (80, 4)}
# How the file is written: ZONDA_ASYNC.
WAYS = {"served": "off", "direct": "off", "thread": "on", "helper": "helper"}
TICK = os.sysconf("SC_CLK_TCK")


def processor(pid):
    """Seconds of all threads of a process; of those that are there to the nanosecond, where the system counts so."""
    words = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    ticks = (int(words[11]) + int(words[12])) / TICK
    exact = sum(int((task / "schedstat").read_text().split()[0]) for task in Path(f"/proc/{pid}/task").iterdir()) / 1e9
    return max(ticks, exact) if ticks > exact + 2 / TICK else exact


def children(pid, word):
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "stat").read_text().rsplit(")", 1)[1].split()
                if int(words[1]) == pid and (word in (entry / "cmdline").read_bytes()):
                    found.append(int(entry.name))
            except OSError:
                pass
    return found


class Bench:
    def __init__(self, bin_dir, env, folder):
        self.bin_dir, self.env, self.folder = bin_dir, env, folder
        self.zonda = ROOT / "dist" / "bin" / "zonda"

    def engine(self, args, way):
        """A run: the line of the engine."""
        words = [str(word) for word in args]
        file = ["--file", str(self.folder / "puts.nc"), "--format", "4"]
        if way != "served":
            return harness.engine(self.bin_dir, "served_puts", file + words, {**self.env, "ZONDA_ASYNC": WAYS[way]}, 300)[0]
        line = [self.zonda, "run", "--servers", "groups=1", "--", self.bin_dir / "served_puts", *file, *words]
        done = subprocess.run([str(word) for word in line], env=self.env, capture_output=True, text=True, timeout=300)
        if done.returncode or done.stderr:
            raise Failed(f"served_puts ends with {done.returncode}: {done.stderr[-500:]}")
        return harness.json.loads(done.stdout)

    def served_cpu(self, args):
        """The same, with the processor time that the server takes besides that of starting."""
        file = ["--file", str(self.folder / "puts.nc"), "--format", "4"]
        line = [self.zonda, "run", "--servers", "groups=1", "--", self.bin_dir / "served_puts", *file, *args]
        with subprocess.Popen([str(word) for word in line], env=self.env, stdout=subprocess.PIPE, text=True) as child:
            seen, first, server = 0.0, None, None
            while child.poll() is None:
                server = server or next(iter(children(child.pid, b"--group")), None)
                if server:
                    try:
                        seen = max(seen, processor(server))
                        first = seen if first is None else first
                    except OSError:
                        pass
                time.sleep(0.02)
            return harness.json.loads(child.stdout.read()), seen - (first or 0)

    def idle(self, n_clients, seconds):
        """Share of a core that a server takes whose clients, or nobody, say nothing."""
        program = f"{self.bin_dir}/served_puts --file {self.folder}/idle-$n.nc --format 4 --calls 0 --idle {seconds + 20}"
        script = f"for n in $(seq {n_clients}); do {program} >/dev/null & done; sleep {seconds + 15}; kill $(jobs -p); wait" if n_clients else f"sleep {seconds + 3}"
        with subprocess.Popen([self.zonda, "run", "--servers", "groups=1", "--", "bash", "-c", script], env=self.env, stderr=subprocess.DEVNULL) as child:
            time.sleep(3.0 if n_clients == 0 else 10.0)
            server = children(child.pid, b"--group")[0]
            before = processor(server)
            time.sleep(seconds)
            used = processor(server) - before
            child.wait()
        return used / seconds


def middle(values):
    return statistics.median(values)


def spread(values, form=".2f"):
    return f"{middle(values):{form}} ({min(values):{form}} to {max(values):{form}})"


def name(n):
    return f"{n >> 20} MiB" if n >= 1 << 20 else f"{n >> 10} KiB" if n >= 1024 else "1 value"


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--clients", type=int, default=64)
    p.add_argument("--seconds", type=int, default=10)
    o = p.parse_args()
    bin_dir = ROOT / "out" / "bench-bin"
    harness.ENGINES["served_puts"] = ("bench/engines/served_puts.c", ["-std=c99", "-O2", "-lnetcdf"])
    gcc = harness.build(bin_dir)
    libs = harness.libraries(bin_dir)
    if "zonda" not in libs:
        return 1
    started, host = datetime.datetime.now(datetime.timezone.utc), harness.machine()
    rows = []
    print(harness.heading(host, gcc, libs, started, f"{o.rounds} rounds"), end="\n\n")
    with tempfile.TemporaryDirectory(prefix="zonda-servers-", dir=os.environ.get("BENCH_MEMORY", "/dev/shm")) as folder:
        bench = Bench(bin_dir, libs["zonda"]["env"], Path(folder))
        print("| put of | memcpy, us | served, us | served / memcpy | its processor time, us | direct, us | thread, us | helper, us |", "|---" * 8 + "|", sep="\n")
        for size, (calls, burst) in SIZES.items():
            lines = {way: [] for way in WAYS}
            for number in range(o.rounds):
                for way in harness.in_turn(WAYS, number):
                    lines[way].append(bench.engine(["--bytes", size, "--calls", calls, "--burst", burst], way))
                    rows.append({"size": size, "way": way, "round": number, **lines[way][-1]})
            copy = middle([line["params"]["memcpy"] for line in lines["served"]]) * 1e6
            put = {way: middle([line["params"]["put"] for line in lines[way]]) * 1e6 for way in WAYS}
            ratio = [line["params"]["ratio"][1] for line in lines["served"]]
            cpu = middle([line["params"]["processor"] / line["calls"] for line in lines["served"]]) * 1e6
            print(f"| {name(size)} | {copy:.3g} | {put['served']:.3g} | {spread(ratio)} | {cpu:.3g} | {put['direct']:.3g} | {put['thread']:.3g} | {put['helper']:.3g} |", flush=True)
        print()
        share = []
        for number in range(o.rounds):
            line, server = bench.served_cpu(["--bytes", 4 << 20, "--burst", 8, "--calls", 80, "--busy", 0.4])
            share.append({"wall": line["params"]["puts"] / line["params"]["loop"], "processor": line["params"]["processor"] / line["params"]["loop"], "server": server / line["params"]["loop"]})
            rows.append({"share": share[-1], "round": number, **line})
        print(f"32 MiB after each 0.4 s of computing: output is {spread([100 * s['wall'] for s in share])} % of the time, its processor time {spread([100 * s['processor'] for s in share])} %; the server takes {spread([100 * s['server'] for s in share])} % of a core")
        for clients in (0, 1, o.clients):
            used = 100 * bench.idle(clients, o.seconds)
            rows.append({"idle": clients, "percent": used})
            print(f"idle for {o.seconds} s with {clients} clients connected: {used:.3f} % of a core", flush=True)
    print(f"record: {harness.keep(host, started, '-servers', {'libraries': harness.identity(libs)}, rows)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""What the trace costs: switched off, against a library without it; and recording, for each event.

    NETCDF_LIBS="before=/opt/zonda-without-trace/lib" bench/trace.py [--rounds N]

The engines run on every library in turns; of each workload the least time counts, for noise only adds.
Reports, and decides nothing. Only the standard library is used (Python >= 3.11).
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import harness
from harness import REFERENCE, ROOT

# Small calls, where one more instruction shows most; conversion of whole arrays; chunks and filters are
# larger by far than what is added to them.
ENGINES = [
    ("small", ["--set", "put", "--mb", "8"]),
    ("small", ["--set", "get", "--mb", "8"]),
]


def counted(zonda: Path, trace: Path) -> int:
    """Events of a recording."""
    out = subprocess.run([zonda, "trace", "--json", trace], capture_output=True, text=True, check=True)
    return sum(process["events"] for process in json.loads(out.stdout)["processes"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    bin_dir = ROOT / "out" / "bench"
    harness.build(bin_dir)
    libs = harness.libraries(bin_dir)
    if "zonda" not in libs:
        sys.exit("build first")
    zonda = Path(os.environ.get("ZONDA_LIB", ROOT / "dist" / "lib")).parent / "bin" / "zonda"
    others = [name for name in libs if name not in (REFERENCE, "zonda")]
    shm = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=shm if shm.is_dir() else None) as folder:
        file, trace = Path(folder) / "data.nc", Path(folder) / "out.trace"
        harness.engine(bin_dir, "small", ["--set", "make", "--mb", "8", "--file", file], libs[REFERENCE]["env"])
        least: dict[tuple[str, str], float] = {}
        calls: dict[str, int] = {}
        spent, events = 0.0, 0
        for turn in range(options.rounds):
            kinds = ["off", *others]
            for kind in kinds[turn % len(kinds):] + kinds[: turn % len(kinds)]:
                env = libs["zonda" if kind == "off" else kind]["env"]
                for name, args in ENGINES:
                    for line in harness.engine(bin_dir, name, [*args, "--file", file], env):
                        key = (kind, line["workload"])
                        least[key] = min(least.get(key, float("inf")), line["seconds"])
                        calls[line["workload"]] = line["calls"]
        for name, args in ENGINES:
            trace.unlink(missing_ok=True)
            env = {**libs["zonda"]["env"], "ZONDA_TRACE": str(trace)}
            lines = harness.engine(bin_dir, name, [*args, "--file", file], env)
            spent += sum(line["seconds"] - least["off", line["workload"]] for line in lines)
            events += counted(zonda, trace)
        print(f"{'workload':28} {'off':>10} " + " ".join(f"{name:>10} {'ratio':>7}" for name in others))
        sums = {kind: 0.0 for kind in ["off", *others]}
        for workload, n in calls.items():
            row = f"{workload:28} {1e9 * least['off', workload] / n:7.1f} ns "
            for name in others:
                ratio = least["off", workload] / least[name, workload]
                row += f" {1e9 * least[name, workload] / n:7.1f} ns {ratio:7.3f}"
            for kind in sums:
                sums[kind] += least[kind, workload] / n
            print(row)
        for name in others:
            print(f"tracing off costs {100 * (sums['off'] / sums[name] - 1):+.1f} % of {name}, over the mean call of each workload")
        print(f"recording: {events} events, {1e9 * spent / events:.1f} ns each with all that was done for them")


main()

#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""The ways that the library takes do not depend on how busy the machine is.

    tests/runtime/ways.py [--quick] [--long] [--only REGEX] [--show]

Each way of `ways.c` runs alone and beside four busy loops, on a file as it is and on a slow device (the layer `throttle`).
Compared are the layers (`nc_zonda_inq_stack`), what kinds of threads were made (`ways.c` counts where they are made), and from the
trace what was read of the device, in which sizes: what is read ahead shows in them. Who takes a chunk or a block first, or how long anything
takes, is not compared.

Beside the loops each runs twice, with --quick once, with --long twenty times.
On the slow device a thread of the cache is wanted, on the file as it is none: otherwise there is nothing to compare.
"""
import json
import os
import re
import subprocess
import sys
from collections import Counter
from contextlib import contextmanager
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(1, str(HERE.parent))
import rig  # noqa: E402

WAYS = ("stream", "stream-read", "records", "records-read", "deflate", "deflate-read", "deflate-random", "behind")
DEVICES = {"file": None, "slow": "cache,throttle:2G:300us,file"}


def run(command, **env):
    return rig.must(command, rig.environment(rig.LIBDIR, without=["OMP_"], **env))


@contextmanager
def loops(n):
    """So many processes that always want a processor."""
    busy = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(n)]
    try:
        yield
    finally:
        for loop in busy:
            loop.kill()
            loop.wait()


def way(program, what, stack, scratch):
    """What was decided, as text that can be compared."""
    trace, events, file = scratch / "trace", scratch / "trace.json", scratch / (what.split("-")[0] + ".nc")
    trace.unlink(missing_ok=True)
    # Two threads wherever it runs: the number is the machine's, the ways are not.
    said = run([program, what, file], ZONDA_TRACE=trace, ZONDA_THREADS=2, ZONDA_IO=stack)
    # Of a file that was changed seconds ago the first bytes are read again: stamps may not tell of the next change.
    os.utime(file, (1e9, 1e9))
    run([rig.ZONDA, "trace", "--chrome", events, trace])
    found = json.loads(events.read_text())
    found = found["traceEvents"] if isinstance(found, dict) else found
    device = stack.split(",")[1] if stack else "file"
    reads = Counter(e["args"].get("bytes", 0) for e in found if e["name"] in (device + " read", device + " read range"))
    threads = sorted({re.sub(r"-?\d+$", "", name) for name in re.findall("^thread (.*)$", said, re.M)})
    result = {"stacks": re.findall("^stack (.*)$", said, re.M), "threads": threads}
    if "zonda-io" in threads:
        # The thread and those who read come to the blocks in turns.
        result["longest read"] = max(reads, default=0)
    else:
        result["reads"] = sorted(reads.items())
        result["writes"] = sum(e["name"] in (device + " write", device + " write range") for e in found)
    return result


def main():
    parser = rig.parser(__doc__)
    parser.add_argument("--show", action="store_true", help="print the ways")
    options = rig.arguments(parser)
    counts = rig.Counts()
    with rig.scratch() as scratch:
        program = rig.compile_c(scratch / "ways", HERE / "ways.c", libraries=["-ldl"])
        chosen = [(what, device) for what in WAYS for device in DEVICES if options.wants("%s %s" % (what, device))]
        alone = {key: way(program, key[0], DEVICES[key[1]], scratch) for key in chosen}
        with loops(4):
            for key in chosen:
                for _ in range(options.by(1, 2, 20)):
                    busy, quiet = way(program, key[0], DEVICES[key[1]], scratch), alone[key]
                    counts.check("%s %s" % key, "; ".join("%s alone %s, busy %s" % (name, quiet.get(name), busy.get(name))
                                                           for name in sorted(quiet.keys() | busy.keys()) if quiet.get(name) != busy.get(name)))
        if options.show:
            for key in chosen:
                print(*key, json.dumps(alone[key]))
        for what in ("stream-read", "records"):
            found = [alone[key]["threads"] for key in chosen if key[0] == what]
            if found and found != [[], ["zonda-io"]]:
                counts.fail(what, "threads %s; a thread of the cache is wanted on the slow device only" % found)
    return counts


if __name__ == "__main__":
    rig.main(main)

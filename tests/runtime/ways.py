#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""The ways that the library takes do not depend on how busy the machine is.

    tests/runtime/ways.py [--long] [--only REGEX]

Each way of `ways.c` runs alone and beside four busy loops, on a file as it is and on a slow device (the layer `throttle`).
Compared are the layers (`nc_zonda_inq_stack`), what kinds of threads were made (`ways.c` counts where they are made), and from the
trace what was read of the device, in which sizes: what is read ahead shows in them. Who takes a chunk or a block first, or how long anything
takes, is not compared.

On the slow device a thread of the cache is wanted, on the file as it is none: otherwise there is nothing to compare.
"""
import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from contextlib import contextmanager
from pathlib import Path

HERE = Path(__file__).resolve().parent
LIBRARY = Path(os.environ.get("ZONDA_LIBDIR", HERE.parent.parent / "dist/lib")).resolve()
WAYS = ("stream", "stream-read", "records", "records-read", "deflate", "deflate-read", "deflate-random", "behind")
DEVICES = {"file": None, "slow": "cache,throttle:2G:300us,file"}
# Only hangs are bounded.
SECONDS = 300


def environment(**more):
    env = {k: v for k, v in os.environ.items() if not k.startswith(("ZONDA_", "LD_", "OMP_", "NETCDF_"))}
    return env | {k: str(v) for k, v in more.items()}


def run(command, **env):
    done = subprocess.run([str(word) for word in command], env=environment(**env), capture_output=True, text=True, timeout=SECONDS, check=False)
    if done.returncode != 0:
        raise SystemExit("%s ends with %d: %s" % (command[0], done.returncode, done.stderr[-400:]))
    return done.stdout


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
    said = run([program, what, file], LD_LIBRARY_PATH=LIBRARY, ZONDA_TRACE=trace, ZONDA_THREADS=2, **({"ZONDA_IO": stack} if stack else {}))
    # Of a file that was changed seconds ago the first bytes are read again: stamps may not tell of the next change.
    os.utime(file, (1e9, 1e9))
    run([LIBRARY.parent / "bin/zonda", "trace", "--chrome", events, trace])
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
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--long", action="store_true", help="twenty runs of each beside the loops, not two")
    parser.add_argument("--only", default="", metavar="REGEX")
    parser.add_argument("--show", action="store_true", help="print the ways")
    options = parser.parse_args()
    passed = failed = 0
    with tempfile.TemporaryDirectory(dir=os.environ.get("ZONDA_SCRATCH")) as scratch:
        scratch = Path(scratch)
        program = scratch / "ways"
        run(["gcc", "-std=gnu11", "-O1", "-Wall", "-I", LIBRARY.parent / "include", HERE / "ways.c", "-L", LIBRARY, "-l:libnetcdf.so.19", "-ldl", "-o", program])
        chosen = [(what, device) for what in WAYS for device in DEVICES if re.search(options.only, "%s %s" % (what, device))]
        alone = {key: way(program, key[0], DEVICES[key[1]], scratch) for key in chosen}
        with loops(4):
            for key in chosen:
                for _ in range(20 if options.long else 2):
                    busy = way(program, key[0], DEVICES[key[1]], scratch)
                    if busy == alone[key]:
                        passed += 1
                        continue
                    failed += 1
                    for name in sorted(alone[key].keys() | busy.keys()):
                        if alone[key].get(name) != busy.get(name):
                            print("FAIL %s %s: %s alone %s, busy %s" % (*key, name, alone[key].get(name), busy.get(name)), flush=True)
        if options.show:
            for key in chosen:
                print(*key, json.dumps(alone[key]))
        for what in ("stream-read", "records"):
            found = [alone[key]["threads"] for key in chosen if key[0] == what]
            if found and found != [[], ["zonda-io"]]:
                failed += 1
                print("FAIL %s: threads %s; a thread of the cache is wanted on the slow device only" % (what, found))
    print("%d passed, %d failed" % (passed, failed))
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Lets the n-th sync of each tool that writes a file fail, for every n: the tool must say so by its exit status,
and leave no file under the name that it was asked for, unless it is complete and every sync of it was good."""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile

import lab

CDL = "netcdf a { dimensions: t = UNLIMITED; x = 500; variables: double v(t, x); int w(x); data: w = 1, 2, 3; v = 1, 2; }\n"
TOOLS = {
    "ncgen": "ncgen -o {to} a.cdl",
    "ncgen -4": "ncgen -4 -o {to} a.cdl",
    "nccopy": "nccopy a3.nc {to}",
    "nccopy -4": "nccopy -4 -d1 a3.nc {to}",
    "nccopy -3": "nccopy -3 a4.nc {to}",
    "zonda copy": "zonda copy a3.nc {to}",
    "zonda copy 4": "zonda copy a4.nc {to}",
}


def run(command, folder, **settings):
    bin_folder = os.path.dirname(lab.COMMAND)
    words = command.split()
    env = lab.environment(lab.LIBDIR, **settings)
    return subprocess.run(
        [os.path.join(bin_folder, words[0]), *words[1:]], cwd=folder, env=env, capture_output=True, text=True, check=False
    )


def fails_at(folder, tool, level, n):
    """Whether there was such a sync, and what was wrong."""
    out = os.path.join(folder, "out")
    shutil.rmtree(out, ignore_errors=True)
    os.mkdir(out)
    log = os.path.join(folder, "log")
    if os.path.exists(log):
        os.unlink(log)
    done = run(
        TOOLS[tool].format(to="out/x.nc"),
        folder,
        ZONDA_SYNC=level,
        CRASH_FOLDER=out,
        CRASH_LOG=log,
        CRASH_FAIL=f"{n}:lost",
        LD_PRELOAD=f"{lab.BIN}/log_shim.so",
    )
    with open(log, encoding="utf-8") as f:
        failed = f.read()
    left = os.listdir(out)
    if not failed:
        return False, None if done.returncode == 0 else f"without a fault: {done.stderr}"
    if done.returncode == 0:
        return True, "exit status 0 though a sync failed"
    if not done.stderr.strip():
        return True, "no message"
    # A folder that cannot be synced has the complete file, and the status says that it may go.
    if left and level != "full":
        return True, f"it leaves {left}"
    return True, None


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--long", action="store_true")
    parser.add_argument("--seed")
    parser.add_argument("--only", default="")
    only = parser.parse_args().only
    bad, n_tried, n_failed = [], 0, 0
    folder = os.path.realpath(tempfile.mkdtemp(dir=os.environ.get("ZONDA_SCRATCH", "/dev/shm")))
    with open(os.path.join(folder, "a.cdl"), "w", encoding="utf-8") as f:
        f.write(CDL)
    run("ncgen -o a3.nc a.cdl", folder)
    run("ncgen -4 -o a4.nc a.cdl", folder)
    chosen = [tool for tool in TOOLS if only in f"tools/{tool}"]
    for tool in chosen:
        wrong = []
        for level in ("data", "full"):
            n = 0
            while True:
                n += 1
                met, why = fails_at(folder, tool, level, n)
                n_tried += met
                if why:
                    wrong.append(f"FAIL {tool}, ZONDA_SYNC={level}, sync {n}: {why}")
                if not met:
                    break
            if n == 1:
                wrong.append(f"FAIL {tool}, ZONDA_SYNC={level}: it makes no sync")
        bad += wrong
        n_failed += bool(wrong)
    shutil.rmtree(folder)
    print("\n".join(bad + [f"crash: tools: {n_tried} syncs of {len(chosen)} tools made to fail"]))
    print(f"{len(chosen) - n_failed} passed, {n_failed} failed")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())

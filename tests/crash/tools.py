# SPDX-License-Identifier: MIT OR Apache-2.0
"""Lets the n-th sync of each tool that writes a file fail, for every n: the tool must say so by its exit status,
and leave no file under the name that it was asked for, unless it is complete and every sync of it was good."""

import os
import shutil

import lab
from lab import rig

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


def call(command, folder, **settings):
    tool, *words = command.split()
    return rig.run([rig.BIN / tool, *words], rig.environment(rig.LIBDIR, **settings), cwd=folder)


def fails_at(folder, tool, level, n):
    """Whether there was such a sync, and what was wrong."""
    out = os.path.join(folder, "out")
    shutil.rmtree(out, ignore_errors=True)
    os.mkdir(out)
    log = os.path.join(folder, "log")
    if os.path.exists(log):
        os.unlink(log)
    done = call(
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


def run(options, counts):
    n_tried = 0
    chosen = [tool for tool in TOOLS if options.wants(f"tools/{tool}")]
    with rig.scratch(in_memory=True) as folder:
        folder = str(folder)
        with open(os.path.join(folder, "a.cdl"), "w", encoding="utf-8") as f:
            f.write(CDL)
        call("ncgen -o a3.nc a.cdl", folder)
        call("ncgen -4 -o a4.nc a.cdl", folder)
        for tool in chosen:
            wrong = []
            for level in ("data", "full"):
                n = 0
                while True:
                    n += 1
                    met, why = fails_at(folder, tool, level, n)
                    n_tried += met
                    if why:
                        wrong.append(f"ZONDA_SYNC={level}, sync {n}: {why}")
                    if not met:
                        break
                if n == 1:
                    wrong.append(f"ZONDA_SYNC={level}: it makes no sync")
            counts.check(tool, "\n    ".join(wrong))
    print(f"crash: tools: {n_tried} syncs of {len(chosen)} tools made to fail", flush=True)

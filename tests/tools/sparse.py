#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Files that say much and hold little: arrays of 900 million elements of which a few were written, or none. What a
tool does is bounded by what the file holds, not by what it says: each ends soon, and what was never written is not
written by a copy, as h5py sees it.

    tests/tools/sparse.py [--quick] [NAME...]      --quick is the same as `few strewn-earliest`

tests/rig/places.py has the settings.
"""

import os
import re
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(1, str(Path(__file__).resolve().parents[1]))
import rig  # noqa: E402

rig.needs("h5py", "numpy")
import h5py  # noqa: E402

# Far more than any of it takes (a second or so), on whatever machine.
SECONDS = 60
N = 900_000_000
SIDE = 30_000
FEW = [0, 3, N // 2, N - 1]
FEW_2D = [(0, 0), (0, SIDE - 1), (17, 4), (SIDE // 2, SIDE // 3), (SIDE - 1, SIDE - 1)]
# Regularly strewn, so that there is something in every part.
STREWN = range(0, N, N // 5000)
STREWN_2D = [(i * 150, (i * 7919) % SIDE) for i in range(200)]


def cases():
    """Name, version of the library's format, places that are written, and the dataset."""
    one, two = {"shape": (N,), "chunks": (1,)}, {"shape": (SIDE, SIDE), "chunks": (1, 1)}
    for libver in ["earliest", "latest"]:
        yield f"none-{libver}", libver, [], {**one, "dtype": "i1"}
        yield f"few-{libver}", libver, FEW, {**one, "dtype": "i1"}
        yield f"strewn-{libver}", libver, STREWN, {**one, "dtype": "i1"}
        yield f"square-{libver}", libver, FEW_2D, {**two, "dtype": "f8", "fillvalue": -3.0}
        yield f"strewn-square-{libver}", libver, STREWN_2D, {**two, "dtype": "i2"}
        yield f"deflated-{libver}", libver, FEW, {**one, "dtype": "i1", "compression": 4, "shuffle": True}
        yield f"unlimited-{libver}", libver, FEW, {**one, "dtype": "i4", "maxshape": (None,)}
        yield f"filled-{libver}", libver, FEW, {**one, "dtype": "i1", "fillvalue": 7}
        yield f"never-filled-{libver}", libver, FEW, {**one, "dtype": "i1", "fill_time": "never"}
        yield f"run-{libver}", libver, [], {"shape": (N,), "dtype": "f8"}
        yield f"run-filled-{libver}", libver, [], {"shape": (N,), "dtype": "f8", "fillvalue": 2.5}
        yield f"run-never-{libver}", libver, [], {"shape": (N,), "dtype": "f8", "fill_time": "never"}
        yield f"large-chunks-{libver}", libver, FEW, {"shape": (N,), "chunks": (1000,), "dtype": "i4"}
    yield "both-unlimited", "latest", FEW_2D, {**two, "dtype": "i1", "maxshape": (None, None)}


def make(path, libver, places, dataset):
    with h5py.File(path, "w", libver=libver) as file:
        made = file.create_dataset("v", **dataset)
        for number, place in enumerate(places):
            made[place] = 1 + number % 100


def values(path, places):
    with h5py.File(path) as file:
        dataset = file["v"]
        fill = None if dataset.fillvalue is None else float(dataset.fillvalue)
        return [float(dataset[place]) for place in places], float(dataset[(1,) * dataset.ndim]), fill


def run(tally, name, args, statuses=(0,)):
    begin = time.monotonic()
    try:
        # A copy that writes what was never written ends there.
        done = rig.run([rig.ZONDA, *args], seconds=SECONDS, preexec_fn=rig.bounds(file=256 << 20))
    except subprocess.TimeoutExpired:
        tally.fail(name, f"does not end in {SECONDS} s")
        return None
    took = time.monotonic() - begin
    what = None if done.returncode in statuses else f"exit status {done.returncode}: {done.stderr[-300:]}"
    if tally.check(name, what) and took > 10:
        print(f"slow    {name}: {took:.1f} s", flush=True)
    return None if what else done


def main():
    parser = rig.parser(__doc__, only=None)
    parser.add_argument("names", nargs="*")
    options, tally = rig.arguments(parser), rig.Counts()
    wanted = options.names or options.by(["few", "strewn-earliest"], None, None)
    with rig.scratch() as folder:
        for case, libver, places, dataset in cases():
            if wanted and not any(re.search(part, case) for part in wanted):
                continue
            path, other, copy = folder / "a.h5", folder / "b.h5", folder / "c.h5"
            make(path, libver, places, dataset)
            # One value is another, and one more is there.
            make(other, libver, places, dataset)
            with h5py.File(other, "r+") as file:
                at = (5,) * len(dataset["shape"])
                if "chunks" in dataset:
                    file["v"][at] = 9
            # Arrays of places are as long as what they could hold, and mostly holes.
            limit = min(os.path.getsize(path), 200 * len(places) + 8000)
            run(tally, f"{case}: info", ["info", path])
            run(tally, f"{case}: check", ["check", path])
            run(tally, f"{case}: dump -h", ["dump", "-h", path])
            run(tally, f"{case}: view", ["view", path])
            run(tally, f"{case}: diff of itself", ["diff", path, path])
            done = run(tally, f"{case}: diff", ["diff", path, other], (1,) if "chunks" in dataset else (0,))
            if done and "chunks" in dataset and "1 of " not in done.stdout:
                tally.fail(f"{case}: diff", f"not one difference: {done.stdout[:300]}")
            asked, _, fill = values(path, places)
            dims = ",".join(f"phony_dim_{d}/{n}" for d, n in enumerate([300, 7][: len(dataset["shape"])]))
            copies = {
                "copy": (["copy", "-q"], limit),
                "recover": (["recover"], limit),
                "copy deflated": (["copy", "-q", "-d", "1"], 2 * limit),
            }
            if "chunks" in dataset:
                # In chunks of up to 2,100 elements each of those that has something.
                copies["copy in other chunks"] = (["copy", "-q", "-c", dims], 2 * limit + 9 * 2100 * len(places))
            for name, (words, most) in copies.items():
                if name == "copy deflated" and "chunks" not in dataset:
                    # Of one run in the source the target makes chunks as it likes.
                    most += 1 << 20
                copy.unlink(missing_ok=True)
                ends = [copy, path] if words[0] == "recover" else [path, copy]
                args = [*words, "--to", *ends] if words[0] == "recover" else [*words, *ends]
                if run(tally, f"{case}: {name}", args) is None:
                    continue
                found, untouched, _ = values(copy, places)
                what = None
                if found != asked:
                    what = f"values {found[:5]} of {asked[:5]}"
                elif fill is not None and untouched != fill and (1,) * len(dataset["shape"]) not in places:
                    what = f"what was never written is {untouched} and was {fill}"
                elif os.path.getsize(copy) > most + (64 << 10):
                    what = f"{os.path.getsize(copy)} bytes, and {most} are plenty"
                tally.check(f"{case}: {name}, as h5py sees it", what)
                run(tally, f"{case}: diff of the {name}", ["diff", path, copy])
            for path in (path, other, copy):
                path.unlink(missing_ok=True)
    return tally


if __name__ == "__main__":
    rig.main(main)

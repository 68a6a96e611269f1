#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Variables and attributes of types that netCDF cannot represent: what copies them says so, and nothing is left out in silence.

    tests/tools/words.py [--quick] [--long]      which are all the same

Needs h5py, which makes the files. tests/rig/places.py has the settings.
"""
import sys
from pathlib import Path

sys.path.insert(1, str(Path(__file__).resolve().parents[1]))
import rig  # noqa: E402

rig.needs("h5py", "numpy")
import h5py  # noqa: E402
import numpy as np  # noqa: E402


def run(*command):
    done = rig.run(command, seconds=60)
    return done.returncode, done.stdout + done.stderr


def make(path):
    with h5py.File(path, "w") as file:
        file["a"] = np.arange(3)
        file["reference"] = np.array([file["a"].ref], dtype=h5py.ref_dtype)
        group = file.create_group("g")
        group["region"] = np.array([file["a"].regionref[0:2]], dtype=h5py.regionref_dtype)
        file["a"].attrs["to"] = file["a"].ref
        file.attrs["of_file"] = file["a"].ref


def main():
    rig.arguments(rig.parser(__doc__, only=None))
    counts = rig.Counts()

    def check(what, ok, said):
        counts.check(what, None if ok else "%s" % (said,))

    with rig.scratch() as scratch:
        source, target = scratch / "words.nc", scratch / "copy.nc"
        make(source)
        zonda, nccopy = rig.ZONDA, rig.BIN / "nccopy"
        missing = ("/reference", "/g/region")

        status, said = run(zonda, "copy", source, target)
        check("copy", status != 0 and not target.exists(), (status, said))
        check("copy names the variable, and what to do", any(path in said for path in missing) and "-x" in said, said)
        status, said = run(zonda, "copy", "-x", "reference", source, target)
        check("copy without one of two", status != 0 and "/g/region" in said and not target.exists(), (status, said))
        status, said = run(zonda, "copy", "-x", "reference", "-x", "region", source, target)
        check("copy without both", status == 0 and target.exists(), (status, said))
        check("attributes are told of", "of_file" in said and "attribute to;" in said, said)
        target.unlink(missing_ok=True)
        status, said = run(zonda, "copy", "-v", "a", source, target)
        check("copy of another variable", status == 0 and target.exists() and "region" not in said, (status, said))
        target.unlink(missing_ok=True)
        status, said = run(zonda, "copy", "-g", "g", source, target)
        check("copy of the group", status != 0 and "/g/region" in said and "/reference" not in said, (status, said))
        status, said = run(zonda, "copy", "-x", "nothing", source, target)
        check("a name that nothing has", status != 0 and "there is no variable nothing" in said, (status, said))

        status, said = run(nccopy, source, target)
        check("nccopy leaves them out, and says so", status == 0 and all(path in said for path in missing), (status, said))
        status, said = run(zonda, "info", source)
        check("info", status == 0 and all(path in said for path in missing), (status, said))
        status, said = run(zonda, "check", source)
        check("check", status == 3 and all(path in said for path in missing), (status, said))
    return counts


if __name__ == "__main__":
    rig.main(main)

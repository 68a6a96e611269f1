#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Variables and attributes of types that netCDF has no words for: what copies them says so, and nothing is left out in silence.

    out/venv/bin/python tests/tools/words.py

Needs h5py, which makes the files. The last line is `N passed, N failed`.
"""
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BIN = ROOT / "dist/bin"
passed = failed = 0


def check(what, ok, said):
    global passed, failed
    passed, failed = passed + bool(ok), failed + (not ok)
    if not ok:
        print(f"FAILED  {what}: {said}")


def run(*command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=60, check=False)
    return done.returncode, done.stdout + done.stderr


def make(path):
    import h5py
    import numpy as np
    with h5py.File(path, "w") as file:
        file["a"] = np.arange(3)
        file["reference"] = np.array([file["a"].ref], dtype=h5py.ref_dtype)
        group = file.create_group("g")
        group["region"] = np.array([file["a"].regionref[0:2]], dtype=h5py.regionref_dtype)
        file["a"].attrs["to"] = file["a"].ref
        file.attrs["of_file"] = file["a"].ref


def main():
    try:
        import h5py  # noqa: F401
    except ImportError:
        print("skip: there is no h5py\n0 passed, 0 failed")
        return 0
    with tempfile.TemporaryDirectory() as scratch:
        source, target = Path(scratch) / "words.nc", Path(scratch) / "copy.nc"
        make(source)
        zonda, nccopy = BIN / "zonda", BIN / "nccopy"
        missing = ("/reference", "/g/region")

        status, said = run(zonda, "copy", source, target)
        check("copy", status != 0 and not target.exists(), (status, said))
        check("copy names the variable, and what to do", any(path in said for path in missing) and "-x" in said, said)
        status, said = run(zonda, "copy", "-x", "reference", source, target)
        check("copy without one of two", status != 0 and "/g/region" in said and not target.exists(), (status, said))
        status, said = run(zonda, "copy", "-x", "reference", "-x", "region", source, target)
        check("copy without both", status == 0 and target.exists(), (status, said))
        check("attributes are told of", "of_file" in said and "attribute to " in said, said)
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
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Makes the pictures of docs/guides/pictures.md by the commands that the page shows.

    scripts/pictures.py            writes them into docs/guides/pictures
    scripts/pictures.py --check    says whether they are as the commands make them: exit 1 where not
"""
import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "guides" / "pictures.md"
FOLDER = PAGE.with_suffix("")
ZONDA = Path(os.environ.get("ZONDA_COMMAND") or Path(os.environ.get("ZONDA_PREFIX") or ROOT / "dist") / "bin" / "zonda")


def made(scratch):
    """Name and bytes of each picture."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("ZONDA_")}
    for line in re.findall(r"^\$ zonda (view .* -o .*)$", PAGE.read_text(), re.M):
        words = shlex.split(line)
        name = words[words.index("-o") + 1]
        words[1] = str(FOLDER / words[1])
        subprocess.run([ZONDA, *words], env=env, cwd=scratch, check=True)
        yield name, (Path(scratch) / name).read_bytes()


def main():
    with tempfile.TemporaryDirectory() as scratch:
        pictures = dict(made(scratch))
    shown = set(re.findall(r"\]\(pictures/([^)]+)\)", PAGE.read_text()))
    if shown != set(pictures):
        sys.exit(f"{PAGE.name} shows {sorted(shown)} and makes {sorted(pictures)}")
    if "--check" not in sys.argv[1:]:
        for name, content in pictures.items():
            (FOLDER / name).write_bytes(content)
        return
    stale = [name for name, content in pictures.items() if not (FOLDER / name).exists() or (FOLDER / name).read_bytes() != content]
    if stale:
        sys.exit(f"{', '.join(stale)}: not as the command makes them; run scripts/pictures.py")


main()

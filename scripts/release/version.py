#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""The version of Zonda: tells it, sets it, and checks that all places say the same.

    version.py              prints it
    version.py --set X.Y.Z  writes it into Cargo.toml (the workspace and its crates in the table of dependencies), Cargo.lock,
                            the recipe for conda, names of files in docs/install.md, and the expected output of tests
    version.py --check      exit 1 if a place says something else

The workspace's Cargo.toml has the version. The others repeat it, since published crates find each other by it, and since
tests show it as users see it.
"""
import argparse
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NUMBER = r"\d+\.\d+\.\d+(?:-[0-9A-Za-z.]+)?"
OWN = re.compile(rf'^version = "({NUMBER})"$', re.M)
# Each place: a file, and what stands before and after the version in it. All that match are meant.
PLACES = (
    ("Cargo.toml", r'^zonda[\w-]* = \{ version = "', '"'),
    ("Cargo.lock", r'^name = "zonda(?:-[\w-]+)?"\nversion = "', '"'),
    ("fuzz/Cargo.lock", r'^name = "zonda(?:-(?!fuzz)[\w-]+)?"\nversion = "', '"'),
    ("include/zonda.h", r'Version of Zonda, such as "', '"'),
    ("scripts/release/conda/recipe.yaml", r'^  version: "', '"'),
    ("docs/install.md", "zonda-", "-(?:cp310|linux)"),
    ("tests/cli/nccopy/*.txt", "of Zonda ", r" \$$"),
    ("tests/cli/copy/fixed.txt", "zonda=", ","),
)


def own():
    """The version that the workspace has."""
    text = (ROOT / "Cargo.toml").read_text()
    return OWN.search(text, text.index("[workspace.package]")).group(1)


def pattern(before, after):
    return re.compile(f"({before})({NUMBER})(?={after})", re.M)


def files(glob):
    found = sorted(ROOT.glob(glob))
    if not found:
        raise SystemExit(f"version.py: there is no {glob}")
    return found


def check():
    """The places that say something else, and those that do not say it at all."""
    version, wrong = own(), []
    for glob, before, after in PLACES:
        count = 0
        for path in files(glob):
            for match in pattern(before, after).finditer(path.read_text()):
                count += 1
                if match.group(2) != version:
                    wrong.append(f"{path.relative_to(ROOT)} says {match.group(2)} after {match.group(1)!r}, and Cargo.toml {version}")
        if count == 0:
            wrong.append(f"{glob} does not have the version; has its place in version.py gone?")
    return wrong


def change(version):
    text = (ROOT / "Cargo.toml").read_text()
    start = text.index("[workspace.package]")
    text = text[:start] + OWN.sub(f'version = "{version}"', text[start:], count=1)
    (ROOT / "Cargo.toml").write_text(text)
    for glob, before, after in PLACES:
        for path in files(glob):
            text = path.read_text()
            new = pattern(before, after).sub(lambda match: match.group(1) + version, text)
            if new != text:
                path.write_text(new)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--set", metavar="X.Y.Z")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    if options.set:
        if not re.fullmatch(NUMBER, options.set):
            parser.error(f"{options.set} is not a version such as 1.2.3")
        change(options.set)
    if options.check or options.set:
        wrong = check()
        print("\n".join(wrong), end="\n" if wrong else "")
        return 1 if wrong else 0
    print(own())
    return 0


if __name__ == "__main__":
    sys.exit(main())

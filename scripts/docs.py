#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Finds what the documents name and the tree does not have.

A reader who follows a link or types a command of a table must arrive. In each tracked *.md (but the
history in CHANGELOG.md, the texts in messages.md and in commands.md, whose links alone count):

    links         the file is there, and for #part a heading of that name
    `folder/...`  is in the tree, seen from the root, from the document, or in one of the crates
    `make X`      is a target of the Makefile
    `scripts/test.sh X`   is a stage
    `zonda X`     is a command
    `name.rs`, `folder/name.rs`   is the end of a path, somewhere
    `Name`, `Name::name`   stand in some source
    `ZONDA_X`, `nc_zonda_x`   stand in some source

    scripts/docs.py    lists what is missing: exit 1
"""
import functools
import re
import subprocess
import sys
import unicodedata
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LINK = re.compile(r"!?\[(?:[^\]\[]|\[[^\]]*\])*\]\(<?([^)\s>]+)>?[^)]*\)")
CODE = re.compile(r"`([^`\n]+)`")
FENCE = re.compile(r"^(```|~~~)")
# What is made by building and measuring is not in the tree.
FOLDERS = "abi|bench|crates|docs|examples|fuzz|include|python|scripts|tests"
PATH = re.compile(rf"(?<![\w./-])((?:{FOLDERS})/[\w./*-]+)")

OWN = r"\b(ZONDA_[A-Z_]+[A-Z]|nc_zonda_[a-z_]+[a-z])\b"
FILE = r"(?<![\w./<>-])((?:[\w-]+/)*[a-z0-9_]+\.rs)\b"
# Names of Rust and Python; those of netCDF-C and HDF5 have capitals in front (`NC_...`, `H5...`).
TYPE = re.compile(r"[A-Z][a-z]\w*(?:::\w+)*")
# Links that only rustdoc resolves; the documents of crates are read by it.
SHORT = re.compile(r"\[(`[^`\]]+`)\](?![(:])")


def lines(path):
    """The lines of a document, each with whether it is text that is shown as it stands (an example)."""
    fenced = False
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if FENCE.match(line.strip()):
            fenced = not fenced
            continue
        yield number, line, fenced or line.startswith("    ")


@functools.cache
def headings(path):
    """The names under which the headings of a document are reached, as GitHub makes them."""
    found = set()
    for _, line, example in lines(path):
        if example or not re.match(r"#{1,6} ", line):
            continue
        text = re.sub(r"\]\([^)]*\)", "", line.lstrip("#").strip()).lower()
        kept = "".join(c for c in text if c in "-_ " or unicodedata.category(c)[0] in "LN")
        name = kept.replace(" ", "-")
        again = 0
        while (name if not again else f"{name}-{again}") in found:
            again += 1
        found.add(name if not again else f"{name}-{again}")
    return found


def linked(document, target):
    """What is wrong with a link, or nothing. Others' sites are not asked."""
    if re.match(r"[a-z]+:", target):
        return None
    name, _, part = target.partition("#")
    path = (document.parent / name).resolve() if name else document
    if not path.exists():
        return f"no {name}"
    if part and path.suffix == ".md" and part not in headings(path):
        return f"no heading #{part} in {path.relative_to(ROOT)}"
    return None


def there(document, name):
    """Whether a path of the text is in the tree."""
    name = name.rstrip(".:/")
    starts = [ROOT, document.parent, *(ROOT / "crates").iterdir()]
    return any(next(start.glob(name), None) for start in starts)


def names(kind):
    """The targets of the Makefile, the stages of the tests, the commands of `zonda`."""
    if kind == "make":
        return set(re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text(), re.M))
    if kind == "test":
        return set(re.findall(r"^        ([a-z]+)\)", (ROOT / "scripts/test.sh").read_text(), re.M))
    commands = ROOT / "crates/zonda-cli/src/cmd"
    return {path.stem for path in commands.iterdir()} - {"mod", "table"} | {"help"}


def commands(text, known):
    """The commands in a piece of text that do not exist."""
    for name in re.findall(r"(?:^|[|;&(] *)make ([a-z][a-z0-9-]*)", text):
        if name not in known["make"]:
            yield f"make {name}"
    for rest in re.findall(r"(?:^|[|;&(] *)scripts/test\.sh ((?:[a-z]+ ?)*)", text):
        yield from (f"scripts/test.sh {name}" for name in rest.split() if name not in known["test"])
    for name in re.findall(r"(?:^|[|;&(] *)(?:[\w=,:./-]+ )*?(?:dist/bin/)?zonda ([a-z]+)\b", text):
        if name not in known["zonda"]:
            yield f"zonda {name}"


def sources():
    """Ends of paths of all Rust files, the variables and functions of Zonda's own that any source has, and all words of sources."""
    def git(*words):
        return subprocess.run(["git", *words], cwd=ROOT, check=True, capture_output=True, text=True).stdout.splitlines()

    paths = [name.split("/") for name in git("ls-files", "--cached", "--others", "--exclude-standard", "*.rs")]
    ends = {"/".join(path[n:]) for path in paths for n in range(len(path))}
    words = set(git("grep", "-hoE", r"\b[A-Z]?[A-Za-z0-9_]{2,}\b", "--", "*.rs", "*.py", "*.pyi", "*.c", "*.h", "*.f90"))
    return ends | set(git("grep", "-hoE", OWN, "--", ":!*.md", ":!scripts/docs.py")), words


def main():
    listed = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", "*.md"], cwd=ROOT, check=True, capture_output=True, text=True)
    known = {kind: names(kind) for kind in ("make", "test", "zonda")}
    present, words = sources()
    wrong = []
    for document in (ROOT / name for name in listed.stdout.splitlines()):
        # One document under two names is looked at under its own.
        if document.is_symlink():
            continue
        history = document.name == "CHANGELOG.md"
        made = document in (ROOT / "docs/dev/messages.md", ROOT / "docs/reference/commands.md")
        for number, line, example in lines(document):
            place = f"{document.relative_to(ROOT)}:{number}"
            if not example:
                plain = CODE.sub("", line) if "](" not in line else line
                wrong += [f"{place}: {fault}" for target in LINK.findall(plain) if (fault := linked(document, target))]
                if "crates" not in document.relative_to(ROOT).parts:
                    wrong += [f"{place}: [{name}] leads nowhere" for name in SHORT.findall(line)]
            if history or made:
                continue
            pieces = [line.strip()] if example else CODE.findall(line)
            for piece in pieces:
                wrong += [f"{place}: no command `{name}`" for name in commands(piece, known)]
                wrong += [f"{place}: no {name}" for name in PATH.findall(piece) if not there(document, name)]
                found = re.findall(OWN, piece) + re.findall(FILE, piece)
                if TYPE.fullmatch(piece) and not example:
                    wrong += [f"{place}: no source has the name {name}" for name in piece.split("::") if name not in words]
                wrong += [f"{place}: nothing has the name {name}" for name in found if name not in present]
    if not known["make"] or not known["test"] or not known["zonda"]:
        wrong.append("the lists of targets, stages and commands are not where this script looks for them")
    print("\n".join(wrong), end="\n" if wrong else "")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""The site says what is true: its examples run, its links lead somewhere, and it asks no other host for anything.

    run.py [--quick] [--long] [--only REGEX] [--parts LIST]

Parts:
    examples   each block of each page, in order, in a folder of the page's own; shown output is compared (blocks.py has the rules)
    reference  docs/reference has each command, each function of Zonda's own and each public name of the Python package
    tools      manual pages and completions of ncdump, ncgen, ncgen3, nccopy, nc-config and the commands: there, well formed, with all options
    site       `mkdocs build --strict`; then each link and anchor of what was built, and that nothing is loaded from elsewhere

ZONDA_PYTHON_TESTS names a Python with the package, out/python by default (python/tests/run.sh makes one).
`docs/dev` and documents outside of docs/ are for developers: what they name is checked by scripts/docs.py, and their examples do not run, but for pages that say `in the source`.
--only takes names such as `start.md 2` (a page's second block).
"""
import concurrent.futures
import os
import re
import shutil
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]
import blocks  # noqa: E402
import reference  # noqa: E402
import rig  # noqa: E402
import session  # noqa: E402
import site_built  # noqa: E402
import tools  # noqa: E402

DOCS = rig.ROOT / "docs"


def pages():
    """What users read, and what developers are told to type."""
    return [path for path in sorted(DOCS.rglob("*.md")) if not of_developers(path) or "in the source" in blocks.read(path).marks]


def of_developers(path):
    return "dev" in path.relative_to(DOCS).parts


def interpreter():
    """A Python that has Zonda's package, and the libraries that pages compare it with."""
    wanted = ("zonda", "xarray", "netCDF4", "h5py", "h5netcdf", "dask")
    own = Path(os.environ.get("ZONDA_PYTHON_TESTS") or rig.ROOT / "out" / "python" / "bin" / "python")
    if own.exists() and not lacking(" ".join("python:" + name for name in wanted), own):
        return own
    found = rig.python(*wanted)
    return found and Path(found)


def environment(python, home):
    """What a user has who followed docs/start.md: the commands on the PATH, a Python with the package, and no setting."""
    places = [rig.BIN, *([python.parent] if python else []), *os.environ.get("PATH", os.defpath).split(":")]
    return rig.environment(None, ("MPI", "OMPI_", "PMI"), PATH=":".join(map(str, places)), HOME=home, TMPDIR=home, COLUMNS="80", OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
                           SOURCE=rig.ROOT, PREFIX=rig.PREFIX, ZONDA_PREFIX=None)


def lacking(needs, python):
    """The first of the programs and packages in a list that is not there."""
    for name in needs.split():
        kind, _, package = name.rpartition(":")
        if kind == "python":
            there = python and rig.run([python, "-c", "import " + package]).returncode == 0
        else:
            there = shutil.which(name)
        if not there:
            return name
    return None


def elsewhere(page, block):
    """Why a block is not run here, with what is wrong with that; (None, None) where it is."""
    name = page.path.name
    if reason := page.mark(block, "not run"):
        return f"not run: {reason}", None
    if by := page.mark(block, "run by"):
        file = by.split(":")[0]
        path = rig.ROOT / file
        wrong = None if path.is_file() and name in path.read_text() else f"{file} does not name {name}"
        return f"run by {by}", wrong
    if source := page.mark(block, "part of"):
        path = rig.ROOT / source
        lines = [line.strip() for line in path.read_text().splitlines()] if path.is_file() else []
        wanted = [line.strip() for line in block.text.splitlines() if line.strip()]
        lines = [line for line in lines if line]
        there = any(lines[at : at + len(wanted)] == wanted for at in range(len(lines)))
        wrong = None if there else f"its lines do not stand in {source}"
        # One with a name of its own is used here, too.
        return None if block.title else f"part of {source}", wrong
    return None, None


def one(live, block, folder, name):
    """Runs a block, or writes its file."""
    if block.title:
        (folder / block.title).parent.mkdir(parents=True, exist_ok=True)
        (folder / block.title).write_text(block.text)
    elif block.language == "console":
        live.console(block)
    elif block.language == "sh":
        live.shell(block)
    elif block.language in ("python", "pycon"):
        live.python(block, name)
    elif block.language in blocks.RUN:
        raise rig.Wrong("it has no title=, so nothing compiles it; or it is part of another file")


def unused(page):
    """Files that no later command names."""
    for at, block in enumerate(page.blocks):
        later = "".join(b.text for b in page.blocks[at + 1 :] if b.language in ("console", "sh", "python", "pycon", "c", "fortran"))
        if block.title and not elsewhere(page, block)[0] and Path(block.title).name not in later:
            yield f"line {block.line}: {block.title} is written, and nothing uses it"


def run_page(path, options, counts, scratch, python, reasons):
    page = blocks.read(path)
    name = str(path.relative_to(DOCS))
    if not options.only:
        for wrong in [*page.wrong, *unused(page)]:
            counts.fail(name, wrong)
    folder = scratch / name.removesuffix(".md").replace("/", "-")
    folder.mkdir()
    live = session.Session(rig.ROOT if "in the source" in page.marks else folder, environment(python, scratch / "home"), python, folder / "session.env")
    broken = None
    for number, block in enumerate(page.blocks, 1):
        title = f"{name} {number} (line {block.line}, {block.language})"
        if block.language in blocks.SHOWN and not block.title:
            continue
        why, wrong = elsewhere(page, block)
        if wrong:
            counts.fail(title, wrong)
        if why:
            reasons.setdefault((name, why), []).append(block.line)
        elif options.only and not re.search(options.only, name):
            return
        elif gone := lacking(" ".join(filter(None, (page.marks.get("needs"), block.marks.get("needs")))), python):
            counts.skip(title, f"no {gone}")
        elif block.language in ("python", "pycon") and not block.title and not python:
            counts.skip(title, "no Python with zonda and the libraries that it is compared with: scripts/wheel.sh, and pip install")
        elif broken:
            counts.skip(title, f"after {broken}")
        elif counts.attempt(title, one, live, block, folder, title) is None:
            broken = f"block {number}"
    live.close()


def examples(options, counts, scratch):
    if not rig.LIBRARY.exists():
        raise rig.Setup("no library; run make build")
    (scratch / "home").mkdir()
    python, reasons = interpreter(), {}
    # Pages know nothing of each other, and mostly wait for compilers.
    with concurrent.futures.ThreadPoolExecutor(3) as threads:
        list(threads.map(lambda path: run_page(path, options, counts, scratch, python, reasons), pages()))
    if not options.only:
        others = [blocks.read(path) for path in sorted(DOCS.rglob("*.md")) if of_developers(path) and path not in pages()]
        print(f"docs/dev: {sum(page.examples() for page in others)} examples of developers' pages do not run; scripts/docs.py looks up what they name")
        for (name, why), lines in sorted(reasons.items()):
            print(f"{name} line {', '.join(map(str, lines))}: {why}")


PARTS = {"examples": (examples, rig.QUICK), "reference": (reference.check, rig.QUICK), "tools": (tools.check, rig.QUICK), "site": (site_built.check, rig.FULL)}


def main():
    options, counts = rig.arguments(rig.parser(__doc__, parts={part: mark for part, (_, mark) in PARTS.items()})), rig.Counts()
    with rig.scratch() as scratch:
        for part in options.chosen():
            PARTS[part][0](options, counts, scratch)
    return counts


if __name__ == "__main__":
    rig.main(main)

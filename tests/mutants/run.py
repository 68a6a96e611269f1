#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Whether the tests find defects: each mutant of mutants.toml, in a scratch copy of the tree.

    tests/mutants/run.py [--quick] [--long] [--only REGEX] [--list]

First each test is run on the tree as it is, where it must pass; then on each mutant, where it must fail. A mutant that does not
compile proves nothing, and counts as a failure of this runner. The copy and its build are in out/mutants; a first run takes
some minutes to build.

--quick takes the first mutant for each test, --long is the same as none.
"""
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(1, str(HERE.parent))
import rig  # noqa: E402
from rig import ROOT, Wrong  # noqa: E402

SCRATCH = ROOT / "out/mutants"
TREE = SCRATCH / "tree"
MOST_SECONDS = 900


def copy_tree():
    """Every file of the repository as it is now. Files that are as they were keep their times, so that little is built anew."""
    names = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True, check=True)
    wanted = {name for name in names.stdout.split("\0") if name and (ROOT / name).is_file()}
    for old in [path for path in TREE.rglob("*") if path.is_file() or path.is_symlink()]:
        if str(old.relative_to(TREE)) not in wanted:
            old.unlink()
    for name in wanted:
        source, target = ROOT / name, TREE / name
        if target.is_file() and target.read_bytes() == source.read_bytes():
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, target)


def run(command):
    """The exit status, and what was printed; None for one that does not end."""
    env = rig.environment(CARGO_TARGET_DIR=SCRATCH / "target", RUST_BACKTRACE=0)
    try:
        done = rig.run(command.split(), env, seconds=MOST_SECONDS, cwd=TREE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    except subprocess.TimeoutExpired:
        return None, ""
    return done.returncode, done.stdout


def builds(command):
    """Whether the tests of a command compile."""
    words = command.split(" -- ")[0]
    return run(words + " --no-run")


def judge(mutant):
    """Says what is wrong with the tests, or with the mutant, unless they find it."""
    path = TREE / mutant["file"]
    text = path.read_text()
    if text.count(mutant["old"]) != 1:
        raise Wrong(f"{mutant['file']} has its text {text.count(mutant['old'])} times: the mutant has to follow the tree")
    path.write_text(text.replace(mutant["old"], mutant["new"]))
    try:
        status, said = builds(mutant["test"])
        if status != 0:
            raise Wrong(f"it does not compile\n{said[-2000:]}")
        # One that does not end is found, too.
        status, _ = run(mutant["test"])
        if status == 0:
            raise Wrong(f"`{mutant['test']}` passes with it: {mutant['why']}")
    finally:
        path.write_text(text)


def main():
    parser = rig.parser(__doc__)
    parser.add_argument("--list", action="store_true", help="the mutants, and what each does")
    options, counts = rig.arguments(parser), rig.Counts()
    mutants = tomllib.loads((HERE / "mutants.toml").read_text())["mutant"]
    mutants = [mutant for mutant in mutants if options.wants(mutant["name"])]
    if options.mark == rig.QUICK:
        mutants = list({mutant["test"]: mutant for mutant in reversed(mutants)}.values())[::-1]
    if options.list:
        print("\n".join(f"{mutant['name']}: {mutant['why']}" for mutant in mutants))
        return 0
    copy_tree()
    fit = set()
    for test in dict.fromkeys(mutant["test"] for mutant in mutants):
        status, said = run(test)
        if status == 0:
            fit.add(test)
        else:
            counts.fail(f"`{test}`", f"it fails on the tree as it is\n{said[-2000:]}")
    for mutant in mutants:
        if mutant["test"] in fit and counts.attempt(mutant["name"], judge, mutant):
            print(f"ok   {mutant['name']}", flush=True)
    return counts


if __name__ == "__main__":
    rig.main(main)

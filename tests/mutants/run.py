#!/usr/bin/env python3
"""Whether the tests find defects: each mutant of mutants.toml, in a scratch copy of the tree.

    tests/mutants/run.py [--only REGEX] [--list]

First each test is run on the tree as it is, where it must pass; then on each mutant, where it must fail. A mutant that does not
compile proves nothing, and counts as a failure of this runner. The last line is `N passed, N failed`. The copy and its
build are in out/mutants; a first run takes some minutes to build.
"""
import argparse
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
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
    env = {**os.environ, "CARGO_TARGET_DIR": str(SCRATCH / "target"), "RUST_BACKTRACE": "0"}
    try:
        done = subprocess.run(command.split(), cwd=TREE, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=MOST_SECONDS)
    except subprocess.TimeoutExpired:
        return None, ""
    return done.returncode, done.stdout


def builds(command):
    """Whether the tests of a command compile."""
    words = command.split(" -- ")[0]
    return run(words + " --no-run")


def judge(mutant):
    """What is wrong with the tests, or with the mutant; None if they find it."""
    path = TREE / mutant["file"]
    text = path.read_text()
    if text.count(mutant["old"]) != 1:
        return f"{mutant['file']} has its text {text.count(mutant['old'])} times: the mutant has to follow the tree"
    path.write_text(text.replace(mutant["old"], mutant["new"]))
    try:
        status, said = builds(mutant["test"])
        if status != 0:
            return f"it does not compile\n{said[-2000:]}"
        # One that does not end is found, too.
        status, _ = run(mutant["test"])
        return f"`{mutant['test']}` passes with it: {mutant['why']}" if status == 0 else None
    finally:
        path.write_text(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", metavar="REGEX", default="")
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    mutants = tomllib.loads((HERE / "mutants.toml").read_text())["mutant"]
    mutants = [mutant for mutant in mutants if re.search(options.only, mutant["name"])]
    if options.list:
        print("\n".join(f"{mutant['name']}: {mutant['why']}" for mutant in mutants))
        return 0
    copy_tree()
    passed = failed = 0
    tests = dict.fromkeys(mutant["test"] for mutant in mutants)
    for test in tests:
        status, said = run(test)
        tests[test] = status == 0
        if status != 0:
            failed += 1
            print(f"FAIL `{test}` fails on the tree as it is\n{said[-2000:]}", flush=True)
    for mutant in mutants:
        if not tests[mutant["test"]]:
            continue
        why = judge(mutant)
        passed, failed = passed + (why is None), failed + (why is not None)
        print(f"ok   {mutant['name']}" if why is None else f"FAIL {mutant['name']}: {why}", flush=True)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""What each tool says of each file. Whatever the file: the exit status is one of those that the manual has, time
and memory are bounded, nothing ends by a signal or a panic; and each message names the file, the object or the
byte that it is about (unless it is about the whole file), and which of the three answers it is: damaged, cannot be
represented in netCDF, cannot be decoded here.

    tests/tools/answers.py [--quick] [--long] [--only REGEX] [FILE...]

    --quick        every fifth file
    --long         also the whole corpus, with its damaged files
tests/rig/places.py has the settings.
"""

import json
import os
import re
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(1, str(Path(__file__).resolve().parents[1]))
import rig  # noqa: E402

SECONDS = 60
# Beyond what it needs for elements (256 MiB) and for the file itself.
MEMORY = 700 << 20
MOST_OUTPUT = 32 << 20

# Files that are committed, of all kinds.
FOLDERS = ["tests/corpus/files", "tests/corpus/bad", "crates/zonda-nc4/tests/data", "crates/zonda-hdf5/tests/data"]
NAMES = re.compile(r"\.(nc\w*|h5|hdf5?|he5|cdf|nc4|sav|cdf5)$|/[^.]+$")

TOOLS = {
    "info": ["info", "FILE"],
    "info --json": ["info", "--json", "FILE"],
    "check": ["check", "FILE"],
    "check --json": ["check", "--json", "FILE"],
    "dump -h": ["dump", "-h", "FILE"],
    "dump -s": ["dump", "-s", "-h", "FILE"],
    "dump": ["dump", "FILE"],
    "view": ["view", "FILE"],
    "copy": ["copy", "-q", "FILE", "COPY"],
    "diff": ["diff", "FILE", "FILE"],
    "recover": ["recover", "--to", "COPY", "FILE"],
}
# Which exit statuses the manual has for each.
STATUSES = {"check": {0, 1, 2, 3}, "check --json": {0, 1, 2, 3}, "diff": {0, 2}, "recover": {0, 1, 3}}
# What names an object, or a byte, where the message is not about the whole file.
OBJECT = re.compile(
    r"(^|[ \"(:])/\S|\bbytes? \d+\b|\b(variable|attribute|dimension|group|type|definition|record)s?\b"
)
WHOLE = re.compile(
    r"neither a classic netCDF file nor HDF5|an HDF4 file|bytes are missing at the end|bytes of the \d+ that it had"
    r"|no signature at byte|there is no memory|magic number at byte 0"
)
# Which answer it is, in words.
ANSWER = re.compile(
    r"\(damaged\)|\(cannot be represented in netCDF\)|\(cannot be decoded here\)|refused|left out:"
    r"|neither a classic netCDF file nor HDF5|cannot hold|no memory|there is no such file|has no such object"
    # Of what a tool was to write.
    r"|is not supported$|would be called",
    re.MULTILINE,
)
JSON_ANSWERS = {
    "damaged", "unrepresentable", "undecodable", "unknown", "refused", "missing", "memory", "system", "request",
}  # fmt: skip


def limits():
    """For the tool alone: no core, and no more memory than it may have."""
    rig.bounds(data=2 << 30, file=1 << 30)()
    # Python ignores it; a tool that writes too much is told.
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)


def run(args, folder):
    """Exit status, standard output (its beginning), standard error, largest resident memory."""
    out = open(folder / "out", "w+b")
    err = open(folder / "err", "w+b")
    reader, writer = os.pipe()
    process = subprocess.Popen(args, stdin=subprocess.DEVNULL, stdout=writer, stderr=err, env=rig.environment(), preexec_fn=limits)
    os.close(writer)
    timer = threading.Timer(SECONDS, process.kill)
    timer.start()
    n = 0
    cut = False
    while block := os.read(reader, 1 << 20):
        if n < MOST_OUTPUT:
            out.write(block)
        n += len(block)
        if n > 20 * MOST_OUTPUT:
            # Output that is proportional to what the file says that it has; nobody reads on.
            cut = True
            break
    os.close(reader)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = status
    timer.cancel()
    out.seek(0)
    err.seek(0)
    said = out.read(MOST_OUTPUT).decode(errors="replace"), err.read().decode(errors="replace")
    out.close()
    err.close()
    code = os.waitstatus_to_exitcode(status)
    return (0 if cut else code), *said, usage.ru_maxrss << 10


def judge_line(line, name, is_json):
    """What is wrong with a line on standard error."""
    if not line.startswith("zonda: "):
        return None if line.startswith(" ") else f"a line of nobody: {line[:200]}"
    text = line.removeprefix("zonda: ")
    if name not in text and "COPY" not in text:
        return f"the file is not named: {line[:300]}"
    rest = text.split(name, 1)[-1].lstrip(": ")
    if not (OBJECT.search(rest) or WHOLE.search(rest)):
        return f"no object and no byte: {line[:300]}"
    return None


def judge(tool, file, folder):
    """What is wrong with what a tool does with a file, a line each."""
    copy = folder / "COPY"
    copy.unlink(missing_ok=True)
    args = [str(rig.ZONDA)] + [str(copy) if word == "COPY" else file if word == "FILE" else word for word in TOOLS[tool]]
    status, out, err, memory = run(args, folder)
    wrong = []
    if status == -signal.SIGKILL:
        return [f"does not end in {SECONDS} s"]
    if status not in STATUSES.get(tool, {0, 1}):
        wrong.append(f"exit status {status}: {err[:300]}")
    if "panicked" in err:
        wrong.append(f"panic: {err[:300]}")
    if memory > MEMORY + 2 * os.path.getsize(file):
        wrong.append(f"{memory >> 20} MiB of memory")
    lines = [line for line in err.splitlines() if line]
    wrong += filter(None, (judge_line(line, file, "json" in tool) for line in lines))
    says = err + (out if tool in ("check", "recover") else "")
    if status not in (0,) and not ANSWER.search(says) and not ("check" in tool and status == 1):
        if tool not in ("info --json", "check --json", "diff") or not out:
            wrong.append(f"exit status {status}, and no word on which answer it is: {err[:300]}")
    if status != 0 and not says.strip() and not out.strip():
        wrong.append(f"exit status {status}, and no word")
    if tool == "info --json" and status:
        facts = json.loads(out)
        if facts.get("answer") not in JSON_ANSWERS or not facts.get("error"):
            wrong.append(f"no answer in JSON: {facts.get('answer')} {facts.get('error')}")
    if tool == "check --json":
        for finding in json.loads(out)["findings"] if out else []:
            if not (finding["object"] or finding["byte"] is not None or WHOLE.search(finding["what"])):
                if "journal" not in finding["what"]:
                    wrong.append(f"a finding of nothing: {finding['what'][:300]}")
    if tool == "copy" and status and copy.exists():
        wrong.append("a copy that failed is there")
    return wrong


def files(options, counts):
    if options.files:
        return options.files
    found = [path for folder in FOLDERS for path in sorted((rig.ROOT / folder).iterdir())]
    if options.long:
        if rig.CORPUS and Path(rig.CORPUS, "files").is_dir():
            found += sorted(path for path in Path(rig.CORPUS, "files").rglob("*"))
        else:
            counts.skip("the corpus", "ZONDA_CORPUS names none")
    found = [str(path) for path in found if path.is_file() and NAMES.search(str(path))]
    return [path for path in found if options.wants(path)][::options.by(5, 1, 1)]


def one(file):
    """(tool, file, what is wrong) of all tools."""
    with rig.scratch() as folder:
        return [(tool, file, judge(tool, file, folder)) for tool in TOOLS]


def main():
    parser = rig.parser(__doc__)
    parser.add_argument("files", nargs="*")
    options, counts = rig.arguments(parser), rig.Counts()
    if not rig.ZONDA.exists():
        raise rig.Setup(f"no {rig.ZONDA}: build it first")
    every = files(options, counts)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for found in pool.map(one, every):
            for tool, file, wrong in found:
                counts.check(f"{tool} {file}", "\n     ".join(wrong))
    print(f"{len(every)} files, {len(TOOLS)} tools")
    return counts


if __name__ == "__main__":
    rig.main(main)

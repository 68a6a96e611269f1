#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Tools in little memory. Files and texts that say large sizes are given to each tool in a small address space
(RLIMIT_AS): it does what it is to do, or ends by itself with a message; where memory was too little, the message
says for how many bytes. Nothing ends by a signal or a panic, and no copy that failed is left, but where there was no memory for
what takes little.

    tests/tools/memory.py [--quick] [--long] [--only REGEX]

    --quick        every fifth
    --long         more sizes of the address space
tests/rig/places.py has the settings.
"""

import itertools
import os
import re
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(1, str(Path(__file__).resolve().parents[1]))
import rig  # noqa: E402

MIB = 1 << 20
SPACES = [160]
MORE_SPACES = [96, 128, 256, 400]
# Only hangs are bounded. What takes longest reads a file of gigabytes of zeros: some seconds, and on a machine that has to find
# the memory of the system's cache first, or is busy, a minute.
SECONDS = 300

# Of what is large, in CDL: `ncgen` writes next to nothing, since most of it is fill that was never put.
TEXTS = {
    "classic variable": ("-3", "dimensions: x = 500000000; variables: byte v(x); data: v = 1;"),
    "classic record": ("-6", "dimensions: t = unlimited; x = 300000000; variables: float v(t, x);"),
    "wide row": ("-5", "dimensions: y = 2; x = 400000000; variables: double v(y, x); double y(y); data: y = 1, 2;"),
    "large chunk": ("-4", "dimensions: x = 900000000; variables: byte v(x); v:_ChunkSizes = 900000000; v:_DeflateLevel = 1;"),
    "many chunks": ("-4", "dimensions: x = 300000; variables: byte v(x); v:_ChunkSizes = 1;"),
    "opaque": ("-4", "types: opaque(700000000) o; dimensions: x = 2; variables: o v(x);"),
    "compound": ("-4", "types: compound c { int a; double b(100000000); }; dimensions: x = 3; variables: c v(x); int w; data: w = 1;"),
    "characters": ("-4", "types: compound c { char a(3, 20000000); }; variables: c v; data: v = {{\"a\", \"b\", \"c\"}};"),
    "value of a compound": ("-4", "types: compound c { int a; double b(30000000); }; variables: c v; data: v = {1, {2}};"),
    "value of an opaque": ("-4", "types: opaque(200000000) o; variables: o v; data: v = 0x01;"),
    "attribute of a compound": ("-4", "types: compound c { int a; double b(8000); }; variables: int v; c v:a = {1, {2}};"),
    "strings": ("-4", "dimensions: x = 300000000; variables: string s(x); s:_ChunkSizes = 100000000;"),
}  # fmt: skip
WITHIN = re.compile(r"\b\d+ bytes\b")
# What takes little (the text of a number, the stack of a thread) has no way to say that there is none: Rust ends the program, and
# what a copy had written then is removed by the next. What takes more is asked for.
ENDED = re.compile(r"memory allocation of (\d+) bytes failed")
LITTLE = 32 << 10


def headers():
    """Classic headers that count what no memory holds, in files that are long enough (and sparse)."""
    def number(n):
        return n.to_bytes(4, "big")

    none = number(0) * 2
    name = number(1) + b"a\0\0\0"
    many = number(0x7FFFFFF0 // 2)
    yield "values of an attribute", b"CDF\1" + number(0) + none + number(12) + number(1) + name + number(1) + many, 1 << 31
    yield "dimensions", b"CDF\1" + number(0) + number(10) + many, 1 << 34
    yield "variables", b"CDF\1" + number(0) + none + none + number(11) + many, 1 << 36
    yield "a name", b"CDF\1" + number(0) + number(10) + number(1) + many, 1 << 31


def sources(folder):
    """Files that say large sizes."""
    for name, (kind, text) in TEXTS.items():
        cdl = folder / f"{name.replace(' ', '_')}.cdl"
        cdl.write_text(f"netcdf x {{ {text} }}\n")
        file = cdl.with_suffix(".nc")
        made = run(["ncgen", "-x", kind, "-o", file, cdl], None)
        if made.returncode != 0:
            sys.exit(f"{name}: no file: {made.returncode}: {made.stderr}")
        yield name, file
    for name, head, length in headers():
        file = folder / f"{name.replace(' ', '_')}.nc"
        file.write_bytes(head)
        os.truncate(file, length)
        yield name, file


def texts(folder):
    """CDL that asks for much, and a text with a token of 128 MiB."""
    for name, (kind, _) in TEXTS.items():
        yield name, kind, folder / f"{name.replace(' ', '_')}.cdl"
    token = folder / "token.cdl"
    with token.open("w") as text:
        text.write('netcdf x { :a = "')
        for _ in range(128):
            text.write("x" * MIB)
        text.write('"; }\n')
    yield "a long token", "-4", token


def commands(folder, file):
    new = folder / "new.nc"
    yield "info", ["zonda", "info", file], None
    yield "info --json", ["zonda", "info", "--json", file], None
    yield "check", ["zonda", "check", file], None
    yield "copy", ["zonda", "copy", "--overwrite", file, new], new
    yield "copy -k", ["zonda", "copy", "-k", "cdf5", file, new], new
    yield "diff", ["zonda", "diff", file, file], None
    yield "view", ["zonda", "view", file], None
    yield "view v", ["zonda", "view", file, "v", "-o", folder / "v.png"], None
    yield "recover", ["zonda", "recover", file, "--to", new], new
    yield "dump", ["zonda", "dump", "-v", "v", file], None
    yield "ncdump -h", ["ncdump", "-h", file], None
    yield "ncdump -s", ["ncdump", "-hs", file], None
    yield "nccopy", ["nccopy", file, new], new
    yield "nccopy -d", ["nccopy", "-4", "-d1", file, new], new


def run(command, mib):
    def narrow():
        # No test fills the disk: what would is ended by an error of its own.
        rig.bounds(memory=mib and mib * MIB, file=mib and 24 * MIB)()
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)

    command = [rig.BIN / command[0], *command[1:]]
    # What is read of the output is its end; a gigabyte of text is for nobody.
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as said:
        try:
            done = rig.run(command, rig.environment(RUST_BACKTRACE=0), stdout=out, stderr=said, preexec_fn=narrow,
                           seconds=SECONDS)  # fmt: skip
        except subprocess.TimeoutExpired:
            return subprocess.CompletedProcess(command, "no end", "", "")
        texts = []
        for stream in (out, said):
            stream.seek(max(0, stream.seek(0, os.SEEK_END) - 4096))
            texts.append(stream.read().decode(errors="replace"))
    return subprocess.CompletedProcess(command, done.returncode, *texts)


def told(done):
    return done.stderr + done.stdout


def fault(done):
    """What is wrong with the way a tool ended."""
    if not isinstance(done.returncode, int):
        return done.returncode
    if done.returncode < 0:
        return f"signal {-done.returncode}"
    if "panicked" in done.stderr:
        return "a panic"
    ended = ENDED.search(done.stderr)
    if ended and int(ended[1]) > LITTLE:
        return "ended for much"
    if "memory for" in told(done) and "damaged" in told(done):
        return "called damaged for want of memory"
    if done.returncode and not (done.stderr or done.stdout).strip():
        return "no word"
    if re.search("memory", told(done), re.I) and not WITHIN.search(told(done)):
        return "no number of bytes"
    return None


def main():
    options, counts, n_memory = rig.arguments(rig.parser(__doc__)), rig.Counts(), 0
    spaces = SPACES + MORE_SPACES * options.long
    with rig.scratch() as folder:
        out = folder / "new"
        out.mkdir()
        cases = [(name, label, command, new) for name, file in sources(folder) for label, command, new in commands(out, file)]
        new = out / "made.nc"
        cases += [(name, "ncgen", ["ncgen", kind, "-o", new, text], new) for name, kind, text in texts(folder)]
        cases = [case for case in cases if options.wants(f"{case[0]}, {case[1]}")][::options.by(5, 1, 1)]
        for (name, label, command, new), mib in itertools.product(cases, spaces):
            done = run(command, mib)
            wrong = fault(done)
            n_memory += "memory for" in told(done)
            left = sorted(path.name for path in out.iterdir() if not (new and path == new and done.returncode == 0))
            is_left = any(name != "v.png" for name in left) and not ENDED.search(done.stderr)
            if not wrong and is_left:
                wrong = f"left: {left}"
            for path in out.iterdir():
                path.unlink()
            counts.check(f"{name}, {label}, {mib} MiB", wrong and f"{wrong}: {done.stderr.strip()[-300:]}")
    n = len(cases) * len(spaces)
    print(f"{n} runs, {n_memory} of them without the memory they wanted")
    if n_memory < n // 20:
        counts.fail("memory", "it was hardly ever too little: the sizes are too small")
    return counts


if __name__ == "__main__":
    rig.main(main)

#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""ncgen and ncgen3: files and programs of CDL, compared by value with those of the reference.

    tests/cdl/run.py [--parts cases,dumps,programs,faults,memory] [--only REGEX] [--quick] [--long]

    cases     cases/*.cdl: the file that our ncgen makes and that of the reference have the same dump
    dumps     each file of ZONDA_CORPUS (and of cases): our ncgen makes of its dump a file with that dump
    programs  cases the C, and of the classic model the Fortran and Java programs that our ncgen makes compile,
              and make a file with the dump of the one that it makes itself
    faults    faults/*.cdl: exit status and message, as in the file beside it
    memory    150 MB of text, as a file and on standard input, take less than 128 MB of memory

Dumps are those of the reference's ncdump. A first line `// options: ...` of a case are options of ncgen;
`// tool: ncgen3` takes the other tool. exceptions.txt names files for which another result is right, and
why; a line that nothing needs is an error. A part whose reference is missing is skipped, and says so;
--quick leaves out programs and memory. tests/rig/places.py has the settings.
"""
import concurrent.futures
import glob
import os
import re
import shutil
import subprocess
import sys
import zlib

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(1, os.path.dirname(HERE))
import rig  # noqa: E402
from rig import tool as reference  # noqa: E402

SECONDS = 60
# One of so many dumps of the corpus is read back, unless all are asked for.
SAMPLE = 6
LONGEST = 40 << 20                  # bytes of a dump: the reference reads 7 MB in a second


class Results(rig.Counts):
    def __init__(self):
        super().__init__()
        self.exceptions, self.used = {}, set()
        with open(os.path.join(HERE, "exceptions.txt")) as f:
            for line in f:
                if line.strip() and not line.startswith("#"):
                    name, why = line.rstrip("\n").split(" | ", 1)
                    self.exceptions[name] = why

    def take(self, name, wrong, quiet=False):
        """`wrong` says what is wrong, or is None."""
        if wrong is None:
            self.passes()
            if not quiet:
                print("passed ", name)
        elif name in self.exceptions:
            self.used.add(name)
            self.passes()
            print("excepted", name, "--", self.exceptions[name])
        else:
            self.fail(name, "".join("\n        " + line[:200] for line in wrong.splitlines()[:12]))


def run(command, cwd=None, seconds=SECONDS, stdin=None):
    """Exit status (None: too long), standard output and standard error."""
    try:
        done = rig.run(command, cwd=cwd, seconds=seconds, text=False, stdin=stdin or subprocess.DEVNULL)
        return done.returncode, done.stdout, done.stderr
    except subprocess.TimeoutExpired:
        return None, b"", b"takes too long"


def ours(tool):
    return os.path.join(rig.BIN, tool)


def dump(path, *options):
    status, out, err = run([reference("ncdump"), "-n", "x", *options, path])
    return out if status == 0 else b"ncdump: " + err


def header(path):
    """The tool and the options of a case."""
    with open(path, errors="replace") as f:
        first = [next(f, ""), next(f, "")]
    options, tool = [], "ncgen"
    for line in first:
        if line.startswith("// options:"):
            options = line.split(":", 1)[1].split()
        if line.startswith("// tool:"):
            tool = line.split(":", 1)[1].strip()
    return tool, options


def difference(a, b, names=("reference", "ours")):
    """The first lines that differ."""
    if a == b:
        return None
    a, b = a.splitlines(), b.splitlines()
    for n in range(max(len(a), len(b))):
        x = a[n] if n < len(a) else b"(end)"
        y = b[n] if n < len(b) else b"(end)"
        if x != y:
            return "line %d\n%s: %s\n%s: %s" % (n + 1, names[0], x.decode(errors="replace"), names[1],
                                               y.decode(errors="replace"))
    return "line ends differ"


def case(path, folder):
    """Ours and the reference's of one CDL file."""
    tool, options = header(path)
    made = {}
    for who, program in (("ours", ours(tool)), ("reference", reference(tool))):
        out = os.path.join(folder, who + ".nc")
        status, _, err = run([program, *options, "-o", out, path], cwd=folder)
        if status != 0:
            made[who] = b"%s exits %d: %s" % (tool.encode(), status if status is not None else -1, err)
        else:
            made[who] = dump(out, "-k") + dump(out)
    expected = path[:-4] + ".expected"
    if os.path.exists(expected):
        with open(expected, "rb") as f:
            return difference(f.read(), made["ours"], ("expected", "ours"))
    return difference(made["reference"], made["ours"])


def round_trip(path, folder):
    """None if all is well; a text; or 'refused' where the reference has no dump."""
    status, text, _ = run([reference("ncdump"), "-n", "x", path], seconds=30)
    if status != 0 or not text or len(text) > LONGEST:
        return "refused"
    kind = run([reference("ncdump"), "-k", path])[1].decode().strip()
    cdl = os.path.join(folder, "x.cdl")
    with open(cdl, "wb") as f:
        f.write(text)
    out = os.path.join(folder, "x.nc")
    status, _, err = run([ours("ncgen"), "-k", kind, "-o", out, cdl])
    if status == 0:
        wrong = difference(text, dump(out), ("dump", "dump of ours"))
        if wrong is None:
            return None
    else:
        wrong = "ncgen exits %s: %s" % (status, err.decode(errors="replace"))
    # What cannot come back may be the same as with the reference's own tool.
    again = os.path.join(folder, "r.nc")
    ref_status, _, ref_err = run([reference("ncgen"), "-k", kind, "-o", again, cdl])
    if status == 0 and ref_status == 0 and dump(again) == dump(out):
        return None
    return wrong + "\nthe reference exits %s: %s" % (ref_status, ref_err.decode(errors="replace")[:300])


def sorted_cases():
    return sorted(glob.glob(os.path.join(HERE, "cases", "*.cdl")))


def part_cases(results, options):
    for path in sorted_cases():
        name = "cases/" + os.path.basename(path)
        if options.wants(name):
            with rig.scratch() as folder:
                results.take(name, case(path, folder))


def part_dumps(results, options):
    corpus = rig.CORPUS
    if not corpus:
        return results.skip("dumps", "ZONDA_CORPUS names no folder")
    paths, every = [], 1 if options.only else options.by(60, SAMPLE, 1)
    for top, _, files in sorted(os.walk(os.path.join(corpus, "files"))):
        for file in sorted(files):
            path = os.path.join(top, file)
            if zlib.crc32(os.path.relpath(path, corpus).encode()) % every:
                continue
            with open(path, "rb") as f:
                magic = f.read(4)
            if (magic[:3] == b"CDF" or magic == b"\x89HDF") and options.wants(path):
                paths.append(path)

    def one(path):
        with rig.scratch() as folder:
            return round_trip(path, folder)

    refused = 0
    with concurrent.futures.ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        for path, wrong in zip(paths, pool.map(one, paths)):
            if wrong == "refused":
                refused += 1
                continue
            results.take(os.path.relpath(path, os.path.join(corpus, "files")), wrong, quiet=True)
    print("dumps: of %d files the reference has no dump of %d" % (len(paths), refused))


def compile_and_run(command, program, folder):
    status, _, err = run(command, cwd=folder, seconds=300)
    if status != 0:
        return "does not compile: " + err.decode(errors="replace")
    status, out, err = run([os.path.join(folder, program)], cwd=folder)
    return None if status == 0 else "fails: " + (out + err).decode(errors="replace")


def same_as_direct(path, tree, folder):
    """Compares the file that a program made with the one that ncgen makes itself."""
    tool, options = header(path)
    out = os.path.join(folder, "direct.nc")
    kind = run([reference("ncdump"), "-k", tree])[1].decode().strip()
    status, _, err = run([ours(tool), "-k", kind, *options, "-b", "-o", out, path])
    if status != 0:
        return "ncgen exits %s: %s" % (status, err.decode(errors="replace"))
    return difference(dump(out), dump(tree), ("file", "program"))


def program_of(path, language, folder):
    tool, options = header(path)
    tree = os.path.join(folder, "made.nc")
    status, text, err = run([ours(tool), *options, "-l", language, "-o", tree, path])
    if status != 0:
        return "ncgen -l %s exits %s: %s" % (language, status, err.decode(errors="replace"))
    if language == "java":
        with open(os.path.join(folder, "Main.java"), "wb") as f:
            f.write(text)
        stubs = glob.glob(os.path.join(HERE, "java", "**", "*.java"), recursive=True)
        status, _, err = run(["javac", "-encoding", "UTF-8", "-nowarn", "-d", folder,
                              "Main.java", *stubs], cwd=folder, seconds=300)
        if status != 0:
            return "does not compile: " + err.decode(errors="replace")
        # The library that it is for is not there: one that stands in for it prints CDL.
        status, text, err = run(["java", "-cp", folder, "Main"], cwd=folder)
        if status != 0:
            return "fails: " + err.decode(errors="replace")
        with open(os.path.join(folder, "printed.cdl"), "wb") as f:
            f.write(text)
        status, _, err = run([ours("ncgen"), "-o", tree, "printed.cdl"], cwd=folder)
        if status != 0:
            return "what it asks for: " + err.decode(errors="replace")
        return same_as_direct(path, tree, folder)
    source = os.path.join(folder, "program." + ("c" if language == "c" else "f"))
    with open(source, "wb") as f:
        f.write(text)
    if language == "c":
        command = ["gcc", "-O0", "-Wall", "-Werror", "-Wno-unused-variable", "-o", "program", source,
                   "-lnetcdf"]
    else:
        command = ["gfortran", "-O0", "-o", "program", "-I/usr/include", source, "-lnetcdff", "-lnetcdf"]
    wrong = compile_and_run(command, "program", folder)
    if wrong:
        return wrong
    return same_as_direct(path, tree, folder)


def part_programs(results, options):
    for language, compiler in (("c", "gcc"), ("f77", "gfortran"), ("java", "javac")):
        if not shutil.which(compiler):
            results.skip("programs", "there is no %s" % compiler)
            continue
        for path in sorted_cases():
            name = "%s of cases/%s" % (language, os.path.basename(path))
            with open(path, errors="replace") as f:
                text = f.read()
            classic = "// classic" in text
            if not options.wants(name) or (language != "c" and not classic):
                continue
            if language == "java" and "// tool: ncgen3" in text:
                continue
            with rig.scratch() as folder:
                results.take(name, program_of(path, language, folder))


def part_faults(results, options):
    for path in sorted(glob.glob(os.path.join(HERE, "faults", "*.cdl"))):
        name = "faults/" + os.path.basename(path)
        if not options.wants(name):
            continue
        tool, words = header(path)
        with rig.scratch() as folder:
            shutil.copy(path, folder)
            old = os.path.join(folder, "old.nc")
            with open(old, "w") as f:
                f.write("old")
            status, out, err = run([ours(tool), *words, "-o", "old.nc", os.path.basename(path)], cwd=folder)
            got = "exit status %s\n%s" % (status, (out + err).decode(errors="replace"))
            with open(old) as f:
                kept = f.read() == "old"
            left = sorted(os.listdir(folder))
        expected = path[:-4] + ".expected"
        if os.environ.get("UPDATE"):
            with open(expected, "w") as f:
                f.write(got)
        with open(expected) as f:
            wrong = difference(f.read().encode(), got.encode(), ("expected", "ours"))
        if wrong is None and not kept:
            wrong = "the old file is not as it was"
        if wrong is None and left != sorted([os.path.basename(path), "old.nc"]):
            wrong = "left behind: %s" % left
        if wrong is None and not re.search(r"line \d+, column \d+", got) and "// no line" not in open(path).read():
            wrong = "the message has no line"
        results.take(name, wrong)


# Runs a program and prints its exit status and how much memory it took at most. In between, since a
# program inherits that figure from whoever starts it.
MEASURE = """
import os, subprocess, sys
child = subprocess.Popen(sys.argv[1:])
_, status, usage = os.wait4(child.pid, 0)
print(os.waitstatus_to_exitcode(status), usage.ru_maxrss)
"""


def part_memory(results, options):
    with rig.scratch() as folder:
        path = os.path.join(folder, "large.cdl")
        rows = 1500
        with open(path, "w") as f:
            f.write("netcdf large { dimensions: t = UNLIMITED ; x = 10000 ; variables: float v(t, x) ; data: v =\n")
            row = ", ".join("%.7g" % (n * 0.37 % 1000) for n in range(10000))
            row = row.replace(", 9", ",\n9")
            for n in range(rows):
                f.write(row + (";" if n == rows - 1 else ",\n"))
            f.write("}")
        for name, operand, stdin in (("a file", path, None), ("standard input", "-", path)):
            name = "memory: " + name
            if not options.wants(name):
                continue
            out = os.path.join(folder, "large.nc")
            with open(stdin or os.devnull, "rb") as source:
                _, told, err = run([sys.executable, "-c", MEASURE, ours("ncgen"), "-k", "nc6", "-o", out, operand],
                                   stdin=source, seconds=300)
            status, kilobytes = map(int, told.split() or (-1, 0))
            wrong = None
            if status != 0 or os.path.getsize(out) < rows * 40000:
                wrong = "exit status %d: %s" % (status, err.decode(errors="replace"))
            elif kilobytes > 128 << 10:
                wrong = "%d MB of memory" % (kilobytes >> 10)
            results.take(name, wrong)


PARTS = {"cases": part_cases, "dumps": part_dumps, "programs": part_programs, "faults": part_faults,
         "memory": part_memory}


def main():
    marks = {part: rig.FULL if part in ("programs", "memory") else rig.QUICK for part in PARTS}
    options, results = rig.arguments(rig.parser(__doc__, parts=marks)), Results()
    if not os.access(ours("ncgen"), os.X_OK):
        raise rig.Setup("no %s: build it first" % ours("ncgen"))
    missing = rig.missing("ncdump", "ncgen", "ncgen3")
    for part in options.chosen():
        if missing and part not in ("faults", "memory"):
            results.skip(part, "there is no %s of the reference" % ", ".join(missing))
        else:
            PARTS[part](results, options)
    if options.chosen() == list(PARTS) and options.long and not options.only and rig.CORPUS:
        for name in sorted(set(results.exceptions) - results.used):
            results.fail("exceptions.txt", "nothing needs the line of %s" % name)
    return results


if __name__ == "__main__":
    rig.main(main)

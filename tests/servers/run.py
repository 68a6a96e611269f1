#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""I/O servers (zonda run --servers) beside the same programs that write for themselves.

    run.py [--quick] [--long] [--only REGEX] [--parts LIST] [--seed N]

lives   random lives of files (tests/async/life.c): what is printed, and the files, byte by byte
model   a model's files, by one group, four, and groups of several servers; files by their names; large puts; killed programs; killed servers; a full device; other folders
ranks   programs of MPI, by each of Debian's MPIs: the same bytes as without servers, however many servers a group has; a killed rank; a killed server
"""
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(1, str(HERE.parent))
sys.path.insert(2, str(HERE.parent / "par"))
import rig  # noqa: E402
from rig import Wrong  # noqa: E402

SECONDS = 120
FORMATS = "1254"
# By groups, servers of a group, and names.
SPECS = ("groups=2", "groups=1,size=3", "groups=2,size=2,x*=2")


def served(spec, command, env=None, cwd=None):
    words = [rig.ZONDA, "run", "--servers", spec, "--", *command]
    return rig.run(words, env or rig.environment(rig.LIBDIR), cwd=cwd, seconds=SECONDS)


def alike(one, other):
    if one.read_bytes() != other.read_bytes():
        raise Wrong("%s and %s differ" % (rig.keep(one), rig.keep(other)))


def lives(options, counts, scratch):
    life = rig.compile_c(scratch / "life", *(HERE.parent / "async" / name for name in ("life.c", "transfer.c")), libraries=["-lpthread", "-ldl", "-lm"])
    for seed in range(options.seed, options.seed + options.by(8, 60, 2000)):
        fmt = "12534"[seed % 5]
        if options.wants("life %d %s" % (seed, fmt)):
            counts.attempt("life %d %s" % (seed, fmt), one_life, life, scratch, seed, fmt)


def one_life(life, scratch, seed, fmt):
    said = []
    for way in ("direct", "served"):
        folder = scratch / way
        folder.mkdir(exist_ok=True)
        for old in folder.iterdir():
            old.unlink()
        command = [life, str(seed), fmt, "60", "x.nc"]
        done = served(SPECS[seed % len(SPECS)], command, cwd=folder) if way == "served" else rig.run(command, rig.environment(rig.LIBDIR), cwd=folder, seconds=SECONDS)
        if done.returncode != 0:
            raise Wrong("%s ends with %s: %s" % (way, done.returncode, done.stderr[-400:]))
        said.append((done.stdout, sorted(file.name for file in folder.iterdir())))
    if said[0] != said[1]:
        lines = [(a, b) for a, b in zip(said[0][0].splitlines(), said[1][0].splitlines()) if a != b]
        raise Wrong("direct and served say %s; files %s and %s" % (lines[:2], said[0][1], said[1][1]))
    for name in said[0][1]:
        alike(scratch / "direct" / name, scratch / "served" / name)


def model(options, counts, scratch):
    program = rig.compile_c(scratch / "model", HERE / "model.c")
    for fmt in FORMATS:
        for spec in ("groups=1", "groups=4,size=1", "groups=2,size=2,*.h5=1", "groups=0,other*=2"):
            for steps, rows in ((5, 40), (2, 60000)):
                name = "model %s %s %d rows" % (fmt, spec, rows)
                if options.wants(name) and (rows < 1000 or spec == "groups=1"):
                    counts.attempt(name, same_model, program, scratch, fmt, spec, steps, rows)
        if options.wants("killed program %s" % fmt):
            counts.attempt("killed program %s" % fmt, killed_program, program, scratch, fmt)
        if options.wants("killed server %s" % fmt):
            counts.attempt("killed server %s" % fmt, killed_server, program, scratch, fmt)
        if options.wants("full device %s" % fmt):
            counts.attempt("full device %s" % fmt, full_device, program, scratch, fmt)
    for spec, name, group in (("groups=3,other.*=2,*=3", "other.nc", 2), ("groups=2,size=2,o??er*=1", "other.nc", 1), ("groups=2,x.*=1,*.nc=2", "one.nc", 2)):
        if options.wants("names %s" % spec):
            counts.attempt("names %s" % spec, by_name, program, scratch / name, spec, group)
    if options.wants("wrong specs"):
        counts.attempt("wrong specs", wrong_specs)
    if options.wants("no folder"):
        counts.attempt("no folder", no_folder, program, scratch)
    if options.wants("no servers"):
        counts.attempt("no servers", no_servers, program, scratch)


def direct_model(program, path, fmt, steps, rows):
    rig.must([program, path, fmt, str(steps), str(rows)], rig.environment(rig.LIBDIR))


def same_model(program, scratch, fmt, spec, steps, rows):
    one, other = scratch / "one.nc", scratch / "other.nc"
    direct_model(program, one, fmt, steps, rows)
    done = served(spec, [program, other, fmt, str(steps), str(rows)])
    if (done.returncode, done.stdout) != (0, ""):
        raise Wrong("ends with %s and says %r %r" % (done.returncode, done.stdout, done.stderr))
    alike(one, other)


def killed_program(program, scratch, fmt):
    """What the program had put when it was killed is in the file: the steps before, as in a whole one."""
    one, other = scratch / "one.nc", scratch / "other.nc"
    direct_model(program, one, fmt, 4, 300)
    done = served("groups=1", [program, other, fmt, "9", "300", "kill", "3"])
    if done.returncode != 128 + signal.SIGKILL:
        raise Wrong("ends with %s: %s" % (done.returncode, done.stderr))
    texts = [rig.must([rig.tool("ncdump"), "-n", "x", path], rig.environment(rig.reference())) for path in (one, other)]
    if texts[0] != texts[1]:
        raise Wrong("ncdump says other things of %s and %s" % (rig.keep(one), rig.keep(other)))


def children_of(pid):
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "stat").read_text().rsplit(")", 1)[1].split()
                if int(words[1]) == pid:
                    found.append((int(entry.name), (entry / "cmdline").read_bytes()))
            except OSError:
                pass
    return found


class Running:
    """A program with servers, of which a file is to grow to so many bytes."""

    def __init__(self, spec, command, env, path, n_bytes):
        words = [rig.ZONDA, "run", "--servers", spec, "--", *command]
        self.path, self.n_bytes = path, n_bytes
        path.unlink(missing_ok=True)
        self.child = subprocess.Popen(list(map(str, words)), env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def __enter__(self):
        until = time.monotonic() + 60
        while not (self.path.exists() and self.path.stat().st_size > self.n_bytes):
            if time.monotonic() > until or self.child.poll() is not None:
                self.__exit__()
                raise Wrong("no file comes: %s" % (self.child.stderr.read()[-400:],))
            time.sleep(0.02)
        return self

    def __exit__(self, *_):
        if self.child.poll() is None:
            for pid, _ in children_of(self.child.pid):
                os.kill(pid, signal.SIGKILL)
            self.child.kill()
            self.child.wait()

    def servers(self):
        """The process of each server, by the name of its socket."""
        found = {}
        for pid, line in children_of(self.child.pid):
            words = line.split(b"\0")
            if b"--group" in words:
                found[Path(words[words.index(b"--group") + 1].decode()).name] = pid
        return found

    def program(self):
        return next(pid for pid, line in children_of(self.child.pid) if b"--group" not in line.split(b"\0"))


def by_name(program, path, spec, group):
    """The file is open in a server of the group that its name says, and in no other one."""
    with Running(spec, [program, path, "5", "100000", "300"], rig.environment(rig.LIBDIR), path, 1_000_000) as running:
        have = []
        for name, pid in running.servers().items():
            links = (os.readlink(link) for link in Path("/proc/%d/fd" % pid).iterdir() if os.path.islink(link))
            if str(path) in links:
                have.append(name)
        if len(have) != 1 or have[0].split(".")[0] != str(group):
            raise Wrong("servers %s have it" % have)


def wrong_specs():
    for spec, why in (("groups=2,out_*=3", "groups have the numbers 1 to 2"), ("size=0", "from 1 to 64"), ("group=2", "known are"), ("*.nc", "no number"), ("groups=64,size=64", "at most 256")):
        done = served(spec, ["true"])
        if done.returncode == 0 or why not in done.stderr:
            raise Wrong("%s ends with %s: %r" % (spec, done.returncode, done.stderr))


def killed_server(program, scratch, fmt):
    """The program learns of it within seconds, and its file can be read."""
    path = scratch / "other.nc"
    with Running("groups=1", [program, path, fmt, "100000", "300"], rig.environment(rig.LIBDIR), path, 20_000_000) as running:
        program_pid = running.program()
        os.kill(running.servers()["1.1"], signal.SIGKILL)
        killed = time.monotonic()
        line = running.child.stdout.readline().decode()
        took = time.monotonic() - killed
        os.kill(program_pid, signal.SIGKILL)
        running.child.communicate(timeout=60)
    if "I/O server" not in line or took > 60:
        raise Wrong("after %.1f s it says %r" % (took, line))
    rig.must([rig.tool("ncdump"), "-h", path], rig.environment(rig.reference()))


def full_device(program, scratch, fmt):
    """The program is told, nothing hangs, and the command says that the file is not whole."""
    path = scratch / "other.nc"
    done = served("groups=1", [program, path, fmt, "30", "300"], rig.environment(rig.LIBDIR, ZONDA_IO="fault:write:20+:enospc,file"))
    if done.returncode == 0:
        raise Wrong("ends with 0: %r" % done.stderr)
    if " 28 " not in done.stdout and "28" not in done.stderr and "space" not in done.stderr:
        raise Wrong("says %r and %r" % (done.stdout[-300:], done.stderr[-300:]))


def no_folder(program, scratch):
    """The code is that of a program that writes for itself."""
    command = [program, scratch / "nowhere" / "x.nc", "4", "1", "10"]
    alone, done = rig.run(command, rig.environment(rig.LIBDIR), seconds=SECONDS), served("groups=2", command)
    firsts = [(way.stdout.splitlines() or [""])[0] for way in (alone, done)]
    codes = [first.split(") ")[-1].split(" ")[0] for first in firsts]
    if codes[0] != codes[1] or codes[0] in ("", "0") or "nowhere" not in firsts[1]:
        raise Wrong("says %r, and alone %r" % (firsts[1], firsts[0]))


def no_servers(program, scratch):
    done = rig.run([program, scratch / "x.nc", "4", "1", "10"], rig.environment(rig.LIBDIR, ZONDA_SERVERS=scratch / "nobody"), seconds=SECONDS)
    first = done.stdout.splitlines()[0] if done.stdout else ""
    if "no I/O servers" not in first:
        raise Wrong("says %r" % first)


RANKS = [(1, "groups=1"), (3, "groups=2"), (4, "groups=1"), (2, "size=3"), (3, "groups=2,size=2"), (4, "groups=1,size=3,other*=1")]


def ranks(options, counts, scratch):
    import launch
    include = rig.LIBDIR / "netcdf" / "mpi" / "include"
    for mpi in launch.known()[:2]:
        if not mpi.there_is():
            counts.skip(mpi.name, "not installed")
            continue
        program = scratch / ("ranks-" + mpi.name)
        rig.must([mpi.compiler, "-O1", "-I", include, "-I", rig.INCDIR, HERE / "ranks.c", "-o", program, "-L", rig.LIBDIR, "-l:" + rig.SONAME], launch.environment(mpi))
        for fmt in "54":
            for n, spec in options.by([(3, "groups=2"), (3, "size=2")], RANKS, [(n, "groups=%d,size=%d" % (g, k)) for n in (1, 2, 3, 4, 8) for g in (1, 2, 4) for k in (1, 2, 3)]):
                name = "%s: %d ranks, format %s, %s" % (mpi.name, n, fmt, spec)
                if options.wants(name):
                    counts.attempt(name, same_ranks, launch, mpi, program, scratch, fmt, n, spec)
            for how in ("kill", "leave"):
                for spec in options.by(("size=2",), ("size=1", "size=2"), ("size=1", "size=2", "size=3")):
                    name = "%s: a rank ends early (%s), format %s, %s" % (mpi.name, how, fmt, spec)
                    if options.wants(name):
                        counts.attempt(name, ended_rank, launch, mpi, program, scratch, fmt, how, spec)
            for spec in options.by(("size=2",), ("size=1", "size=2"), ("size=1", "size=3")):
                name = "%s: a rank ends early, and the others close the file, format %s, %s" % (mpi.name, fmt, spec)
                if options.wants(name):
                    counts.attempt(name, closed_by_others, launch, mpi, program, scratch, fmt, spec)
            for spec, server in options.by([("size=2", "1.2")], [("size=2", "1.1"), ("size=3", "1.3")], [("size=%d" % k, "1.%d" % m) for k in (2, 3) for m in range(1, k + 1)]):
                name = "%s: a server is killed (%s of %s), format %s" % (mpi.name, server, spec, fmt)
                if options.wants(name):
                    counts.attempt(name, killed_member, launch, mpi, program, scratch, fmt, spec, server)


def same_ranks(launch, mpi, program, scratch, fmt, n, spec):
    one, other, env = scratch / "one.nc", scratch / "other.nc", launch.environment(mpi, rig.LIBDIR)
    rig.must(launch.command(mpi, n, [program, one, fmt, "9"]), env, seconds=SECONDS)
    done = served(spec, launch.command(mpi, n, [program, other, fmt, "9"]), env)
    if (done.returncode, done.stdout) != (0, ""):
        raise Wrong("ends with %s and says %r %r" % (done.returncode, done.stdout, done.stderr[-500:]))
    alike(one, other)


def killed_member(launch, mpi, program, scratch, fmt, spec, server):
    """Ranks of all servers of the group learn of it, and nobody waits for ever. The file has what was committed."""
    path, env = scratch / "other.nc", launch.environment(mpi, rig.LIBDIR)
    with Running(spec, launch.command(mpi, 4, [program, path, fmt, "1000000"]), env, path, 4_000_000) as running:
        os.kill(running.servers()[server], signal.SIGKILL)
        out, err = running.child.communicate(timeout=SECONDS)
    said = (out + err).decode(errors="replace")
    if running.child.returncode == 0 or "I/O server" not in said:
        raise Wrong("ends with %s and says %r" % (running.child.returncode, said[-600:]))
    text = rig.must([rig.tool("ncdump"), "-h", path], rig.environment(rig.reference()))
    if int(text.split("time = UNLIMITED ; // (")[1].split()[0]) < 4:
        raise Wrong("nothing was committed: %s" % text[:300])
    rig.must([rig.tool("ncdump"), "-v", "a,b", path], rig.environment(rig.reference()))


def closed_by_others(launch, mpi, program, scratch, fmt, spec):
    """Ranks that close a file which is over already end, as all others do: nobody waits for ever at the end of a process."""
    path, env = scratch / "other.nc", launch.environment(mpi, rig.LIBDIR, ZONDA_PAR_TIMEOUT="4")
    path.unlink(missing_ok=True)
    done = served(spec, launch.command(mpi, 3, [program, path, fmt, "12", "go-on", "1", "6"]), env)
    if done.returncode != 1 or "I/O server" not in done.stdout:
        raise Wrong("ends with %s and says %r %r" % (done.returncode, done.stdout[-400:], done.stderr[-400:]))
    rig.must([rig.tool("ncdump"), path], rig.environment(rig.reference()))


def ended_rank(launch, mpi, program, scratch, fmt, how, spec):
    """What all ranks had put is committed: the file can be read, with at least the steps before the last nc_sync. Nobody waits for ever."""
    path, env = scratch / "other.nc", launch.environment(mpi, rig.LIBDIR, ZONDA_PAR_TIMEOUT="4")
    path.unlink(missing_ok=True)
    done = served(spec, launch.command(mpi, 3, [program, path, fmt, "4000", how, "1", "6"]), env)
    # A rank that is there and makes no call is waited for, as by ranks that write for themselves.
    if how == "leave" and not re.search(r"waited [\d.]+ s for rank 1, in vain", done.stderr + done.stdout):
        raise Wrong("nobody says for whom it waits: %r %r" % (done.stdout[-400:], done.stderr[-400:]))
    text = rig.must([rig.tool("ncdump"), "-h", path], rig.environment(rig.reference()))
    length = int(text.split("time = UNLIMITED ; // (")[1].split()[0])
    if not 4 <= length <= 8:
        raise Wrong("%d records after a rank ended in step 6" % length)


def main():
    p = rig.parser(__doc__, seed=1, parts={"lives": rig.QUICK, "model": rig.QUICK, "ranks": rig.QUICK})
    options, counts = rig.arguments(p), rig.Counts()
    rig.two_libraries()
    with rig.scratch() as scratch:
        for part in options.chosen():
            {"lives": lives, "model": model, "ranks": ranks}[part](options, counts, scratch)
    return counts


if __name__ == "__main__":
    rig.main(main)

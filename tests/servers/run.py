#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""I/O servers (zonda run --servers) beside the same programs that write for themselves.

    run.py [--quick] [--long] [--only REGEX] [--parts LIST] [--seed N]

lives   random lives of files (tests/async/life.c): what is printed, and the files, byte by byte
model   a model's files, by one group, four, and groups of several servers; files by their names; large puts; killed programs; killed servers; a full device; other folders
ranks   programs of MPI, by each of Debian's MPIs: the same bytes as without servers, however many servers a group has; a killed rank; a killed server
extra   servers that are ranks of the program (nc_zonda_servers): the same bytes, by memory and by messages, from C and Fortran; what is refused
seen    traces of programs and servers, and looks at running ones (zonda trace, zonda top)
reading servers that read (read=on, read=all): random gets, walks, ranks of MPI, tools of the reference, files that change, killed servers and clients
"""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(1, str(HERE.parent))
sys.path.insert(2, str(HERE.parent / "par"))
import rig  # noqa: E402
import seen  # noqa: E402
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


def same_text(one, other):
    """The reference's ncdump says the same of both."""
    texts = [rig.must([rig.tool("ncdump"), "-n", "x", path], rig.environment(rig.reference())) for path in (one, other)]
    if texts[0] != texts[1]:
        raise Wrong("ncdump says other things of %s and %s" % (rig.keep(one), rig.keep(other)))


def lives(options, counts, scratch):
    life = rig.compile_c(scratch / "life", *(HERE.parent / "async" / name for name in ("life.c", "transfer.c")), libraries=["-lpthread", "-ldl", "-lm"])
    for seed in range(options.seed, options.seed + options.by(8, 60, 2000)):
        fmt = "12534"[seed % 5]
        if options.wants("life %d %s" % (seed, fmt)):
            counts.attempt("life %d %s" % (seed, fmt), one_life, life, scratch, seed, fmt, SPECS[seed % len(SPECS)])


def one_life(life, scratch, seed, fmt, spec):
    said = []
    for way in ("direct", "served"):
        folder = scratch / way
        folder.mkdir(exist_ok=True)
        for old in folder.iterdir():
            old.unlink()
        command = [life, str(seed), fmt, "60", "x.nc"]
        done = served(spec, command, cwd=folder) if way == "served" else rig.run(command, rig.environment(rig.LIBDIR), cwd=folder, seconds=SECONDS)
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
        if options.wants("room again %s" % fmt):
            counts.attempt("room again %s" % fmt, room_again, program, scratch, fmt)
        if options.wants("slow device %s" % fmt):
            counts.attempt("slow device %s" % fmt, slow_device, program, scratch, fmt)
    seers = rig.compile_c(scratch / "seers", HERE / "seers.c")
    for fmt in "54":
        for spec, how in (("groups=1", "child"), ("groups=2", "child"), ("groups=1", "rename"), ("groups=2", "link")):
            name = "who opens a closed file sees all of it: %s, format %s, %s" % (how, fmt, spec)
            if options.wants(name):
                counts.attempt(name, seen_by_all, seers, scratch, fmt, spec, how)
    if options.wants("containers"):
        counts.attempt("containers: other mounts", other_mounts, program, scratch)
        counts.attempt("containers: other numbers of processes", other_numbers, program, scratch)
    several = rig.compile_c(scratch / "several", HERE / "several.c")
    for fmt in "54":
        for spec in ("groups=1", "groups=2"):
            if options.wants("a server is killed between files, %s %s" % (fmt, spec)):
                counts.attempt("a server is killed between files, %s %s" % (fmt, spec), next_server, several, scratch, fmt, spec)
    for spec in ("groups=1", "groups=2"):
        if options.wants("idle client, %s" % spec):
            counts.attempt("idle client, %s" % spec, idle_client, program, scratch, spec)
    for spec, name, group in (("groups=3,other.*=2,*=3", "other.nc", 2), ("groups=2,size=2,o??er*=1", "other.nc", 1), ("groups=2,x.*=1,*.nc=2", "one.nc", 2)):
        if options.wants("names %s" % spec):
            counts.attempt("names %s" % spec, by_name, program, scratch / name, spec, group)
    if options.wants("wrong specs"):
        counts.attempt("wrong specs", wrong_specs)
    for mask in (0o022, 0o077, 0):
        if options.wants("modes %03o" % mask):
            counts.attempt("modes %03o" % mask, modes, program, scratch, mask)
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
    same_text(one, other)


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


def seen_by_all(program, scratch, fmt, spec, how):
    """Whoever opens a file after another process of the job, or this one by another name, has closed it."""
    for old in scratch.glob("seen.nc*"):
        old.unlink()
    env = rig.environment(rig.LIBDIR, ZONDA_IO="cache,throttle:60M,file")
    done = served(spec, [program, scratch / "seen.nc", fmt, how], env)
    if (done.returncode, done.stdout) != (0, "60\n"):
        raise Wrong("ends with %s and says %r %r" % (done.returncode, done.stdout, done.stderr[-300:]))


UNSHARE = "/usr/bin/unshare"


def can_unshare(*how):
    return os.path.exists(UNSHARE) and rig.run([UNSHARE, *how, "true"]).returncode == 0


def other_mounts(program, scratch):
    """A program that sees another folder at the path than its servers is told, and does not look for a file that is elsewhere."""
    if not can_unshare("-m"):
        print("skip containers: no rights to unshare")
        return
    folder = scratch / "mounted"
    folder.mkdir(exist_ok=True)
    line = "mount -t tmpfs none %s && exec %s %s 1 3 40" % (folder, program, folder / "hidden.nc")
    done = served("groups=1", [UNSHARE, "-m", "sh", "-c", line])
    if done.returncode == 0 or "different mounts" not in done.stdout:
        raise Wrong("ends with %s and says %r %r" % (done.returncode, done.stdout[-300:], done.stderr[-300:]))


def other_numbers(program, scratch):
    """A program has another number for its server than for itself; that somebody with that number ends is not its end."""
    if not can_unshare("-fp", "--mount-proc"):
        print("skip containers: no rights to unshare")
        return
    one, other = scratch / "one.nc", scratch / "other.nc"
    direct_model(program, one, "1", 8, 40)
    line = "sleep 1 & P=$!; %s -fp --mount-proc sh -c \"echo $((P-1)) > /proc/sys/kernel/ns_last_pid; MODEL_SLEEPS=1 %s %s 1 8 40\"" % (UNSHARE, program, other)
    done = served("groups=1", ["sh", "-c", line])
    if (done.returncode, done.stdout) != (0, ""):
        raise Wrong("ends with %s and says %r %r" % (done.returncode, done.stdout[-300:], done.stderr[-300:]))
    alike(one, other)


def next_server(program, scratch, fmt, spec):
    """Another server takes the place of a killed one: files that are created later are whole, and the exit status says that one may not be."""
    folders = [scratch / name for name in ("direct", "served")]
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
    rig.must([program, folders[0], fmt, "60"], rig.environment(rig.LIBDIR))
    with Running(spec, [program, folders[1], fmt, "60"], rig.environment(rig.LIBDIR), folders[1] / "9.nc", 1000) as running:
        os.kill(running.servers()["1.1"], signal.SIGKILL)
        out, err = (text.decode(errors="replace") for text in running.child.communicate(timeout=SECONDS))
    statuses = dict(line.split(" ", 2)[:2] for line in out.splitlines())
    bad = [number for number, status in statuses.items() if status != "0"]
    if len(statuses) != 60 or len(bad) > 1 or running.child.returncode != 1 or "another server takes its place" not in err:
        raise Wrong("ends with %s and says %r %r" % (running.child.returncode, out[-500:], err[-500:]))
    # Those that were closed when it was killed, and had not been written, are lost without a code for the program: few, at that time.
    others = [path for path in sorted(folders[1].iterdir()) if path.read_bytes() != (folders[0] / path.name).read_bytes()]
    if len(list(folders[1].iterdir())) < 59 or len(others) > 2 or any(not 8 <= int(path.stem) <= 25 for path in others):
        raise Wrong("%s are other files than without servers" % [path.name for path in others])


def peaks_of(pids):
    """The most memory that each of these processes has had, in bytes."""
    found = {}
    for pid in pids:
        try:
            lines = Path("/proc/%d/status" % pid).read_text().splitlines()
        except OSError:
            continue
        found.update((pid, 1024 * int(line.split()[1])) for line in lines if line.startswith("VmHWM"))
    return found


def slow_device(program, scratch, fmt):
    """However much waits for a slow device: the memory of the program and of its server keeps to ZONDA_MEMORY. A model of 256 MB, in puts of 1 MiB."""
    memory, one, other = 32 << 20, scratch / "one.nc", scratch / "other.nc"
    direct_model(program, one, fmt, 60, 1024)
    env = rig.environment(rig.LIBDIR, ZONDA_MEMORY=str(memory), ZONDA_IO="throttle:150M,file")
    words = [rig.ZONDA, "run", "--servers", "groups=1", "--", program, other, fmt, "60", "1024"]
    child = subprocess.Popen(list(map(str, words)), env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    peaks = {"server": 0, "program": 0}
    try:
        until = time.monotonic() + SECONDS
        while child.poll() is None and time.monotonic() < until:
            for pid, words in children_of(child.pid):
                who = "server" if b"--group" in words else "program"
                peaks[who] = max(peaks[who], peaks_of([pid]).get(pid, 0))
            time.sleep(0.005)
        said = child.communicate(timeout=10)[0]
    finally:
        if child.poll() is None:
            child.kill()
            child.wait()
    if (child.returncode, said) != (0, b""):
        raise Wrong("ends with %s and says %r" % (child.returncode, said))
    alike(one, other)
    # Half of the memory waits in the ring, half in the server; of each a frame more, and what the library takes without data.
    if not all(8 << 20 < peak < memory + (40 << 20) for peak in peaks.values()):
        raise Wrong("with %d MiB of memory there are %s MiB" % (memory >> 20, {who: peak >> 20 for who, peak in peaks.items()}))


def idle_client(program, scratch, spec):
    """A server that has slept for long wakes up for the next call, and sees that its client has gone."""
    one, other = scratch / "one.nc", scratch / "other.nc"
    direct_model(program, one, "4", 3, 40)
    env = rig.environment(rig.LIBDIR, MODEL_SLEEPS="2")
    done = served(spec, [program, other, "4", "3", "40"], env)
    if (done.returncode, done.stdout) != (0, ""):
        raise Wrong("ends with %s and says %r %r" % (done.returncode, done.stdout, done.stderr))
    alike(one, other)
    done = served(spec, [program, other, "4", "3", "40", "kill", "2"], env)
    if done.returncode != 128 + signal.SIGKILL:
        raise Wrong("ends with %s: %s" % (done.returncode, done.stderr))


def full_device(program, scratch, fmt):
    """The program is told, nothing hangs, and the command says that the file is not whole."""
    path = scratch / "other.nc"
    for steps, rows in (("30", "300"), ("12", "20000")):
        env = rig.environment(rig.LIBDIR, ZONDA_IO="fault:write:20+:enospc,file", ZONDA_FULL_DEVICE_WAIT="3")
        done = served("groups=1", [program, path, fmt, steps, rows], env)
        if done.returncode == 0:
            raise Wrong("ends with 0: %r" % done.stderr)
        if "space" not in done.stderr or "tries again for up to 3 s" not in done.stderr:
            raise Wrong("says %r and %r" % (done.stdout[-300:], done.stderr[-300:]))


def room_again(program, scratch, fmt):
    """A device that is full for a while: the program is told at most, and the file is that of a device with room."""
    one, other = scratch / "one.nc", scratch / "other.nc"
    direct_model(program, one, fmt, 6, 300)
    n_told = 0
    for number in range(1, 60, 7):
        env = rig.environment(rig.LIBDIR, ZONDA_IO="fault:write:%d:enospc,file" % number)
        done = served("groups=1", [program, other, fmt, "6", "300"], env)
        calls = {line.split()[0] for line in done.stdout.splitlines()}
        is_told = "tries again" in done.stderr
        n_told += is_told
        if calls - {"nc_put_vara_float", "nc_close(file)"} or (done.returncode != 0) != bool(calls) or calls and not is_told:
            raise Wrong("write %d: ends with %s and says %r %r" % (number, done.returncode, done.stdout, done.stderr))
        if fmt == "4":
            # What was made again may be elsewhere in the file.
            same_text(one, other)
        else:
            alike(one, other)
    if not n_told:
        raise Wrong("no device was full")


def no_folder(program, scratch):
    """The code is that of a program that writes for itself."""
    command = [program, scratch / "nowhere" / "x.nc", "4", "1", "10"]
    alone, done = rig.run(command, rig.environment(rig.LIBDIR), seconds=SECONDS), served("groups=2", command)
    firsts = [(way.stdout.splitlines() or [""])[0] for way in (alone, done)]
    codes = [first.split(") ")[-1].split(" ")[0] for first in firsts]
    if codes[0] != codes[1] or codes[0] in ("", "0") or "nowhere" not in firsts[1]:
        raise Wrong("says %r, and alone %r" % (firsts[1], firsts[0]))


def modes(program, scratch, mask):
    """Files have the modes that the program would have given them; those that were there keep theirs."""
    old = os.umask(mask)
    try:
        for path, mode in ((scratch / "new.nc", 0o666 & ~mask), (scratch / "kept.nc", 0o640)):
            path.unlink(missing_ok=True)
            if path.name == "kept.nc":
                path.touch()
                path.chmod(mode)
            done = served("groups=1", [program, path, "4", "1", "10"])
            if done.returncode != 0 or path.stat().st_mode & 0o777 != mode:
                raise Wrong("%s: ends with %s, and %s has the mode %o, not %o" % (done.stderr, done.returncode, path.name, path.stat().st_mode & 0o777, mode))
    finally:
        os.umask(old)


def no_servers(program, scratch):
    done = rig.run([program, scratch / "x.nc", "4", "1", "10"], rig.environment(rig.LIBDIR, ZONDA_SERVERS=scratch / "nobody"), seconds=SECONDS)
    first = done.stdout.splitlines()[0] if done.stdout else ""
    if "no I/O servers" not in first:
        raise Wrong("says %r" % first)


INCLUDE = rig.LIBDIR / "netcdf" / "mpi" / "include"
RANKS = [(1, "groups=1"), (3, "groups=2"), (4, "groups=1"), (2, "size=3"), (3, "groups=2,size=2"), (4, "groups=1,size=3,other*=1")]


def each_mpi(counts, scratch, source="ranks"):
    """Debian's MPIs, and the program for each."""
    import launch
    for mpi in launch.known()[:2]:
        if not mpi.there_is():
            counts.skip(mpi.name, "not installed")
            continue
        program = scratch / (source + "-" + mpi.name)
        rig.must([mpi.compiler, "-O1", "-I", INCLUDE, "-I", rig.INCDIR, HERE / (source + ".c"), "-o", program, "-L", rig.LIBDIR, "-l:" + rig.SONAME], launch.environment(mpi))
        yield launch, mpi, program


def ranks(options, counts, scratch):
    for launch, mpi, program in each_mpi(counts, scratch):
        for fmt in "54":
            if options.wants("%s: puts ask nothing, format %s" % (mpi.name, fmt)):
                counts.attempt("%s: puts ask nothing, format %s" % (mpi.name, fmt), asks_nothing, launch, mpi, program, scratch, fmt)
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


def asks_nothing(launch, mpi, program, scratch, fmt):
    """Puts wait for no server: what ranks ask is how long the file is, at the end, by a call of theirs."""
    for old in scratch.glob("asked-*"):
        old.unlink()
    env = launch.environment(mpi, rig.LIBDIR, ZONDA_TRACE=scratch / "asked-%r")
    done = served("groups=1", launch.command(mpi, 3, [program, scratch / "other.nc", fmt, "9"]), env)
    if (done.returncode, done.stdout) != (0, ""):
        raise Wrong("ends with %s and says %r %r" % (done.returncode, done.stdout, done.stderr[-500:]))
    for rank in range(3):
        text = rig.must([rig.ZONDA, "trace", scratch / ("asked-%d" % rank)], rig.environment(rig.LIBDIR))
        # Once for each variable, in its first put, and at the end: not for each of 18 puts.
        asked = re.search(r"^ *shape +(\d+)", text.split("asked of servers")[1], re.M)
        if not asked or int(asked.group(1)) > 8:
            raise Wrong("rank %d asks for lengths: %s" % (rank, text[-1500:]))


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
    """What all ranks had put is committed, and nobody waits for ever."""
    path, env = scratch / "other.nc", launch.environment(mpi, rig.LIBDIR, ZONDA_PAR_TIMEOUT="4")
    path.unlink(missing_ok=True)
    done = served(spec, launch.command(mpi, 3, [program, path, fmt, "4000", how, "1", "6"]), env)
    # A rank that is there and makes no call is waited for, as by ranks that write for themselves.
    if how == "leave" and not re.search(r"waited [\d.]+ s for rank 1, in vain", done.stderr + done.stdout):
        raise Wrong("nobody says for whom it waits: %r %r" % (done.stdout[-400:], done.stderr[-400:]))
    text = rig.must([rig.tool("ncdump"), "-h", path], rig.environment(rig.reference()))
    length = int(text.split("time = UNLIMITED ; // (")[1].split()[0])
    if length != 7:
        raise Wrong("%d records after a rank ended with its seventh" % length)


def extra(options, counts, scratch):
    for launch, mpi, program in each_mpi(counts, scratch):
        def attempt(name, test, *arguments):
            if options.wants(name):
                counts.attempt("%s: %s" % (mpi.name, name), test, launch, mpi, program, scratch, *arguments)

        for fmt in "54":
            few = [(2, 1, "groups=1"), (3, 2, "groups=2,way=messages")]
            usual = [(1, 1, "groups=1"), (3, 2, "groups=2"), (2, 1, "groups=1,way=messages"), (4, 2, "groups=2,way=messages"), (3, 0, "groups=0"),
                     (3, 2, "size=2"), (3, 2, "size=2,way=messages")]  # fmt: skip
            many = [(n, g * k, "groups=%d,size=%d%s" % (g, k, way)) for n in (1, 2, 4, 8) for g, k in ((0, 1), (1, 1), (3, 1), (1, 3)) for way in ("", ",way=messages")]
            for n, servers, spec in options.by(few, usual, many):
                attempt("extra: %d ranks and %s, format %s" % (n, spec, fmt), with_extra_ranks, fmt, n, servers, spec, 9)
        attempt("extra: more than fits on the way", with_extra_ranks, "5", 2, 1, "groups=1,way=messages", 700)
        attempt("extra: a rank is killed", killed_beside_servers)
        attempt("extra: what is refused", refused_servers)
        attempt("extra: beside zonda run", servers_of_both)
        if mpi.fortran and rig.tool(mpi.fortran):
            attempt("extra: Fortran", by_fortran)


def with_extra_ranks(launch, mpi, program, scratch, fmt, n, servers, spec, steps):
    one, other, env = scratch / "one.nc", scratch / "other.nc", launch.environment(mpi, rig.LIBDIR, TMPDIR=scratch)
    rig.must(launch.command(mpi, n, [program, one, fmt, steps]), env, seconds=SECONDS)
    other.unlink(missing_ok=True)
    rig.must(launch.command(mpi, n + servers, [program, other, fmt, steps, "servers", spec]), env, seconds=SECONDS)
    alike(one, other)
    left = list(scratch.glob("zonda-*"))
    if left:
        raise Wrong("%s are left" % left)


def killed_beside_servers(launch, mpi, program, scratch):
    """The launcher ends all ranks, also the server. The file is what was committed."""
    path, env = scratch / "other.nc", launch.environment(mpi, rig.LIBDIR, TMPDIR=scratch)
    path.unlink(missing_ok=True)
    done = rig.run(launch.command(mpi, 3, [program, path, "4", "4000", "kill", "1", "40", "servers", "groups=1"]), env, seconds=SECONDS)
    if done.returncode == 0:
        raise Wrong("ends with 0")
    if path.exists() and path.stat().st_size > 0:
        rig.must([rig.tool("ncdump"), "-h", path], rig.environment(rig.reference()))
    for folder in scratch.glob("zonda-*"):
        shutil.rmtree(folder)


def refused_servers(launch, mpi, program, scratch):
    env = launch.environment(mpi, rig.LIBDIR, TMPDIR=scratch)
    words = [program, scratch / "no.nc", "5", "1"]
    for n, arguments, why in ((3, ["servers", "groups=3"], "3 ranks are too few"), (2, ["servers", "groups=x"], "groups=x: no number"), (2, ["servers", "size=0"], "size is a number"),
                              (3, ["twice", "groups=1"], "called before"), (2, ["servers", "groups=1", ":", "-n", "1", *words, "servers", "groups=2"], "something else")):  # fmt: skip
        done = rig.run(launch.command(mpi, n, [*words, *arguments]), env, seconds=SECONDS)
        if done.returncode == 0 or why not in done.stdout or "-36" not in done.stdout:
            raise Wrong("%s ends with %s and says %r" % (arguments, done.returncode, done.stdout[-400:]))
        if arguments[0] == "twice":
            # The server is there, and the launcher ends it.
            for folder in scratch.glob("zonda-*"):
                shutil.rmtree(folder)
    if (scratch / "no.nc").exists() or list(scratch.glob("zonda-*")):
        raise Wrong("there are %s" % list(scratch.iterdir()))


def servers_of_both(launch, mpi, program, scratch):
    """Where servers were there before, the program's ranks all compute."""
    one, other, env = scratch / "one.nc", scratch / "other.nc", launch.environment(mpi, rig.LIBDIR)
    rig.must(launch.command(mpi, 3, [program, one, "4", "5"]), env, seconds=SECONDS)
    done = served("groups=1", launch.command(mpi, 3, [program, other, "4", "5", "servers", "groups=2"]), env)
    if (done.returncode, done.stdout) != (0, ""):
        raise Wrong("ends with %s and says %r" % (done.returncode, done.stdout))
    alike(one, other)


def by_fortran(launch, mpi, _program, scratch):
    import guide
    env = launch.environment(mpi, rig.LIBDIR)
    program, folder = scratch / "divided", scratch / "module"
    folder.mkdir(exist_ok=True)
    rig.must([rig.tool(mpi.fortran), "-J", folder, INCLUDE / "zonda.f90", HERE / "divided.f90", "-o", program, *guide.configured("--fflags", "--flibs")], env)
    files = []
    for n, spec in ((3, "groups=0"), (4, "groups=1"), (5, "groups=2,way=messages")):
        path = scratch / ("fortran-%d.nc" % n)
        rig.must(launch.command(mpi, n, [program, path, spec]), env, seconds=SECONDS)
        files.append(path)
    text = rig.must([rig.tool("ncdump"), files[0]], rig.environment(rig.reference()))
    if "time = UNLIMITED ; // (6 currently)" not in text or "6150" not in text:
        raise Wrong("ncdump says %r" % text[-400:])
    alike(files[0], files[1])
    alike(files[0], files[2])


READING = "groups=2,read=all"


def reading(options, counts, scratch):
    program, path = rig.compile_c(scratch / "read", HERE / "read.c"), scratch / "read.nc"
    life = rig.compile_c(scratch / "life", *(HERE.parent / "async" / name for name in ("life.c", "transfer.c")), libraries=["-lpthread", "-ldl", "-lm"])
    for seed in range(options.seed + 5000, options.seed + 5000 + options.by(3, 10, 500)):
        name = "reading: life %d" % seed
        if options.wants(name):
            counts.attempt(name, one_life, life, scratch, seed, "12534"[seed % 5], READING)
    for fmt in FORMATS:
        rig.must([program, "make", path, fmt, "12", "90"], rig.environment(rig.LIBDIR))
        for seed in range(options.seed, options.seed + options.by(2, 10, 300)):
            name = "reading: gets %s %d" % (fmt, seed)
            if options.wants(name):
                counts.attempt(name, same_said, [program, "get", path, seed], "groups=1,read=on" if seed % 2 else READING)
        for name, test, *arguments in (("ncdump", same_said, [rig.tool("ncdump"), path]), ("changes", changed_files, program, scratch, fmt), ("killed server", killed_reader, program, path),
                                       ("killed client", killed_reading_client, program, path), ("read ahead", read_ahead, program, path, scratch)):  # fmt: skip
            if options.wants("reading: %s %s" % (name, fmt)):
                counts.attempt("reading: %s %s" % (name, fmt), test, *arguments)
    if options.wants("reading: nccopy"):
        counts.attempt("reading: nccopy", copied_by_reference, path, scratch)
    for launch, mpi, program in each_mpi(counts, scratch, "readers"):
        for n, more in options.by([(3, "")], [(1, ""), (4, ""), (3, "groups=1,read=all"), (3, "groups=2,read=on,way=messages")], [(n, way) for n in (1, 2, 4, 8) for way in ("", "groups=1,read=all", "groups=2,read=on,way=messages")]):
            name = "%s: reading: %d ranks %s" % (mpi.name, n, more)
            if options.wants(name):
                counts.attempt(name, reading_ranks, launch, mpi, program, path, scratch, n, more)


def same_said(command, spec=READING):
    alone, done = rig.run(command, rig.environment(rig.LIBDIR), seconds=SECONDS), served(spec, command)
    if alone.returncode != 0 or not alone.stdout:
        raise Wrong("alone it ends with %s: %s" % (alone.returncode, alone.stderr[-400:]))
    if (done.returncode, done.stderr) != (0, alone.stderr):
        raise Wrong("ends with %s and says %r" % (done.returncode, done.stderr[-400:]))
    if done.stdout != alone.stdout:
        raise Wrong("differs: %s" % [pair for pair in zip(alone.stdout.splitlines(), done.stdout.splitlines()) if pair[0] != pair[1]][:3])


def changed_files(program, scratch, fmt):
    for spec in (READING, "groups=0"):
        done = served(spec, [program, "changes", scratch / "changes.nc", fmt])
        if (done.returncode, done.stdout, done.stderr) != (0, "ended\n", ""):
            raise Wrong("with %s it ends with %s and says %r %r" % (spec, done.returncode, done.stdout[-400:], done.stderr[-400:]))


def killed_reader(program, path):
    """The program reads on by itself, gets the same values, and says so once."""
    words = [rig.ZONDA, "run", "--servers", "groups=1,read=all", "--", program, "walk", path, "60"]
    child = subprocess.Popen(list(map(str, words)), env=rig.environment(rig.LIBDIR), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        if child.stdout.readline() != "begun\n":
            raise Wrong("it does not begin")
        os.kill(next(pid for pid, words in children_of(child.pid) if b"--group" in words), signal.SIGKILL)
        said, wrong = child.communicate(timeout=SECONDS)
    finally:
        if child.poll() is None:
            child.kill()
            child.wait()
    if said != "ended\n" or wrong.count("the program reads by itself now") != 1:
        raise Wrong("says %r and %r" % (said, wrong))


def killed_reading_client(program, path):
    """Another client of the same file is served on, and the server ends."""
    script = '"$0" walk "$1" 100000 >/dev/null & "$0" walk "$1" 3; kill -9 $!; "$0" walk "$1" 3'
    done = served("groups=1,read=all", ["sh", "-c", script, program, path])
    if (done.returncode, done.stdout, done.stderr) != (0, 2 * "begun\nended\n", ""):
        raise Wrong("ends with %s and says %r %r" % (done.returncode, done.stdout[-400:], done.stderr[-400:]))


def read_ahead(program, path, scratch):
    """A server finds steps of a walk read ahead: so its recording says."""
    for old in scratch.glob("trace-*"):
        old.unlink()
    done = served("groups=1,read=all", [program, "walk", path, "40"], rig.environment(rig.LIBDIR, ZONDA_TRACE=scratch / "trace-%p"))
    if (done.returncode, done.stdout) != (0, "begun\nended\n"):
        raise Wrong("ends with %s and says %r %r" % (done.returncode, done.stdout, done.stderr[-400:]))
    found = []
    for trace in scratch.glob("trace-*"):
        rig.must([rig.ZONDA, "trace", "--chrome", scratch / "trace.json", trace], rig.environment(rig.LIBDIR))
        found += [event for event in json.loads((scratch / "trace.json").read_text())["traceEvents"] if event["name"] == "read found"]
    # Of 240 that can be. How many depends on who is sooner.
    if not found:
        raise Wrong("no get was found")


def copied_by_reference(path, scratch):
    copies = []
    for way in ("direct", "served"):
        copy, env = scratch / ("copy-%s.nc" % way), rig.environment(rig.LIBDIR)
        command = [rig.tool("nccopy"), "-c", "time/1,y/30,x/256", path, copy]
        done = rig.run(command, env, seconds=SECONDS) if way == "direct" else served(READING, command, env)
        if done.returncode != 0:
            raise Wrong("%s: ends with %s and says %r" % (way, done.returncode, done.stderr))
        copies.append(copy)
    alike(*copies)


def reading_ranks(launch, mpi, program, path, scratch, n, more):
    env = launch.environment(mpi, rig.LIBDIR, TMPDIR=scratch)
    alone = rig.must(launch.command(mpi, n, [program, path]), env, seconds=SECONDS)
    if more:
        groups = int(more.split("groups=")[1][0])
        done = rig.run(launch.command(mpi, n + groups, [program, path, "servers", more]), env, seconds=SECONDS)
    else:
        done = served(READING, launch.command(mpi, n, [program, path]), env)
    if (done.returncode, done.stdout) != (0, alone):
        raise Wrong("ends with %s and says %r %r, alone %r" % (done.returncode, done.stdout[-500:], done.stderr[-500:], alone))


def main():
    parts = {"lives": lives, "model": model, "ranks": ranks, "extra": extra, "reading": reading, "seen": seen.seen}
    p = rig.parser(__doc__, seed=1, parts=dict.fromkeys(parts, rig.QUICK))
    options, counts = rig.arguments(p), rig.Counts()
    rig.two_libraries()
    with rig.scratch() as scratch:
        for part in options.chosen():
            parts[part](options, counts, scratch)
    return counts


if __name__ == "__main__":
    rig.main(main)

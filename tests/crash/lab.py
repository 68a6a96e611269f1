# SPDX-License-Identifier: MIT OR Apache-2.0
"""What the crash tests share: programs, logs, and states of a folder."""

import collections
import hashlib
import os
import random
import shutil
import struct
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(1, os.path.dirname(HERE))
import rig  # noqa: E402

ROOT = str(rig.ROOT)
OUT = os.path.join(ROOT, "out", "crash")
BIN = os.path.join(OUT, "bin")
FILE_NAME = "x.nc"
PAGE = 4096
CLASSIC = (1, 2, 5)
NETCDF4 = 4
# Scenarios whose files have megabytes, and how many states of them are enough in a short run.
LARGE = {"grow-large": 50, "move-large": 50, "counted": 12}
# Scenarios of small files in whose commits several objects change that know of each other.
INTRICATE = ("model4", "scales")


LIBDIR, COMMAND, ORACLE = str(rig.LIBDIR), str(rig.ZONDA), rig.reference() and str(rig.reference())
WRITER_LIB = os.environ.get("CRASH_WRITER_LIB", LIBDIR)
# That nobody sees a record before it is complete is Zonda's promise, not everybody's.
STRICT = os.path.realpath(WRITER_LIB) == os.path.realpath(LIBDIR)


def scenarios():
    """All scenarios, each with a version of the format that has it."""
    listed = subprocess.run([f"{BIN}/writer", "--list"], capture_output=True, text=True, check=True)
    pairs = [line.split() for line in listed.stdout.splitlines()]
    return [(scenario, int(version)) for scenario, version in pairs]


def of_each_kind(pairs, seed):
    """Of each scenario the netCDF-4 file and one classic file; which version turns with the seed."""
    names = list(dict.fromkeys(scenario for scenario, _ in pairs))
    chosen = {(s, CLASSIC[(i + seed) % 3]) for i, s in enumerate(names)}
    return [(s, v) for s, v in pairs if v == NETCDF4 or (s, v) in chosen]


# The log.

(
    MARK,
    CREATE,
    WRITE,
    LENGTH,
    ALLOCATE,
    RENAME,
    UNLINK,
    LINK,
    SYMLINK,
    MKDIR,
    FSYNC,
    FDATASYNC,
    FSYNC_FOLDER,
    CLOSE,
    EXCHANGE,
) = range(1, 16)
NAMES = {CREATE, RENAME, UNLINK, LINK, SYMLINK, MKDIR, EXCHANGE}
CHANGES = NAMES | {WRITE, LENGTH, ALLOCATE}
BARRIERS = {FSYNC, FDATASYNC, FSYNC_FOLDER}
HEAD = struct.Struct("=IIIIQQQ")

Event = collections.namedtuple("Event", "kind file at path path2 data")


def read_log(path):
    """All events, and how many of them describe the folder as it was at the start."""
    with open(path, "rb") as f:
        raw = f.read()
    events, at, n_initial = [], 0, None
    while at < len(raw):
        kind, n1, n2, _, file, offset, n = HEAD.unpack_from(raw, at)
        at += HEAD.size
        path1, path2 = raw[at : at + n1].decode(), raw[at + n1 : at + n1 + n2].decode()
        at += n1 + n2
        data = raw[at : at + n]
        at += n
        if kind == MARK and data == b"start" and n_initial is None:
            n_initial = len(events)
            continue
        events.append(Event(kind, file, offset, path1, path2, data))
    if n_initial is None or at != len(raw):
        raise ValueError(f"{path}: not a complete log")
    return events, n_initial


def take_mark(text, promise):
    """(last promised, last begun, after an error), moved on by one mark."""
    promised, begun, error = promise
    letter, k = text.split()[:2]
    if letter == "B":
        begun = int(k)
    elif letter == "P":
        promised = int(k)
    elif letter == "F":
        error = 1
    return promised, begun, error


def last_promise(marks):
    """What the marks in a file come to; a writer that never began has none."""
    promise = (-1, -1, 0)
    if os.path.exists(marks):
        with open(marks) as f:
            for line in f:
                # The last line may be cut if the writer was killed.
                if line.endswith("\n"):
                    promise = take_mark(line, promise)
    return promise


def promises(events):
    """For each event: the promise that holds from it until the next change or barrier begins."""
    after, promise = [], (-1, -1, 0)
    for e in events:
        if e.kind == MARK:
            promise = take_mark(e.data.decode(), promise)
        after.append(promise)
    result, following = [None] * len(events), len(events)
    for i in range(len(events) - 1, -1, -1):
        result[i] = after[following - 1]
        if events[i].kind in CHANGES or events[i].kind in BARRIERS:
            following = i
    return result


# Folders.


class Tree:
    """A folder of real files in which the events of a log are carried out."""

    def __init__(self, folder):
        self.folder = folder
        self.fds = {}
        self.names = {}  # of files, by path
        os.mkdir(folder)
        os.chmod(folder, 0o777)

    def path(self, name):
        return os.path.join(self.folder, name)

    def apply(self, e, start=0, end=None):
        """Carries out an event; of a write only its bytes from start to end."""
        if e.kind == CREATE:
            # A file without a name (O_TMPFILE) gets one when it is linked.
            name = e.path or f".unnamed-{e.file}"
            self.names[name] = e.file
            self.fds[e.file] = os.open(self.path(name), os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
        elif e.kind == WRITE:
            data, at = memoryview(e.data)[start:end], e.at + start
            while data:
                n = os.pwrite(self.fds[e.file], data, at)
                data, at = data[n:], at + n
        elif e.kind == LENGTH:
            os.ftruncate(self.fds[e.file], e.at)
        elif e.kind == ALLOCATE:
            mode, n = struct.unpack("=QQ", e.data)
            if mode & ~1:
                raise ValueError(f"fallocate mode {mode} is not known here")
            if not mode and os.fstat(self.fds[e.file]).st_size < e.at + n:
                os.ftruncate(self.fds[e.file], e.at + n)
        elif e.kind == RENAME:
            os.rename(self.path(e.path), self.path(e.path2))
            self.names[e.path2] = self.names.pop(e.path, 0)
        elif e.kind == EXCHANGE:
            os.rename(self.path(e.path), self.path(".exchange"))
            os.rename(self.path(e.path2), self.path(e.path))
            os.rename(self.path(".exchange"), self.path(e.path2))
            self.names[e.path], self.names[e.path2] = self.names[e.path2], self.names[e.path]
        elif e.kind == UNLINK:
            path = self.path(e.path)
            self.names.pop(e.path, None)
            os.rmdir(path) if os.path.isdir(path) and not os.path.islink(path) else os.unlink(path)
        elif e.kind == LINK:
            other = next(path for path, file in self.names.items() if file == e.file)
            self.names[e.path] = e.file
            os.link(self.path(other), self.path(e.path))
        elif e.kind == SYMLINK:
            os.symlink(e.path2, self.path(e.path))
        elif e.kind == MKDIR:
            os.mkdir(self.path(e.path))

    def close(self):
        for fd in self.fds.values():
            os.close(fd)
        self.fds = {}


def digest(folder):
    """What tells two folders apart: names, links, owners, modes and bytes."""
    told, inodes = hashlib.blake2b(), {}
    for at, folders, files in os.walk(folder):
        folders.sort()
        for name in sorted(files) + folders:
            path = os.path.join(at, name)
            about = os.lstat(path)
            first = inodes.setdefault(about.st_ino, path)
            said = (os.path.relpath(path, folder), about.st_mode, about.st_uid, about.st_gid, about.st_size)
            told.update(repr((*said, os.path.relpath(first, folder))).encode())
            if os.path.islink(path):
                told.update(os.readlink(path).encode())
            elif first == path and not os.path.isdir(path):
                for data in extents(path):
                    told.update(data)
    return told.digest()


def extents(path):
    """What is in a file, without its holes: places and bytes."""
    with open(path, "rb") as f:
        at, n = 0, os.fstat(f.fileno()).st_size
        while at < n:
            try:
                begin = os.lseek(f.fileno(), at, os.SEEK_DATA)
            except OSError:  # none behind this place
                return
            at = os.lseek(f.fileno(), begin, os.SEEK_HOLE)
            yield begin.to_bytes(8, "little")
            yield os.pread(f.fileno(), at - begin, begin)


def write_sparse(path, content):
    """A new file whose blocks of nothing but zeros are holes: ends of files are said far ahead."""
    block = 16 * PAGE
    nothing = bytes(block)
    with open(path, "wb", buffering=0) as f:
        f.truncate(len(content))
        for at in range(0, len(content), block):
            piece = content[at : at + block]
            if piece != nothing and any(piece):
                f.seek(at)
                f.write(piece)


def contents(folder):
    """Names in a folder and what they hold, to compare two folders."""
    found, inodes = {}, {}
    for at, _, files in os.walk(folder):
        for name in sorted(files):
            path = os.path.join(at, name)
            rel = os.path.relpath(path, folder)
            if os.path.islink(path):
                found[rel] = ("link", os.readlink(path))
                continue
            first = inodes.setdefault(os.stat(path).st_ino, rel)
            with open(path, "rb") as f:
                found[rel] = (first, f.read())
    return found


def copy_tree(folder, to):
    """A copy that keeps links, hard ones too."""
    subprocess.run(["cp", "-a", folder, to], check=True)


def has_journal(folder):
    for _, _, files in os.walk(folder):
        if any(name.endswith(".zonda-journal") for name in files):
            return True
    return False


def stranger(folder):
    """The number of a user who is neither we nor the file's owner, and whose journal stands beside the file; None
    where there is no such journal."""
    for place, _, files in os.walk(folder):
        for name in files:
            if name.endswith(".zonda-journal"):
                path = os.path.join(place, name)
                owner = os.lstat(path).st_uid
                file = os.stat(path.removesuffix(".zonda-journal"))
                if owner not in (0, os.geteuid(), file.st_uid):
                    return owner
    return None


class Job:
    """A scenario in a version of the format, with its own scratch folder."""

    def __init__(self, scenario, version, options, rounds=0):
        self.scenario, self.version, self.rounds, self.options = scenario, version, rounds, options
        self.random = random.Random(f"{options.seed} {scenario} {version}")
        self.scratch = tempfile.mkdtemp(prefix="zonda-crash-", dir=rig.places.top(in_memory=True))
        os.chmod(self.scratch, 0o755)
        self.serial = 0

    def __str__(self):
        return f"{self.scenario}/{self.version}"

    def args(self):
        return [self.scenario, str(self.version), str(self.rounds)]

    def bound(self, usual, long):
        """How many states to look at; those of megabytes take long."""
        if self.scenario in LARGE:
            return min(200, long) if self.options.long else min(LARGE[self.scenario], usual)
        if self.scenario in INTRICATE:
            usual = usual * 4
        elif self.version == NETCDF4:
            usual = usual * 3 // 10  # each takes longer
        return long if self.options.long else usual

    def fresh(self, stem):
        """The path of a folder that does not exist yet."""
        self.serial += 1
        return os.path.join(self.scratch, f"{stem}{self.serial}")

    def writer_folder(self):
        folder = self.fresh("work")
        os.mkdir(folder)
        os.chmod(folder, 0o777)
        return folder

    def ops(self):
        done = subprocess.run(
            [f"{BIN}/writer", "--ops", *self.args()], capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    def write(self, folder, timeout=120, **env):
        """Runs the writer to its end; its exit status and what it said."""
        done = subprocess.run(
            [f"{BIN}/writer", self.scenario, str(self.version), folder, str(self.rounds)],
            env=rig.environment(WRITER_LIB, **env),
            check=False,
            capture_output=True,
            text=True,
            timeout=timeout,
        )
        return done.returncode, done.stderr.strip()

    def logged_run(self, **env):
        """A run under the log shim: folder, events, how many of them are the start."""
        folder, log = self.writer_folder(), self.fresh("log")
        status, said = self.write(
            folder, CRASH_FOLDER=folder, CRASH_LOG=log, LD_PRELOAD=f"{BIN}/log_shim.so", **env
        )
        if status != 0:
            raise Failure(f"the writer exits with {status}: {said}")
        events, n_initial = read_log(log)
        if not any(e.kind == WRITE for e in events[n_initial:]):
            raise Failure("no write was logged")
        return folder, events, n_initial

    def done(self):
        shutil.rmtree(self.scratch, ignore_errors=True)


class Failure(Exception):
    """A part of a test that cannot go on."""

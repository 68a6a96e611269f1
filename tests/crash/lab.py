# SPDX-License-Identifier: MIT OR Apache-2.0
"""What the crash tests share: programs, logs, states of a folder, and their judgement."""

import argparse
import collections
import multiprocessing
import os
import random
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
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


def oracle_libdir():
    """Where the distribution has its library."""
    given = os.environ.get("ORACLE_LIBDIR")
    if given:
        return given
    listed = subprocess.run(["ldconfig", "-p"], capture_output=True, text=True, check=True).stdout
    for line in listed.splitlines():
        if "libnetcdf.so.19 " in line:
            return os.path.dirname(line.split()[-1])
    return None


LIBDIR = os.path.abspath(os.environ.get("ZONDA_LIBDIR", os.path.join(ROOT, "dist", "lib")))
ORACLE = oracle_libdir()
WRITER_LIB = os.environ.get("CRASH_WRITER_LIB", LIBDIR)
COMMAND = os.environ.get("ZONDA_COMMAND", os.path.join(os.path.dirname(LIBDIR), "bin", "zonda"))
# That nobody sees a record before it is complete is Zonda's promise, not everybody's.
STRICT = os.path.realpath(WRITER_LIB) == os.path.realpath(LIBDIR)


def python_with_h5py():
    """The Python that has h5py, the third reader of netCDF-4 files; None where there is none."""
    python = os.environ.get("ZONDA_PYTHON", os.path.join(ROOT, "out", "venv", "bin", "python"))
    found = os.path.exists(python) and subprocess.run(
        [python, "-c", "import h5py"], capture_output=True, check=False
    )
    return python if found and found.returncode == 0 else None


def environment(libdir, **more):
    """The environment of a child: this library, and none of the settings that change what it does."""
    env = {
        k: v
        for k, v in os.environ.items()
        if not k.startswith(("ZONDA_", "NETCDF_", "CRASH_", "LD_"))
    }
    env["LD_LIBRARY_PATH"] = libdir
    env.update(more)
    return env


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


# Judgement.


class Server:
    """A process that answers each line with a line; a crash or a hang of it is an answer too."""

    def __init__(self, libdir, *command):
        self.libdir, self.command, self.process = libdir, command, None

    def start(self):
        # Threads of numpy only take memory, of which there is a limit.
        self.process = subprocess.Popen(
            self.command,
            env=environment(self.libdir, OPENBLAS_NUM_THREADS="1", PYTHONDONTWRITEBYTECODE="1"),
            text=True,
            bufsize=1,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self.library = self.process.stdout.readline().strip()

    def ask(self, command):
        if self.process is None:
            self.start()
        try:
            self.process.stdin.write(command + "\n")
            answer = self.process.stdout.readline().strip()
        except BrokenPipeError:
            answer = ""
        if not answer:
            code = self.process.wait()
            self.process = None
            if code == 64:
                raise RuntimeError(f"check does not know: {command}")
            what = signal.Signals(-code).name if code < 0 else f"exit {code}"
            return f"crash {what}"
        return answer

    def close(self):
        if self.process:
            self.process.stdin.close()
            self.process.wait()
            self.process = None


class Checker(Server):
    """One `check` process."""

    def __init__(self, libdir, job):
        super().__init__(libdir, f"{BIN}/check", *job.args())


class H5pyChecker(Server):
    """One `check_plain` process, for files that h5py reads first."""

    reader = None  # of this process and all its jobs, since it starts slowly

    def __init__(self, job):
        super().__init__(ORACLE, f"{BIN}/check_plain", *job.args())
        if H5pyChecker.reader is None:
            H5pyChecker.reader = Server(ORACLE, job.options.h5py, os.path.join(HERE, "h5reader.py"))

    def ask(self, command):
        folder = command.split()[-1]
        said = self.reader.ask(os.path.join(folder, FILE_NAME))
        if said.startswith("crash"):
            return said
        answer = super().ask(command)
        os.unlink(os.path.join(folder, ".plain"))
        return answer if said == "ok" or answer == "ok nothing" else f"{answer} ({said})"


class Job:
    """A scenario in a version of the format, with its own scratch folder."""

    def __init__(self, scenario, version, options, rounds=0):
        self.scenario, self.version, self.rounds, self.options = scenario, version, rounds, options
        self.random = random.Random(f"{options.seed} {scenario} {version}")
        base = os.environ.get("ZONDA_SCRATCH", "/dev/shm")
        self.scratch = tempfile.mkdtemp(prefix="zonda-crash-", dir=base)
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
            env=environment(WRITER_LIB, **env),
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


class Judge:
    """Judges states of a job's folder in both libraries, of netCDF-4 files also in h5py, and counts."""

    KEPT = 2  # failed states of one job that are kept

    def __init__(self, job, part):
        self.job, self.part = job, part
        self.zonda = Checker(LIBDIR, job)
        self.readers = {"netCDF-C": Checker(ORACLE, job), "Zonda": self.zonda}
        if job.version == NETCDF4 and job.options.h5py:
            self.readers["h5py"] = H5pyChecker(job)
        self.count = collections.Counter()
        self.reasons, self.note, self.n_asked = [], "", 0
        self.budget = job.options.recoveries

    def close(self):
        for reader in self.readers.values():
            reader.close()

    def ask_all(self, folder, promise, unit):
        """What each reader says, by its name."""
        p, q, error = promise
        command = f"check {p} {q} {unit} {error} {folder}"
        self.n_asked += 1
        left_out = "h5py" if self.n_asked % self.job.options.h5py_every else None
        self.count["by h5py"] += "h5py" in self.readers and not left_out
        return {
            name: reader.ask(command) for name, reader in self.readers.items() if name != left_out
        }

    @staticmethod
    def right(answer):
        return answer.startswith(("ok", "torn"))

    def all_right(self, answers):
        return all(map(self.right, answers.values()))

    @staticmethod
    def said(answers):
        return "; ".join(f"{name}: {answer}" for name, answer in answers.items())

    def fail(self, folder, promise, why):
        self.count["failed"] += 1
        if self.count["failed"] > self.KEPT:
            return False
        keep = os.path.join(
            OUT,
            "failed",
            f"{self.part}-{self.job.scenario}-{self.job.version}-" f"{self.count['failed']}",
        )
        shutil.rmtree(keep, ignore_errors=True)
        os.makedirs(os.path.dirname(keep), exist_ok=True)
        copy_tree(folder, keep)
        p, q, error = promise
        self.reasons.append(
            f"{why}{self.note}\n    kept in {os.path.relpath(keep, ROOT)}; promised up to {p}, begun {q}: "
            f"echo check {p} {q} {PAGE} {error} $PWD/{os.path.relpath(keep, ROOT)} | "
            f"LD_LIBRARY_PATH=... out/crash/bin/check {' '.join(self.job.args())}"
        )
        return False

    def state(self, folder, promise, unit=PAGE, excuse=None, early_is_right=not STRICT, note=""):
        """Judges one state. `excuse` names a count for failures that were not promised against;
        with `early_is_right`, records may be visible before they are complete. `note` is shown
        with a failure."""
        self.note = note
        self.count["states"] += 1
        answers = self.ask_all(folder, promise, unit)
        journal = has_journal(folder)
        right = self.all_right(answers)
        if right and not journal:
            return self.passed(answers, "direct")
        if not journal:
            kinds = {answer.split()[0] for answer in answers.values()}
            if early_is_right and kinds <= {"ok", "torn", "early"}:
                self.count["early records"] += 1
                return True
            if excuse:
                self.count[excuse] += 1
                return True
            return self.fail(folder, promise, self.said(answers))
        zonda = answers["Zonda"]
        if not self.right(zonda) and not zonda.startswith("error"):
            return self.fail(folder, promise, f"with a journal beside it, Zonda: {zonda}")
        if right:
            # The journal must do no harm either; replaying each would take long.
            self.budget -= 1
            if self.budget < 0:
                return self.passed(answers, "direct")
        return self.recover(folder, promise, unit, "direct" if right else "recovered")

    def recover(self, folder, promise, unit, kind):
        """Replays the journal in copies of the state: by command, by opening for writing."""
        ways = ("command", "open")
        if not self.job.options.long:
            ways = (ways[self.count["states"] % 2],)
        for way in ways:
            copy = self.job.fresh("copy")
            copy_tree(folder, copy)
            said = self.replay(copy, way)
            answers = self.ask_all(copy, promise, unit)
            left = has_journal(copy)
            shutil.rmtree(copy)
            if said or left or not self.all_right(answers):
                return self.fail(
                    folder,
                    promise,
                    f"after recovery by {way} ({said or 'ok'}"
                    f"{', a journal is left' if left else ''}): {self.said(answers)}",
                )
        return self.passed(answers, kind)

    def replay(self, folder, way, **env):
        """What went wrong with a recovery, or None."""
        if way == "open":
            answer = self.zonda.ask(f"rewrite {folder}")
            return None if answer == "ok" else f"open for writing: {answer}"
        done = subprocess.run(
            [COMMAND, "recover", os.path.join(folder, FILE_NAME)],
            check=False,
            text=True,
            env=environment(LIBDIR, **env),
            capture_output=True,
            timeout=60,
        )
        return (
            None if done.returncode == 0 else f"exit {done.returncode}: {done.stderr.strip()[:200]}"
        )

    def passed(self, answers, kind):
        if any(a.startswith("torn") for a in answers.values()):
            self.count["torn"] += 1
            return "torn"
        if "ok nothing" in answers.values():
            self.count["nothing"] += 1
        else:
            self.count[kind] += 1
        return True

    def life_goes_on(self, folder, promise, unit=PAGE):
        """After a crash, Zonda opens the file and moves everything once more."""
        copy = self.job.fresh("copy")
        copy_tree(folder, copy)
        self.count["continued"] += 1
        answer = self.zonda.ask(f"goon {promise[0]} {promise[1]} {promise[2]} {copy}")
        answers = self.ask_all(copy, promise, unit)
        shutil.rmtree(copy)
        if answer != "ok" or not self.all_right(answers):
            return self.fail(folder, promise, f"going on: {answer}; {self.said(answers)}")
        return True


# Running parts.


def arguments(about, **defaults):
    """The options all parts have."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--long", action="store_true", help="everything, not samples")
    parser.add_argument(
        "--only",
        default="",
        metavar="PATTERN",
        help="scenarios whose SCENARIO/VERSION has this in it",
    )
    parser.add_argument(
        "--seed", type=int, default=None, help="of all random choices (printed; default: the time)"
    )
    parser.add_argument("--jobs", type=int, default=min(4, os.cpu_count() or 1), help="processes")
    for name, (kind, value, what) in defaults.items():
        parser.add_argument("--" + name.replace("_", "-"), type=kind, default=value, help=what)
    options = parser.parse_args()
    if options.seed is None:
        options.seed = int(time.time())
    options.h5py = python_with_h5py()
    options.h5py_every = 1 if options.long else 4
    options.recoveries = 10**9 if options.long else 40
    if ORACLE is None:
        print(
            "tests/crash: no libnetcdf.so.19 of the distribution to judge with\n0 passed, 0 failed, 1 skipped"
        )
        sys.exit(0)
    return options


def attempt(work):
    """One job in a process of the pool: (name, counts, reasons)."""
    function, part, scenario, version, options = work
    job = Job(scenario, version, options, getattr(options, "rounds", {}).get(scenario, 0))
    judge = Judge(job, part)
    try:
        function(job, judge)
    except Failure as why:
        judge.count["failed"] += 1
        judge.reasons.append(str(why))
    except Exception as why:  # a defect of the test must not look like a pass
        judge.count["failed"] += 1
        where = traceback.extract_tb(why.__traceback__)[-1]
        judge.reasons.append(f"{type(why).__name__}: {why} ({where.filename}, line {where.lineno})")
    finally:
        judge.close()
        job.done()
    return str(job), judge.count, judge.reasons


def each_once(options):
    """Every scenario in one classic version and in netCDF-4; with --long in all."""
    if options.long or "/" in options.only:
        return scenarios()
    return of_each_kind(scenarios(), options.seed)


def run(part, function, options, chosen=None):
    """All jobs of a part: its lines, and (passed, failed)."""
    jobs = [
        (function, part, s, v, options)
        for s, v in chosen or scenarios()
        if options.only in f"{s}/{v}"
    ]
    total, passed, failed = collections.Counter(), 0, 0
    start = time.time()
    with multiprocessing.Pool(options.jobs) as pool:
        for name, count, reasons in pool.imap_unordered(attempt, jobs):
            total.update(count)
            if count["failed"] or not count["states"]:
                failed += 1
                print(f"FAIL {part} {name}: {count['failed']} of {count['states']} states failed")
                for reason in reasons:
                    print(f"    {reason}")
            else:
                passed += 1
            sys.stdout.flush()
    details = ", ".join(
        f"{n} {what}" for what, n in sorted(total.items()) if what not in ("states", "failed")
    )
    print(
        f"crash: {part}: {len(jobs)} runs, {total['states']} states ({details}), {total['failed']} failed "
        f"[seed {options.seed}, {time.time() - start:.0f} s]"
    )
    sys.stdout.flush()
    return passed, failed


def finish(results):
    passed, failed = (sum(column) for column in zip(*results))
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed or not passed else 0)

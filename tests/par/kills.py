# SPDX-License-Identifier: MIT OR Apache-2.0
"""Ranks that are killed, stopped, starved or that leave, while life.c writes a file together.

What nc_sync promised on all ranks before that is in the file, as the distribution's ncdump and h5py read it; nobody waits for ever. A
journal that is left beside a file is completed by `zonda recover` first, as for files of one process (tests/crash).
"""
import contextlib
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

import debian
import launch
import rig
from rig import Wrong

HERE = Path(__file__).resolve().parent
FORMATS = "1254c"
HANG = 60
NC_EMPI = -131
# Elements that nobody put.
FILLS = {"_", "0"}
TMPFS_BYTES = 2 << 20
KEPT = 5
# Records that are put several at once go by way of owners of stripes.
EXCHANGED = {"PNETCDF_HINTS": "romio_cb_write=enable;striping_unit=4096"}


def compiled(mpi, folder):
    program = folder / ("life-%s" % mpi.name)
    words = ["-std=gnu11", "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-I", rig.LIBDIR / "netcdf" / "mpi" / "include", HERE / "life.c", "-o", program]
    link = ["-L%s" % rig.LIBDIR, "-l:" + rig.SONAME, "-Wl,--allow-shlib-undefined", "-lpthread"]
    rig.must([rig.tool(mpi.compiler), *words, *link], launch.environment(mpi))
    return program


@dataclass
class Life:
    """A program in ranks, what its ranks say, and how it ends."""

    mpi: launch.Mpi
    program: Path
    folder: Path
    scene: str
    format: str
    count: int
    numbers: dict = field(default_factory=dict)
    env: dict = field(default_factory=dict)
    # Where the file is, if not in the folder: a launcher that cannot write its log fails.
    disk: Path = None

    def __post_init__(self):
        self.base = (self.disk or self.folder) / "f"
        words = [self.program, self.scene, self.base, self.format, *("%s=%d" % of for of in self.numbers.items())]
        # What lives of 3 ranks put waits in queues of these, and of all where the caller says so.
        how = os.environ.get("ZONDA_ASYNC") or ("on" if self.count == 3 else "off")
        self.env = {"ZONDA_ASYNC": how, **self.env}
        with open(self.folder / "log", "ab") as log:
            self.child = subprocess.Popen(launch.command(self.mpi, self.count, words), stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                          env=launch.environment(self.mpi, rig.LIBDIR, **self.env), start_new_session=True)  # fmt: skip

    def said(self, rank):
        try:
            return Path("%s.said.%d" % (self.base, rank)).read_text()
        except FileNotFoundError:
            return ""

    def all_said(self):
        return "; ".join("rank %d: %s" % (rank, ", ".join(self.said(rank).splitlines()[1:])[-2000:]) for rank in range(self.count))

    def log(self):
        return (self.folder / "log").read_text(errors="backslashreplace").strip()[-300:]

    def wait_for(self, what, ranks=None, seconds=HANG):
        """Waits until all of these ranks have said a line that begins so."""
        end = time.monotonic() + seconds
        for rank in range(self.count) if ranks is None else ranks:
            while not re.search("^" + what, self.said(rank), re.M):
                if time.monotonic() > end or (self.child.poll() is not None and not re.search("^" + what, self.said(rank), re.M)):
                    hangs = launch.stop(self.child, 0)
                    raise Wrong("rank %d does not say \"%s\"%s; %s; %s" % (rank, what, ", and it hangs" if hangs else "", self.all_said(), self.log()))
                time.sleep(0.002)

    def processes(self):
        self.wait_for("process")
        return [int(self.said(rank).split()[1]) for rank in range(self.count)]

    def begins(self):
        """Waits until something is committed."""
        told, end = Path("%s.told" % self.base), time.monotonic() + HANG
        while not told.exists() and self.child.poll() is None and time.monotonic() < end:
            time.sleep(0.002)

    def ends(self, by_itself=True, pids=()):
        """Waits for the end of all ranks. A launcher ends with others' failure, where one was killed."""
        if launch.stop(self.child, HANG):
            raise Wrong("it hangs; %s; %s" % (self.all_said(), self.log()))
        end = time.monotonic() + 10
        for pid in pids:
            while launch.is_alive(pid):
                if time.monotonic() > end:
                    raise Wrong("the launcher has ended, and process %d has not" % pid)
                time.sleep(0.01)
        said = self.all_said()
        if "WRONG" in said:
            raise Wrong(said)
        if by_itself and self.child.returncode:
            raise Wrong("ends with %d; %s; %s" % (self.child.returncode, said, self.log()))
        # A crash of a rank is named by each launcher; a rank that was killed on purpose is no crash.
        crash = re.search(r"signal 11|SEGV|signal 6 |SIGABRT|panicked", (self.folder / "log").read_text(errors="backslashreplace"), re.I)
        if crash:
            raise Wrong("a rank crashes: %s" % self.log())
        return said

    def told(self):
        """What was committed, by file."""
        try:
            lines = Path("%s.told" % self.base).read_text().splitlines()
        except FileNotFoundError:
            return {}
        return {Path(words[0]): tuple(map(int, words[1:])) for words in map(str.split, lines) if len(words) == 4}


# ---- What is in a file


def shown(path):
    """Variables and attributes as ncdump shows them: lists of words."""
    text = rig.must([rig.tool("ncdump"), "-p", "9,17", path])
    head, _, data = text.partition("\ndata:\n")
    sizes = {name: int(n) for name, n in re.findall(r"^\t(\w+) = (?:UNLIMITED ; // \()?(\d+)", head, re.M)}
    atts = dict(re.findall(r"^\t\t:(\w+) = (.*) ;$", head, re.M))
    variables = {name: values.replace("\n", " ").split(", ") for name, values in re.findall(r"^ (\w+) =\s+(.*?) ;$", data, re.M | re.S)}
    return sizes, atts, {name: [word.strip() for word in words] for name, words in variables.items()}


def judge(path, told, is_whole=False, has_now=True):
    """What was told is there, and the rest is right or was not put."""
    if Path("%s.zonda-journal" % path).exists():
        rig.must([rig.ZONDA, "recover", path])
    n_told, n_extras, step = told
    sizes, atts, variables = shown(path)
    n, nx = sizes["time"], sizes["x"]
    if n < n_told or is_whole and n > n_told:
        raise Wrong("%s has %d records, and %d are committed" % (path.name, n, n_told))

    def check(name, expected, n_sure):
        found = variables.get(name, [])
        if len(found) < len(expected):
            raise Wrong("%s of %s has %d elements instead of %d" % (name, path.name, len(found), len(expected)))
        for at, (mine, right) in enumerate(zip(found, expected)):
            if mine != str(right) and (at < n_sure or is_whole or mine not in FILLS):
                raise Wrong("%s of %s: element %d (of %d that are committed) is %s instead of %s" % (name, path.name, at, n_sure, mine, right))

    row = [[1000 * record + x % 997 for x in range(nx)] for record in range(n)]
    whole = [value for values in row for value in values]
    if n_told:
        check("fixed", range(nx), nx)
        check("rec", whole, n_told * nx)
        check("stamp", range(n), n_told)
        if "chunk" in variables:
            check("chunk", whole, n_told * nx)
    for extra in range(n_extras):
        check("extra%d" % extra, [10 * x + extra for x in range(nx)], nx)
    now, letters = int(atts.get("now", -1)), atts.get("step", "").strip('"')
    # The attribute of the step that was told, or of the next one.
    if n_told and letters not in [chr(ord("a") + at % 26) * (at % 60 + 1) for at in (step, step + 1)]:
        raise Wrong("step of %s is %s, and %d is committed" % (path.name, letters, step))


def judge_all(life, is_whole=False):
    """Scenes without `now` are those that are not made of whole rounds."""
    has_now = life.scene not in ("full", "beside", "threads")
    for path, told in life.told().items():
        if path.exists():
            judge(path, told, is_whole, has_now)
    return life.told()


def by_h5py(paths):
    """The same records by h5py, which knows the file format by the HDF Group's library alone."""
    python = rig.python("h5py", "numpy")
    if not python or not paths:
        return
    look = """
import sys, h5py, numpy
for word in sys.argv[1:]:
    path, _, n = word.rpartition(":")
    with h5py.File(path, "r", locking=False) as file:
        x = numpy.arange(file["fixed"].shape[0]) % 997
        for name in ("rec", "chunk"):
            found = file[name][: int(n)]
            assert found.shape[0] == int(n), (path, name, found.shape, n)
            assert (found == 1000.0 * numpy.arange(int(n))[:, None] + x).all(), (path, name)
"""
    done = rig.run([python, "-c", look, *("%s:%d" % of for of in paths)])
    if done.returncode:
        raise Wrong("h5py: %s" % done.stderr.strip()[-300:])


ALONE = """
import sys, h5py, numpy
path, ranks = sys.argv[1], int(sys.argv[2])
t, y, x = numpy.ogrid[:6, : 10 * ranks, :300]
right = (1000 * t + y + x / 16).astype("f4")
right[-1, 9 * ranks :] += 0.5
with h5py.File(path, "r", locking=False) as file:
    found = file["v"][...]
assert found.shape == right.shape and (found == right).all(), (found, right)
"""


def put_alone(mpi, scratch, count, env):
    """Independent puts into a variable with filters, by the serial h5py."""
    program = scratch / ("alone-program-%s" % mpi.name)
    words = ["-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-I", rig.LIBDIR / "netcdf" / "mpi" / "include", HERE / "alone.c", "-o", program]
    rig.must([rig.tool(mpi.compiler), *words, "-L%s" % rig.LIBDIR, "-l:" + rig.SONAME, "-Wl,--allow-shlib-undefined"], launch.environment(mpi))
    python = rig.python("h5py", "numpy")
    if not python:
        raise rig.Skip("no Python with h5py")
    with room(scratch) as folder:
        status = launch.ends_with(launch.command(mpi, count, [program, folder / "f"]), launch.environment(mpi, rig.LIBDIR, **env), folder, HANG, folder / "log")
        if status != 0:
            raise Wrong("ends with %s: %s" % (status, (folder / "log").read_text(errors="backslashreplace")[-500:]))
        done = rig.run([python, "-c", ALONE, folder / "f", str(count)])
        if done.returncode:
            raise Wrong("h5py: %s" % done.stderr.strip()[-300:])


READ_BY_RANKS = """
import sys, h5py, numpy
from mpi4py import MPI
world, (path, n) = MPI.COMM_WORLD, sys.argv[1:]
n = int(n)
with h5py.File(path, "r", driver="mpio", comm=world, locking=False) as file:
    nx = file["fixed"].shape[0]
    # Columns of this rank, by one collective read each.
    here = slice(nx * world.rank // world.size, nx * (world.rank + 1) // world.size)
    x = numpy.arange(nx)[here]
    expected = {"fixed": x, "rec": 1000.0 * numpy.arange(n)[:, None] + x % 997}
    expected["chunk"] = expected["rec"]
    for name, right in expected.items():
        with file[name].collective:
            found = file[name][..., here]
        assert (found == right).all() and found.shape == right.shape, (path, name, found, right)
print("ranks %d" % world.size)
"""


def read_by_ranks(mpi, program, scratch, form, count, packed):
    """What ranks wrote, by the parallel h5py of Debian on as many ranks."""
    if not (debian.MODULES / "h5py").exists():
        raise rig.Skip("no parallel h5py in %s; scripts/setup.sh --par gets it" % debian.MODULES)
    with room(scratch) as folder:
        life = Life(mpi, program, folder, "live", form, count, {"records": 12, "files": 1, "packed": packed, "width": 96})
        life.ends()
        ((path, (n, _, _)),) = judge_all(life, is_whole=True).items()
        env = launch.environment(mpi, rig.parallel_reference(), PYTHONPATH=str(debian.MODULES))
        done = rig.run(launch.command(mpi, count, [launch.DEBIAN, "-c", READ_BY_RANKS, path, n]), env)
        if done.returncode or done.stdout.count("ranks %d" % count) != count:
            raise Wrong("the parallel h5py: %s" % (done.stderr.strip() or done.stdout)[-500:])


@contextlib.contextmanager
def room(scratch):
    """A folder for one life, kept where it fails."""
    folder = scratch / "life"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    try:
        yield folder
    except Exception:
        kept = rig.out("par", "kills")
        for at in range(KEPT):
            if not (kept / str(at)).exists():
                shutil.copytree(folder, kept / str(at), ignore=shutil.ignore_patterns("tmpfs"))
                break
        raise


# ---- What happens to a rank


def kill(mpi, program, scratch, form, count, which, seed):
    """SIGKILL to one rank at a random moment of a long life, or of short ones."""
    chance = random.Random(seed)
    numbers = {"every": chance.choice((1, 2, 4)), "width": chance.choice((16, 64, 600)), "records": 100000, "files": 1}
    numbers["packed"], numbers["block"] = chance.choice((0, 1, 2)), chance.choice((1, 4))
    if chance.random() < 0.4:
        numbers |= {"records": chance.choice((3, 8)), "files": 100000}
    with room(scratch) as folder:
        life = Life(mpi, program, folder, "live", form, count, numbers, EXCHANGED if numbers["block"] > 1 else {})
        pids = life.processes()
        if chance.random() < 0.8:
            life.begins()
        time.sleep(chance.random() * 0.5)
        os.kill(pids[which], signal.SIGKILL)
        life.ends(by_itself=False, pids=pids)
        told = judge_all(life)
        files = [(path, n[0]) for path, n in told.items() if path.exists() and n[0]]
        if form in "4c" and chance.random() < 0.3:
            by_h5py(files)
        if files and chance.random() < 0.3:
            # Life goes on: the same ranks write more.
            path, n_told = files[-1]
            later = folder / "later"
            later.mkdir()
            shutil.move(path, later / "f")
            life = Life(mpi, program, later, "resume", form, count, {"width": numbers["width"]})
            life.ends()
            n, n_extras, step = next(iter(life.told().values()))
            if n < n_told + 5:
                raise Wrong("%d records after %d were committed and 5 more were put" % (n, n_told))
            judge(later / "f", (n_told, told[path][1], told[path][2]))


def pause(mpi, program, scratch, form, count, which, seed):
    """SIGSTOP for some time: nothing is lost."""
    chance = random.Random(seed)
    with room(scratch) as folder:
        life = Life(mpi, program, folder, "live", form, count, {"records": 60, "files": 2, "packed": seed % 3, "block": 1 + seed % 2}, EXCHANGED)
        pids = life.processes()
        life.begins()
        for _ in range(2):
            time.sleep(chance.random() * 0.2)
            # The rank may have ended, and its launcher not yet.
            with contextlib.suppress(ProcessLookupError):
                os.kill(pids[which], signal.SIGSTOP)
                time.sleep(chance.random())
                os.kill(pids[which], signal.SIGCONT)
        life.ends(pids=pids)
        if len(judge_all(life, is_whole=True)) != 2:
            raise Wrong("not all files are told")


def lost(mpi, program, scratch, form, count, which, seed):
    """SIGSTOP for longer than ZONDA_PAR_TIMEOUT: the others are told and can close; so can the rank when it goes on."""
    chance = random.Random(seed)
    with room(scratch) as folder:
        life = Life(mpi, program, folder, "live", form, count, {"records": 100000, "packed": seed % 3, "block": 1 + 3 * (seed % 2)}, {"ZONDA_PAR_TIMEOUT": "1.5", **EXCHANGED})
        pids = life.processes()
        life.begins()
        time.sleep(chance.random() * 0.3)
        os.kill(pids[which], signal.SIGSTOP)
        others = [rank for rank in range(count) if rank != which]
        try:
            life.wait_for("closed", others, seconds=30)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pids[which], signal.SIGCONT)
        for rank in others:
            said = life.said(rank)
            # A rank for which the library's call had ended waits for the others itself, and meets the library's error in nc_close.
            if re.search(r"^nobody meets$", said, re.M) and re.search(r"^closed %d " % NC_EMPI, said, re.M):
                continue
            if not re.search(r"^failed .* %d \S+/f\.0\.nc: nc_\w+: waited [12](?:\.\d)? s for (rank \d|ranks \d|other ranks).*ZONDA_PAR_TIMEOUT" % NC_EMPI, said, re.M):
                raise Wrong("rank %d says %s" % (rank, said.splitlines()[-2:]))
        life.wait_for("closed", [which], seconds=30)
        life.ends(pids=pids)
        judge_all(life)


def full(mpi, program, scratch, form, count, which, seed):
    """The limit of a file's length, on one rank or on all (-1)."""
    with room(scratch) as folder:
        # The end of a number that is cut in two is that of a fill value; numbers of the classic formats are at multiples of 4.
        limit = random.Random(seed).randrange(60_000, 200_000, 4)
        life = Life(mpi, program, folder, "full", form, count, {"records": 100000, "limit": limit, "who": which, "width": 400})
        life.ends()
        judge_all(life)


def full_disk(mpi, program, scratch, form, count, seed):
    """A file system that is full."""
    with room(scratch) as folder:
        disk = folder / "tmpfs"
        disk.mkdir()
        if rig.run(["mount", "-t", "tmpfs", "-o", "size=%d" % TMPFS_BYTES, "none", disk]).returncode:
            raise rig.Skip("no tmpfs can be mounted")
        try:
            life = Life(mpi, program, folder, "full", form, count, {"records": 100000, "width": random.Random(seed).choice((1000, 5000))}, disk=disk)
            life.ends()
            judge_all(life)
        finally:
            rig.run(["umount", "-l", disk])


def simple(mpi, program, scratch, form, count, scene, numbers, env, by_itself, is_whole, expects):
    """A scene whose end says it all."""
    with room(scratch) as folder:
        life = Life(mpi, program, folder, scene, form, count, numbers, env)
        pids = life.processes()
        said = life.ends(by_itself, pids)
        if not re.search(expects, said):
            raise Wrong("no \"%s\" in %s" % (expects, said))
        if not judge_all(life, is_whole):
            raise Wrong("nothing is told: %s" % said)
        warned = (folder / "log").read_text(errors="backslashreplace").count("/f: the program ends without nc_close; what was put since the last nc_sync")
        # Both have put a record since the last nc_sync.
        leaves = scene == "unclosed" or (scene == "deserted" and numbers["who"] == 0)
        # A file whose nc_close failed, as the disk is full, is open until the end.
        may_leave = leaves or scene == "full-enddef"
        # Where ranks end without MPI_Finalize, the launcher may kill rank 0 before it can say so.
        if warned > may_leave or (warned < leaves and by_itself):
            raise Wrong("it is said %d times that the program ends without nc_close" % warned)


SIMPLE = [
    # name, scene, numbers, environment, ends well, whole, what is said
    ("nobody closes", "unclosed", {"records": 8}, {}, True, False, "ends"),
    ("nobody closes or finalizes", "unclosed", {"records": 8, "limit": 1}, {}, False, False, "ends"),
    ("rank 0 exits, the others close", "deserted", {"records": 8, "who": 0}, {}, False, False, ""),
    ("rank 1 exits, the others close", "deserted", {"records": 8, "who": 1, "limit": 3}, {}, False, False, ""),
    ("rank 0 finalizes, the others close", "finalized", {"records": 8, "who": 0}, {"ZONDA_PAR_TIMEOUT": "4"}, True, False, "closed -131 .*waited"),
    ("rank 1 finalizes, the others close", "finalized", {"records": 8, "who": 1}, {"ZONDA_PAR_TIMEOUT": "4"}, True, False, "closed -131 .*waited"),
    ("enddef fails, all close", "differing", {"who": 1}, {}, True, False, "enddef -131 .*defined different"),
    ("enddef meets a full disk", "full-enddef", {"who": -1, "width": 200}, {}, True, False, "enddef [1-9]|it fits"),
    ("enddef meets the limit of rank 0", "full-enddef", {"who": 0, "width": 200}, {}, True, False, "enddef [1-9]|it fits"),
    ("puts alone meet the limit of all ranks", "full-alone", {"who": -1, "width": 200}, {}, True, False, "sync [1-9].*close [1-9].*close again 0"),
    ("puts alone meet the limit of rank 0", "full-alone", {"who": 0, "width": 200}, {}, True, False, "sync [1-9].*close again 0"),
    ("puts alone meet the limit of rank 1", "full-alone", {"who": 1, "width": 200}, {}, True, False, "sync [1-9].*close again 0"),
    ("memory of rank 0 ends", "memory", {"who": 0, "limit": 64 << 20}, {}, True, False, "put_att -"),
    ("memory of rank 1 ends", "memory", {"who": 1, "limit": 64 << 20}, {}, True, False, "put_att -"),
    ("memory of rank 0 ends in columns", "memory-put", {"who": 0, "limit": 500 << 10, "records": 3000, "width": 100}, {"ZONDA_ASYNC": "off"}, True, True, "column -61"),
    ("memory of rank 1 ends in columns", "memory-put", {"who": 1, "limit": 500 << 10, "records": 3000, "width": 100, "packed": 1}, {"ZONDA_ASYNC": "off"}, True, True, "column -61"),
    ("files of all, of some and of one", "beside", {"records": 12}, {}, True, False, "ends"),
    ("a forked child exits", "forked", {"who": 0, "seed": 2}, {}, True, False, "ends"),
    ("a forked child closes", "forked", {"who": 1, "seed": 1}, {}, True, False, "ends"),
    ("two threads, two files", "threads", {"records": 20}, {}, True, False, "ends"),
    ("descriptors of rank 0 end", "descriptors", {"who": 0}, {}, True, False, "create [1-9].*open [1-9]"),
    ("descriptors of rank 1 end", "descriptors", {"who": 1}, {}, True, False, "create [1-9].*open [1-9]"),
    ("opened twice", "twice", {}, {}, True, False, "close of the first 0"),
]  # fmt: skip


def cases(mpi, scratch, options):
    """Name, test and arguments of each case, of which --quick takes a handful."""
    program = compiled(mpi, scratch)
    first = options.seed + 1000 * sum(map(ord, mpi.name))
    chance = random.Random(first)

    def team():
        count = chance.choice((2, 3, 4))
        return chance.choice(FORMATS), count, chance.randrange(count)

    kinds = [("killed", kill, options.by(1, 6, 200)), ("stopped for some time", pause, options.by(0, 1, 20)), ("stopped for too long", lost, options.by(1, 2, 20)),
             ("with a limit", full, options.by(1, 2, 30))]  # fmt: skip
    for name, test, n in kinds:
        for seed in range(first, first + n):
            form, count, which = team()
            if test is full and seed % 2:
                which = -1
            yield "%s: rank %d of %d, format %s, seed %d" % (name, which, count, form, seed), test, mpi, program, scratch, form, count, which, seed
    for seed in range(first, first + options.by(0, 1, 20)):
        form, count, _ = team()
        yield "full disk: %d ranks, format %s, seed %d" % (count, form, seed), full_disk, mpi, program, scratch, form, count, seed
    for count in options.by((), (3,), (1, 2, 3, 4, 8)):
        for env in options.by(({},), ({}, {"ZONDA_MEMORY": "1M"}), ({}, {"ZONDA_MEMORY": "1M"})):
            yield "puts alone into filters: %d ranks%s" % (count, ", 1 MB of memory" if env else ""), put_alone, mpi, scratch, count, env
    # Its HDF5 is built for Open MPI.
    for packed in range(2) if mpi.python == launch.DEBIAN else ():
        for form in options.by("4" if packed else "", "4c"[packed], "4c"):
            for count in options.by((2,), (4,), (1, 2, 4, 8)):
                yield "read by h5py on %d ranks, format %s, %s filters" % (count, form, "with" if packed else "without"), read_by_ranks, mpi, program, scratch, form, count, packed
    for at, (name, *scene) in enumerate(SIMPLE):
        for form in options.by(FORMATS[at % 5] if at % 8 == 2 else "", FORMATS[(at + len(mpi.name)) % 5], FORMATS):
            count = chance.choice((2, 3, 4))
            yield "%s: %d ranks, format %s" % (name, count, form), simple, mpi, program, scratch, form, count, *scene

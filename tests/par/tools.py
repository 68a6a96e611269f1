# SPDX-License-Identifier: MIT OR Apache-2.0
"""Commands under mpiexec: ranks divide `zonda copy`, `nccopy` and `zonda check`, and files, messages and statuses are those of one process.
Of other commands, and where there is no MPI, rank 0 does all of the work, and says so. What a script starts in each rank works for itself."""
import contextlib
import os
import pathlib
import random
import re
import signal
import struct
import subprocess
import time
from array import array

import launch
import rig
from rig import Wrong

RANKS, SECONDS = 3, 60
COMMAND_ALONE = "zonda: %d ranks were started, but the command does not divide its work: rank 0 does all of it" % RANKS
ALONE = "zonda: %d ranks were started, but rank 0 does all of the work: " % RANKS
CDL = "netcdf a { dimensions: x = 1000 ; variables: int v(x) ; data: v = %s ; }" % ", ".join(map(str, range(1000)))
ROWS, COLUMNS = 300, 500
# Options, and which source they are for.
COPIES = [
    ("classic", ["-k", "netcdf4", "-d", "1", "-s"]), ("classic", ["-k", "netcdf4", "-d", "2", "-c", "y/50,x/70"]), ("classic", ["-k", "cdf5"]),
    ("deflated", []), ("deflated", ["-d", "3"]), ("deflated", ["-c", "y/300,x/10"]), ("deflated", ["--no-filters"]), ("deflated", ["-k", "classic"]),
    ("deflated", ["--zstd", "3", "--fletcher32"]), ("deflated", ["-v", "v1", "--quantize", "granular,3"]), ("deflated", ["-u", "-m", "4M", "-d", "1"]),
]  # fmt: skip
NCCOPIES = [("classic", ["-d", "1"]), ("deflated", ["-d", "2", "-s"]), ("deflated", ["-k", "cdf5"]), ("deflated", ["-c", "y/100,x/100"]), ("classic", ["-V", "v0"])]


def classic(path, n_records, rows=ROWS, columns=COLUMNS, seed=1):
    """A classic file with two variables of records, whose values compress."""
    draw = random.Random(seed)
    name = lambda text: struct.pack(">i", len(text)) + text.encode() + bytes(-len(text) % 4)
    size = rows * columns * 4
    dims = b"".join(name(text) + struct.pack(">i", n) for text, n in (("time", 0), ("y", rows), ("x", columns)))
    head = lambda begin: (b"CDF\x01" + struct.pack(">iii", n_records, 10, 3) + dims + bytes(8) + struct.pack(">ii", 11, 2) + b"".join(
        name("v%d" % n) + struct.pack(">iiii", 3, 0, 1, 2) + bytes(8) + struct.pack(">iii", 5, size, begin + n * size) for n in range(2)))  # fmt: skip
    with open(path, "wb") as file:
        file.write(head(len(head(0))))
        for _ in range(2 * n_records):
            step = draw.random()
            values = array("f", (step * (n % 97) + n // 50 for n in range(rows * columns)))
            values.byteswap()
            file.write(values.tobytes())


def started(mpi, folder, words, **env):
    """Runs a command in ranks: the exit status, and what they say."""
    log = folder / "said"
    log.unlink(missing_ok=True)
    status = launch.ends_with(launch.command(mpi, RANKS, words), launch.environment(mpi, **env), folder, SECONDS, log)
    if status is None:
        raise Wrong("%s hangs" % words)
    return status, log.read_text(errors="backslashreplace")


def own(said):
    """The lines of the command, without what launchers say of ranks that fail."""
    return [line for line in said.splitlines() if re.match(r"zonda: |nccopy: |NetCDF: |Location: |[\w./-]+\.nc: ", line)]


def sources(mpi, scratch, part):
    folder = scratch / ("%s-%s" % (part, mpi.name))
    folder.mkdir()
    classic(folder / "classic.nc", 4)
    rig.must([rig.ZONDA, "copy", "-q", "-k", "netcdf4", "-d", "1", "-c", "time/1,y/60,x/125", folder / "classic.nc", folder / "deflated.nc"])
    return folder


def copies(mpi, scratch):
    folder = sources(mpi, scratch, "copies")
    for program, cases in (([rig.ZONDA, "copy", "-q"], COPIES), ([rig.BIN / "nccopy"], NCCOPIES)):
        for source, options in cases:
            words = [*program, *options, source + ".nc"]
            alone = rig.run([*words[:-1], folder / words[-1], folder / "alone.nc"])
            if alone.returncode:
                raise Wrong("%s: %s" % (words, alone.stderr))
            status, said = started(mpi, folder, [*words, "ranks.nc"])
            if status != 0 or said:
                raise Wrong("%s ends with %s: %s" % (words, status, said[-600:]))
            if (folder / "ranks.nc").read_bytes() != (folder / "alone.nc").read_bytes():
                raise Wrong("%s: ranks write other bytes than one process" % words)
            for name in ("ranks.nc", "alone.nc"):
                (folder / name).unlink()


def checks(mpi, scratch):
    """The text of a check, of sound and damaged files."""
    folder = sources(mpi, scratch, "checks")
    deflated = folder / "deflated.nc"
    damaged = bytearray(deflated.read_bytes())
    for at in range(len(damaged) // 3, len(damaged), len(damaged) // 9):
        damaged[at] ^= 0x55
    (folder / "damaged.nc").write_bytes(damaged)
    (folder / "cut.nc").write_bytes(deflated.read_bytes()[: len(damaged) // 2])
    for names in (["classic.nc"], ["deflated.nc"], ["damaged.nc"], ["cut.nc"], ["absent.nc"], ["deflated.nc", "damaged.nc", "classic.nc"]):
        alone = rig.run([rig.ZONDA, "check", *names], cwd=folder)
        status, said = started(mpi, folder, [rig.ZONDA, "check", *names])
        lines = (alone.stdout + alone.stderr).splitlines()
        if sorted(own(said)) != sorted(lines) or (status == 0) != (alone.returncode == 0):
            raise Wrong("check %s: %s, and not %s: %s" % (names, status, alone.returncode, said[-900:]))


def errors(mpi, scratch):
    """Each is told once, as by one process, and nothing is left."""
    folder = sources(mpi, scratch, "errors")
    (folder / "there.nc").write_text("here")
    damaged = bytearray((folder / "deflated.nc").read_bytes())
    damaged[len(damaged) * 2 // 3] ^= 0x55
    (folder / "damaged.nc").write_bytes(damaged)
    before = sorted(path.name for path in folder.iterdir())
    for words in (["-q", "-d", "2", "deflated.nc", "there.nc"], ["-q", "-d", "2", "deflated.nc", "deflated.nc"], ["-q", "-d", "2", "absent.nc", "b.nc"],
                  ["-q", "-d", "2", "deflated.nc", "no/such/b.nc"], ["-q", "-d", "2", "damaged.nc", "b.nc"], ["-q", "-d", "77", "deflated.nc", "b.nc"],
                  ["-q", "-v", "nobody", "deflated.nc", "b.nc"]):  # fmt: skip
        alone = rig.run([rig.ZONDA, "copy", *words], cwd=folder)
        status, said = started(mpi, folder, [rig.ZONDA, "copy", *words])
        if status == 0 or alone.returncode == 0 or own(said) != alone.stderr.splitlines():
            raise Wrong("%s: %s, %s, and not %s" % (words, status, said[-600:], alone.stderr))
        (folder / "said").unlink()
        if sorted(path.name for path in folder.iterdir()) != before:
            raise Wrong("%s leaves %s" % (words, sorted(path.name for path in folder.iterdir())))


def full_device(mpi, scratch):
    """The device of the target has no room."""
    folder = sources(mpi, scratch, "full")
    small = folder / "small"
    small.mkdir()
    if rig.run(["mount", "-t", "tmpfs", "-o", "size=200k", "none", small]).returncode:
        raise rig.Skip("no tmpfs can be mounted")
    try:
        status, said = started(mpi, folder, [rig.ZONDA, "copy", "-q", "-k", "netcdf4", "--zstd", "1", "classic.nc", small / "b.nc"])
        if status == 0 or len(own(said)) != 1 or "os error 28" not in said:
            raise Wrong("a full device: %s, %s" % (status, said[-600:]))
        if list(small.iterdir()):
            raise Wrong("it leaves %s" % list(small.iterdir()))
    finally:
        rig.run(["umount", "-l", small])


def ends(mpi, scratch):
    """A rank is killed, and the launcher is interrupted, while a copy is under way. The next copy takes away what is left."""
    folder = scratch / ("ends-%s" % mpi.name)
    folder.mkdir()
    classic(folder / "a.nc", 60)
    words = [rig.ZONDA, "copy", "-q", "--format", "netcdf4", "--deflate", "9", "-m", "8M", "a.nc", "b.nc"]
    for rank, number in ((0, signal.SIGKILL), (1, signal.SIGKILL), (2, signal.SIGKILL), (None, signal.SIGINT), (None, signal.SIGTERM)):
        with open(folder / "said", "wb") as log:
            child = subprocess.Popen(launch.command(mpi, RANKS, words), stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                     env=launch.environment(mpi), cwd=folder, start_new_session=True)  # fmt: skip
        pids = under_way(child, folder)
        os.kill(child.pid if rank is None else pids[rank], number)
        if launch.stop(child, SECONDS):
            raise Wrong("rank %s gets %s, and it hangs: %s" % (rank, number, (folder / "said").read_text()[-600:]))
        end = time.monotonic() + 20
        while any(launch.is_alive(pid) for pid in pids):
            if time.monotonic() > end:
                raise Wrong("rank %s gets %s, and ranks live on" % (rank, number))
            time.sleep(0.01)
        # Hydra ends with 0 after Ctrl-C, whatever its ranks end with.
        is_told = child.returncode != 0 or number == signal.SIGINT
        if not is_told and not (folder / "b.nc").exists():
            raise Wrong("rank %s gets %s: status %s" % (rank, number, child.returncode))
        if (folder / "b.nc").exists():
            # The signal came when the copy was over, and ranks were about to end: then it is whole.
            rig.must([rig.ZONDA, "diff", folder / "a.nc", folder / "b.nc"])
            (folder / "b.nc").unlink()
    classic(folder / "small.nc", 1)
    rig.must([rig.ZONDA, "copy", "-q", folder / "small.nc", folder / "b.nc"])
    left = sorted(path.name for path in folder.iterdir())
    if left != ["a.nc", "b.nc", "said", "small.nc"]:
        raise Wrong("there are %s" % left)


def under_way(child, folder):
    """Waits until ranks have begun to write; their processes, by their ranks."""
    end = time.monotonic() + SECONDS
    while time.monotonic() < end and child.poll() is None:
        if any(path.stat().st_size > 100_000 for path in folder.glob("b.nc.*") if path.exists()):
            pids = {}
            for path in pathlib.Path("/proc").glob("[0-9]*/environ"):
                with contextlib.suppress(OSError):
                    variables = dict(pair.split(b"=", 1) for pair in path.read_bytes().split(b"\0") if b"=" in pair)
                    rank = variables.get(b"PMI_RANK", variables.get(b"OMPI_COMM_WORLD_RANK"))
                    if rank is not None and os.getsid(int(path.parent.name)) in sessions(child.pid):
                        pids[int(rank)] = int(path.parent.name)
            if len(pids) == RANKS:
                return [pids[rank] for rank in range(RANKS)]
        time.sleep(0.005)
    launch.stop(child, 0)
    raise Wrong("the copy does not begin: %s" % (folder / "said").read_text()[-600:])


def sessions(launcher):
    """Sessions of a process and of those that it has started."""
    parents = launch.parents()
    return {launcher} | {parents[pid][1] for pid in launch.descendants(launcher, parents) if pid in parents}


def alone(mpi, scratch):
    """Where no MPI is found, and for commands that are not divided."""
    folder = sources(mpi, scratch, "alone")
    source = folder / "deflated.nc"
    rig.must([rig.ZONDA, "copy", "-q", "-d", "2", source, folder / "alone.nc"])
    for env in ({"ZONDA_MPI": "none"}, {"ZONDA_MPI": "/no/such/libmpi.so"}):
        status, said = started(mpi, folder, [rig.ZONDA, "copy", "-q", "-d", "2", "deflated.nc", "ranks.nc"], **env)
        if status != 0 or said.count(ALONE) != 1 or len(said.splitlines()) != 1:
            raise Wrong("without MPI: %s, %s" % (status, said[-600:]))
        if (folder / "ranks.nc").read_bytes() != (folder / "alone.nc").read_bytes():
            raise Wrong("the copy is another one than that of one process")
        (folder / "ranks.nc").unlink()
    status, said = started(mpi, folder, [rig.ZONDA, "diff", "deflated.nc", "classic.nc"])
    if said.count(COMMAND_ALONE) != 1:
        raise Wrong("diff: %s, %s" % (status, said[-600:]))
    status, said = started(mpi, folder, ["sh", "-c", "exec %s copy -q - ranks.nc < deflated.nc" % rig.ZONDA])
    if status != 0 or said.count(ALONE) != 1 or "standard input" not in said:
        raise Wrong("standard input: %s, %s" % (status, said[-600:]))
    rig.must([rig.ZONDA, "diff", source, folder / "ranks.nc"])
    different = [rig.ZONDA, "copy", "-q", "-d", "2", "deflated.nc", "one.nc", ":", "-n", "1", rig.ZONDA, "copy", "-q", "-d", "2", "classic.nc", "two.nc"]
    status, said = started(mpi, folder, different)
    if status == 0 or said.count("different arguments") != 1 or any((folder / name).exists() for name in ("one.nc", "two.nc")):
        raise Wrong("different arguments: %s, %s" % (status, said[-600:]))


def by_scripts(mpi, scratch):
    """Each rank copies a file of its own."""
    folder = scratch / ("scripts-" + mpi.name)
    folder.mkdir()
    (folder / "a.cdl").write_text(CDL)
    rig.must([rig.BIN / "ncgen", "-b", "-o", folder / "a.nc", folder / "a.cdl"])
    rank = "${PMI_RANK-$OMPI_COMM_WORLD_RANK}"
    # Not the last command: a shell becomes that.
    status, said = started(mpi, folder, ["sh", "-c", '%s copy -q a.nc "b%s.nc"; echo done' % (rig.ZONDA, rank)])
    if status != 0 or len(list(folder.glob("b[0-9].nc"))) != RANKS or "ranks were started" in said:
        raise Wrong("ends with %s: %s" % (status, said[-600:]))


def cases(mpi, options):
    """Names, tests and their arguments."""
    yield "copies by ranks", copies, mpi, options.scratch
    yield "checks by ranks", checks, mpi, options.scratch
    yield "errors of commands", errors, mpi, options.scratch
    yield "a full device", full_device, mpi, options.scratch
    yield "ranks of commands that end", ends, mpi, options.scratch
    yield "commands of rank 0 alone", alone, mpi, options.scratch
    yield "commands of scripts", by_scripts, mpi, options.scratch

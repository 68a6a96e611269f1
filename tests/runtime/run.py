#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""What the library takes of a machine: threads, where they run, memory, ranks.

    tests/runtime/run.py [--quick] [--only REGEX] [--parts decided,where,memory,group]

decided  `zonda info --runtime` under taskset, ulimit, settings, and the variables of each launcher for 2, 16 and 64 ranks
where    a program with OpenMP under OMP_PROC_BIND=true OMP_PLACES=cores, and so under taskset: the library is linked before libgomp,
         after it, preloaded, or loaded when OpenMP has begun; its threads keep off the core that the main thread is bound to, and
         within those of the process
memory   a program whose chunks and records do not fit into ZONDA_MEMORY: `cmp` of its files for 64 MiB and 4 GiB, 1 and 64
         ranks; what it holds at most; nothing is left beside its files, also where the device is full (a tmpfs, as root)
group    64 processes in a control group of 512 MiB (version 1 or 2, made by us; skipped where we may not)

--quick asks only what is decided. No time decides. tests/rig/places.py has the settings.
"""
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(1, str(HERE.parent))
import rig  # noqa: E402
from rig import LIBDIR, LIBRARY, Skip, Wrong  # noqa: E402

MIB = 1 << 20
# What launchers set for each of n ranks on one node: its own number is 0.
LAUNCHERS = {
    "Open MPI": lambda n: {"OMPI_COMM_WORLD_LOCAL_SIZE": n, "OMPI_COMM_WORLD_SIZE": 4 * n},
    "Hydra": lambda n: {"MPI_LOCALNRANKS": n, "PMI_SIZE": 4 * n, "PMI_RANK": 0},
    "MVAPICH 2": lambda n: {"MV2_COMM_WORLD_LOCAL_SIZE": n},
    "MVAPICH 3": lambda n: {"MVP_COMM_WORLD_LOCAL_SIZE": n},
    "PALS": lambda n: {"PALS_LOCAL_SIZE": n},
    "PMI": lambda n: {"PMI_LOCAL_SIZE": n},
    "PMIx": lambda n: {"PMIX_LOCAL_SIZE": n},
    "jsrun": lambda n: {"JSM_NAMESPACE_LOCAL_SIZE": n},
    "srun": lambda n: {"SLURM_STEP_TASKS_PER_NODE": "%d(x4)" % n, "SLURM_NODEID": 2, "SLURM_STEP_NUM_TASKS": 4 * n, "SLURM_STEP_NUM_NODES": 4},
    "srun, uneven": lambda n: {"SLURM_STEP_TASKS_PER_NODE": "3,%d,1" % n, "SLURM_NODEID": 1},
    "Flux": lambda n: {"FLUX_JOB_SIZE": 4 * n, "FLUX_JOB_NNODES": 4, "FLUX_TASK_LOCAL_ID": 0},
    "PMI alone": lambda n: {"PMI_SIZE": n, "PMI_RANK": 0},
}
# What a batch script has, which is no rank.
SCRIPTS = {
    "sbatch": {"SLURM_TASKS_PER_NODE": "16", "SLURM_NTASKS": "16", "SLURM_JOB_NUM_NODES": "1"},
    "empty": {"OMPI_COMM_WORLD_LOCAL_SIZE": ""},
    "no number": {"MPI_LOCALNRANKS": "many"},
}


def environment(**more):
    dropped = ("OMP_", "GOMP_", "SLURM_", "PMI", "OMPI_", "MPI_", "MV2_", "MVP_", "PALS_", "JSM_", "FLUX_", "LSB_", "LS_")
    return rig.environment(without=dropped, **more)


def want(is_so, text):
    if not is_so:
        raise Wrong(text)


def run(command, **env):
    return rig.must(command, environment(**env))


def told(before=(), **env):
    """What the library says of a process."""
    return json.loads(run([*before, rig.ZONDA, "info", "--runtime", "--json"], **env))


def cpus_of(text):
    """The numbers in `0-2,5`."""
    found = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        found |= set(range(int(first), int(last or first) + 1))
    return found


def decided(_scratch):
    plain = told()
    n_cpus = len(os.sched_getaffinity(0))

    def alone():
        want(plain["ranks"] == 1 and plain["ranks_told_by"] is None, plain)
        want(plain["threads"] == min(n_cpus, plain["cgroup_quota"] or n_cpus), plain)
        want(len(cpus_of(plain["processors"])) == n_cpus, plain)
        want(plain["memory_bytes"] <= 1 << 30, plain)

    def pinned():
        if not shutil.which("taskset"):
            raise Skip("taskset is not installed")
        cpu = min(os.sched_getaffinity(0))
        got = told(["taskset", "-c", str(cpu)])
        want(got["threads"] == 1 and got["processors"] == str(cpu), got)

    def asked():
        got = told(ZONDA_THREADS=7, ZONDA_MEMORY="3M")
        want(got["threads"] == 7 and got["memory_bytes"] == 3 * MIB, got)
        got = told(ZONDA_THREADS="lots")
        want(got["threads"] == plain["threads"], got)

    def limited():
        got = told(["bash", "-c", 'ulimit -v 1048576; exec "$@"', "bash"])
        want(got["memory_bytes"] <= 128 * MIB and "ulimit" in got["memory_because"], got)

    yield "decided alone", alone
    yield "decided pinned", pinned
    yield "decided as asked", asked
    yield "decided ulimit", limited
    for name, variables in LAUNCHERS.items():
        for n in (2, 16, 64):
            def launched(variables=variables(n), n=n):
                got = told(**variables)
                want(got["ranks"] == n and got["ranks_told_by"], got)
                want(got["threads"] == max(1, plain["threads"] // n), got)
                want(got["memory_bytes"] == plain["memory_bytes"] // n, got)
            yield "decided %s, %d ranks" % (name, n), launched
    for name, variables in SCRIPTS.items():
        def script(variables=variables):
            got = told(**variables)
            want(got["ranks"] == 1 and got["threads"] == plain["threads"], got)
        yield "decided %s" % name, script


def where(scratch):
    openmp = ["-fopenmp", HERE / "threads.c"]
    ours = ["-L", LIBDIR, "-l:libnetcdf.so.19"]
    kinds = {
        "after": (["-Wl,--no-as-needed", *ours], None, {"LD_LIBRARY_PATH": LIBDIR}),
        "before": (["-Wl,--no-as-needed", "-lgomp", *ours], None, {"LD_LIBRARY_PATH": LIBDIR}),
        "preload": (["-Wl,--no-as-needed", "-l:libnetcdf.so.19"], None, {"LD_PRELOAD": LIBDIR / "libzonda-preload.so"}),
        "late": ([], LIBRARY, {}),
    }
    for kind, (flags, library, env) in kinds.items():
        for what in ("deflate", "plain"):
            def place(kind=kind, flags=flags, library=library, env=env, what=what):
                program, file = scratch / ("threads-" + kind), scratch / ("%s-%s.nc" % (kind, what))
                if not program.exists():
                    built = subprocess.run(["gcc", "-std=gnu11", "-O1", "-I", rig.INCDIR, *openmp, *flags, "-ldl", "-o", program],
                                           capture_output=True, text=True, check=False)
                    if "cannot find" in built.stderr:
                        raise Skip(built.stderr.strip().splitlines()[0])
                    want(built.returncode == 0, built.stderr[-400:])
                if len(os.sched_getaffinity(0)) < 2:
                    raise Skip("there is one core")
                cores = sorted(os.sched_getaffinity(0))
                binding = {"OMP_PROC_BIND": "true", "OMP_PLACES": "cores"}
                # Without binding, bound by OpenMP, and so on two processors and on one that the whole process is put on.
                for bound, put_on in (({}, None), (binding, None), (binding, cores[:2]), (binding, cores[-1:])):
                    if put_on and not shutil.which("taskset"):
                        raise Skip("taskset is not installed")
                    if put_on == cores[-1:] and what == "deflate":
                        # One thread filters all, and there is none to look for.
                        want(told(["taskset", "-c", str(put_on[0])], **bound)["threads"] == 1, "threads on one processor")
                        continue
                    before = ["taskset", "-c", ",".join(map(str, put_on))] if put_on else []
                    said = run([*before, program, what, file, *([library] if library else [])], **env, **bound,
                               ZONDA_ASYNC="on" if what == "plain" else "off")
                    main = set(map(int, re.search("^main(.*)$", said, re.M)[1].split()))
                    threads = [cpus_of(text) for text in re.findall("^thread (.*)$", said, re.M)]
                    all_of_them = set(put_on or cores)
                    want(threads, "no thread of the library: %s" % said)
                    want(all(cpus <= all_of_them for cpus in threads), "a thread has left %s: %s" % (all_of_them, said))
                    if bound and main < all_of_them:
                        want(not any(main & cpus for cpus in threads), "a thread has the core of its maker: %s" % said)
                    elif bound and put_on != cores[-1:]:
                        raise Skip("OpenMP binds nothing here")
            yield "where %s %s" % (kind, what), place


# What a process has beside what it counts, in bytes: code, stacks, chunks on their way through filters and the memory that is kept for them,
# and what the allocator does not give back.
BESIDE = 128 * MIB


def memory(scratch):
    program = rig.compile_c(scratch / "memory", HERE / "memory.c")

    def held(folder, mib, **env):
        folder.mkdir(exist_ok=True)
        said = run([program, folder, mib], LD_LIBRARY_PATH=LIBDIR, **env)
        want(sorted(p.name for p in folder.iterdir()) == ["chunks.nc", "classic.nc"], "left: %s" % list(folder.iterdir()))
        return {word: int(number) for word, number in (line.split() for line in said.splitlines())}

    def same():
        ranks = {"OMPI_COMM_WORLD_LOCAL_SIZE": 64}
        ways = {"4G": {"ZONDA_MEMORY": "4G"}, "64M": {"ZONDA_MEMORY": "64M"}, "64M of 64": {"ZONDA_MEMORY": "64M", **ranks}, "a part of 64": ranks}
        for way, env in ways.items():
            got = held(scratch / "way", 192, **env)
            if way == "4G":
                shutil.move(scratch / "way", scratch / "first")
                want(got["incomplete"] > 180 * MIB, "chunks that wait are counted: %s" % got)
                continue
            want(got["held"] <= got["limit"] + 16 * MIB, "%s: more is held than the limit: %s" % (way, got))
            want(got["rss"] <= got["limit"] + BESIDE, "%s: more is used than counted: %s" % (way, got))
            for name in ("chunks.nc", "classic.nc"):
                want((scratch / "first" / name).read_bytes() == (scratch / "way" / name).read_bytes(), "%s: other bytes in %s" % (way, name))
            shutil.rmtree(scratch / "way")

    def full():
        if os.geteuid() != 0:
            raise Skip("only root mounts")
        small = scratch / "small"
        small.mkdir()
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=110m", "tmpfs", small], capture_output=True, check=False).returncode:
            raise Skip("no tmpfs can be mounted")
        try:
            # 96 MiB of chunks wait, of which 48 are data at last: what is sent away leaves room for them.
            held(small, "96", ZONDA_MEMORY="16M")
            for path in small.iterdir():
                path.unlink()
            # Where the data do not fit the call says so, and nothing is left but the data.
            want(subprocess.run(["mount", "-o", "remount,size=40m", small], check=False).returncode == 0, "no smaller tmpfs")
            done = rig.run([program, small, 96], environment(LD_LIBRARY_PATH=LIBDIR, ZONDA_MEMORY="16M"))
            want(done.returncode == 28 and "No space left" in done.stderr, "ends with %d: %s" % (done.returncode, done.stderr))
            want({p.name for p in small.iterdir()} <= {"chunks.nc", "classic.nc"}, "left: %s" % list(small.iterdir()))
        finally:
            subprocess.run(["umount", small], check=False)

    yield "memory same bytes", same
    yield "memory full device", full


def groups(scratch):
    def small():
        if os.geteuid() != 0:
            raise Skip("control groups are root's")
        for base, limit in ((Path("/sys/fs/cgroup"), "memory.max"), (Path("/sys/fs/cgroup/memory"), "memory.limit_in_bytes")):
            group = base / ("zonda-test-%d" % os.getpid())
            try:
                group.mkdir()
            except OSError:
                continue
            try:
                if not (group / limit).exists():
                    continue
                (group / limit).write_text(str(512 * MIB))
                enter = ["bash", "-c", 'echo $$ >%s/cgroup.procs && exec "$@"' % group, "bash"]
                got = told(enter)
                want(got["cgroup_memory_bytes"] == 512 * MIB and got["memory_bytes"] == 64 * MIB, got)
                got = told(enter, OMPI_COMM_WORLD_LOCAL_SIZE=64)
                want(got["memory_bytes"] == MIB, got)
                return
            finally:
                group.rmdir()
        raise Skip("no control group for memory can be made")

    yield "group of 512 MiB", small


def main():
    parts = {"decided": decided, "where": where, "memory": memory, "group": groups}
    options = rig.arguments(rig.parser(__doc__, parts={name: rig.QUICK if name == "decided" else rig.FULL for name in parts}))
    counts = rig.Counts()
    with rig.scratch() as scratch:
        for part in options.chosen():
            for name, test in parts[part](scratch):
                if options.wants(name):
                    counts.attempt(name, test)
    return counts


if __name__ == "__main__":
    rig.main(main)

#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""A node full of ranks: what they take of it together.

    tests/runtime/node.py [--quick] [--long] [--only REGEX]

files    1 and 64 ranks, 64 MiB and 4 GiB: each writes the same bytes (`cmp`)
node     2, 16 and 64 ranks as processes with each launcher's variables, in a memory control group of 2 GiB that is made here. Each rank
         reads more than it may keep; then all are counted at once: the sum of Pss that caches have grown by is within what was
         decided for all ranks, threads are not more than processors (one for each rank at least), and nobody was killed.
         Where no control group can be made, that is said, and the machine's memory is the limit.
told     without a launcher one of them keeps more than a 64th: what is counted is what the policy bounds

By default each launcher has one number of ranks, with --quick two of them have, with --long all three numbers. No time decides.
tests/rig/places.py has the settings.
"""
import filecmp
import os
import subprocess
from contextlib import contextmanager
from pathlib import Path

# It has the package that all runners stand on, too.
from run import HERE, LAUNCHERS, LIBDIR, MIB, environment, rig, told, want

SIZES = (2, 16, 64)
GROUP_BYTES = 2 << 30
# What ranks take besides caches, at most: pages of the library, which all share, and for each rank what an open file has
# decoded, buffers of a call, and its own pages of the library.
COMMON_BYTES, OWN_BYTES = 8 * MIB, 3 * MIB
# LSF tells ranks by host.
LSF = {"LSF": lambda n: {"LS_JOBPID": 1, "LSB_MCPU_HOSTS": "elsewhere 3 %s %d" % (os.uname().nodename, n)}}


@contextmanager
def group():
    """A control group for memory, version 1 or 2; None where none can be made."""
    for base, limit in ((Path("/sys/fs/cgroup/memory"), "memory.limit_in_bytes"), (Path("/sys/fs/cgroup"), "memory.max")):
        path = base / ("zonda-node-%d" % os.getpid())
        try:
            path.mkdir()
        except OSError:
            continue
        try:
            try:
                (path / limit).write_text(str(GROUP_BYTES))
            except OSError:
                continue
            yield path
            return
        finally:
            path.rmdir()
    yield None


def inside(path):
    """The words before a command that runs it in the group."""
    return ["sh", "-c", 'echo $$ >%s/cgroup.procs && exec "$@"' % path, "sh"] if path else []


def n_killed(path):
    """Processes of the group that the kernel has killed for want of memory; None where it does not say."""
    for name in ("memory.oom_control", "memory.events"):
        file = path / name
        for line in file.read_text().splitlines() if file.exists() else ():
            if line.startswith("oom_kill "):
                return int(line.split()[1])
    return None


@contextmanager
def together(commands, **how):
    """Starts all, and waits for all; what is wrong ends all."""
    ranks = [subprocess.Popen([str(word) for word in words], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, **how) for words, env in commands]
    try:
        yield ranks
        for rank in ranks:
            _, err = rank.communicate(timeout=300)
            want(rank.returncode == 0, "a rank ends with %d: %s" % (rank.returncode, err[-300:]))
    finally:
        for rank in ranks:
            if rank.poll() is None:
                rank.kill()
                rank.wait()


def same_files(program, scratch):
    def write(name, n, **variables):
        folder = scratch / name
        folder.mkdir()
        commands = [([program, "write", folder / str(k)], environment(LD_LIBRARY_PATH=LIBDIR, **variables)) for k in range(n)]
        with together(commands):
            pass
        return sorted(folder.iterdir())

    alone = write("alone", 1)
    want(len(alone) == 2, "two files: %s" % alone)
    others = [
        ("64 ranks", write("of-64", 64, OMPI_COMM_WORLD_LOCAL_SIZE=64)),
        ("64 MiB", write("little", 1, ZONDA_MEMORY="64M")),
        ("4 GiB", write("much", 1, ZONDA_MEMORY="4G")),
        ("one thread", write("thread", 1, ZONDA_THREADS=1)),
    ]
    for name, files in others:
        for file in files:
            first = alone[int(file.stem[-1])]
            want(filecmp.cmp(first, file, shallow=False), "%s: %s differs from %s" % (name, file, first))


def node(path, launcher, n, program, common, n_cpus):
    """The sum of what the ranks' caches have grown by, and the bytes that they may have together."""
    variables = {**LAUNCHERS, **LSF}[launcher](n)
    decided = told(inside(path), **variables)
    want(decided["ranks"] == n, "%d ranks are told, not %d" % (decided["ranks"], n))
    all_of_it = told(inside(path))
    want(decided["memory_bytes"] == all_of_it["memory_bytes"] // n, decided)
    if path:
        want(decided["cgroup_memory_bytes"] == GROUP_BYTES and all_of_it["memory_bytes"] == GROUP_BYTES // 8, all_of_it)
    env = environment(LD_LIBRARY_PATH=LIBDIR, **variables)
    # More than a rank may keep, and not much more: what is decoded takes time.
    mib = min(decided["memory_bytes"] // MIB + 24, common[1])
    grown = threads = 0
    with together([([*inside(path), program, "read", common[0], mib], env)] * n) as ranks:
        for rank in ranks:
            words = dict(line.split() for line in (rank.stdout.readline(), rank.stdout.readline()) if line)
            want("threads" in words, "a rank has ended: %s" % (rank.stderr.read()[-300:] if not words else words))
            grown += int(words["grown"]) * 1024
            threads += int(words["threads"])
    most = decided["memory_bytes"] * n + COMMON_BYTES + OWN_BYTES * n
    want(grown <= most, "caches of %d ranks have grown by %d MiB, not by %d at most" % (n, grown // MIB, most // MIB))
    want(threads <= max(n, n_cpus), "%d threads of %d ranks on %d processors" % (threads, n, n_cpus))
    if path:
        want(n_killed(path) in (0, None), "the kernel killed some for want of memory")
    return grown, decided["memory_bytes"] * n


def main():
    options = rig.arguments(rig.parser(__doc__))
    counts = rig.Counts()

    def check(name, test, *arguments):
        return counts.attempt(name, test, *arguments) if options.wants(name) else None

    with rig.scratch() as scratch, group() as path:
        program, common = rig.compile_c(scratch / "ranks", HERE / "ranks.c"), (scratch / "common.nc", 288)
        rig.must([program, "make", *common], environment(LD_LIBRARY_PATH=LIBDIR))
        if not path:
            counts.skip("the control group", "none for memory can be made here; the machine's memory is the limit")
        check("files", same_files, program, scratch)
        n_cpus = len(os.sched_getaffinity(0))
        most = {}
        launchers = [*LAUNCHERS, *LSF]
        for k, launcher in enumerate(launchers[:2] if options.mark == rig.QUICK else launchers):
            for n in SIZES if options.long else (SIZES[k % len(SIZES)],):
                found = check("%s, %d ranks" % (launcher, n), node, path, launcher, n, program, common, n_cpus)
                if found:
                    most[n] = max(most.get(n, (0, 0)), found)

        def alone():
            """Without a launcher it keeps more."""
            with together([([*inside(path), program, "read", common[0], 64], environment(LD_LIBRARY_PATH=LIBDIR))]) as ranks:
                grown = int(ranks[0].stdout.readline().split()[1]) * 1024
            limit = told(inside(path))["memory_bytes"]
            want(grown > min(limit, 64 * MIB) * 3 // 4, "one rank alone keeps only %d MiB" % (grown // MIB))

        check("told", alone)
        for n, (grown, policy) in sorted(most.items()):
            print("%d ranks: caches grew by %d MiB, decided for all: %d MiB" % (n, grown // MIB, policy // MIB))
    return counts


if __name__ == "__main__":
    rig.main(main)

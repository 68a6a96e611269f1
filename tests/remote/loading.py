# SPDX-License-Identifier: MIT OR Apache-2.0
"""Forks while the library that does TLS is loaded: a child that met the loader half way would have that state for ever."""
from pathlib import Path

import rig
from rig import Wrong

HERE = Path(__file__).resolve().parent
FILE = "files/example_2.nc"
NAME = "libzonda-tls.so.1"
# Forks of each of three threads.
N_FORKS = 6


def program(bench):
    """forks.c, once."""
    made = bench.scratch / "forks"
    return made if made.exists() else rig.compile_c(made, HERE / "forks.c", flags=["-rdynamic"], libraries=["-lpthread"])


def said(bench, env, *words):
    url = "%s/%s#mode=bytes" % (bench.servers.https, FILE)
    done = bench.run([program(bench), url, bench.path_alone(FILE), *words], env, seconds=180)
    lines = done.stdout.strip().splitlines() or [""]
    if done.returncode:
        raise Wrong("it ends with %s: %s" % (done.returncode, "; ".join(lines[-4:]) + done.stderr[-300:]))
    return int(lines[-1].split()[0])


def forked_around(bench, env):
    """At many moments around the first https:// URL, with the true library. The loader writes down all that it does (LD_DEBUG), which takes it so long that
    many forks meet it at work."""
    env = {**env, "LD_DEBUG": "all", "LD_DEBUG_OUTPUT": str(bench.scratch / "forks-loader")}
    n = sum(said(bench, env, "around", N_FORKS) for _ in range(bench.options.by(8, 30, 300)))
    for log in bench.scratch.glob("forks-loader.*"):
        log.unlink()
    if n < 8 * 3:
        raise Wrong("only %d children: the test shows little" % n)


def forked_within(bench, env, folder):
    """At the very moment: the loader is within the library when the other thread forks."""
    flags = ["-shared", "-fPIC", '-DTRUE_LIBRARY="%s"' % (rig.LIBDIR / NAME).resolve()]
    rig.compile_c(folder / NAME, HERE / "half.c", link=None, flags=flags, libraries=["-ldl"])
    n = said(bench, {**env, "LD_LIBRARY_PATH": str(folder)}, "within")
    if n != 1:
        raise Wrong("%d children" % n)

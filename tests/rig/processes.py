# SPDX-License-Identifier: MIT OR Apache-2.0
"""Programs: compiled for one library or the other, run with it, and bounded."""
import contextlib
import ctypes
import functools
import os
import resource
import shutil
import signal
import subprocess
from pathlib import Path

from .counts import Setup, Wrong
from .places import BIN, INCDIR, LIBDIR, LIBRARY, SONAME, ZONDA, reference

# What changes how a library works is said by the test, not by who calls it.
SETTINGS = ("ZONDA_", "NETCDF_", "HDF5_", "LD_", "CRASH_")
FLAGS = ("-std=gnu11", "-O1", "-g", "-Wall", "-Wextra", "-Werror")
# Only hangs are bounded.
SECONDS = 300


def environment(library=None, without=(), **more):
    """The caller's environment without settings; with the library of a folder, and with variables of its own.

    `without` has beginnings of further names that are left out. A variable that is None is not set.
    """
    dropped = SETTINGS + tuple(without)
    env = {name: value for name, value in os.environ.items() if not name.startswith(dropped)}
    env["LC_ALL"] = "C.UTF-8"
    if library:
        env["LD_LIBRARY_PATH"] = str(library)
    for name, value in more.items():
        env.pop(name, None)
        if value is not None:
            env[name] = str(value)
    return env


def run(command, env=None, seconds=SECONDS, text=True, **how):
    """Runs a program to its end, without a terminal and by itself without our library: what subprocess.run gives.

    A program of ours that was not built ends the runner, as a library that is missing does.
    """
    if "input" not in how:
        how.setdefault("stdin", subprocess.DEVNULL)
    if text:
        how.setdefault("errors", "backslashreplace")
    if not how.keys() & {"stdout", "stderr"}:
        how["capture_output"] = True
    program = Path(command[0])
    if program.parent in (BIN, ZONDA.parent) and not program.exists():
        raise Setup("no %s in %s; run make build" % (program.name, program.parent))
    words = [os.fspath(word) if isinstance(word, Path) else str(word) for word in command]
    given = how.pop("input", None)
    if given is not None:
        how["stdin"] = subprocess.PIPE
    if how.pop("capture_output", False):
        how.update(stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    with subprocess.Popen(words, text=text, env=environment() if env is None else env, start_new_session=True, **how) as child:
        try:
            out, err = child.communicate(given, seconds)
        except BaseException:
            # A launcher has ranks, which would keep the pipes and the machine.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
            raise
    return subprocess.CompletedProcess(child.args, child.returncode, out, err)


@functools.cache
def loaded():
    """The library under test in this process. Not where a runner is imported: it has to say its --help without a build, too."""
    if not LIBRARY.exists():
        raise Setup("no %s in %s; run make build" % (SONAME, LIBDIR))
    return ctypes.CDLL(str(LIBRARY))


def must(command, env=None, **how):
    """What a program says, which has to end well."""
    done = run(command, env, **how)
    if done.returncode:
        raise Wrong("%s ends with %d: %s" % (command[0], done.returncode, done.stderr.strip()[-400:]))
    return done.stdout


def tool(name):
    """A tool of the distribution, None where there is none; ours have the same names."""
    folders = [folder for folder in os.environ.get("PATH", os.defpath).split(os.pathsep) if os.path.realpath(folder) != str(BIN)]
    return shutil.which(name, path=os.pathsep.join(folders))


def missing(*names):
    """Those of the distribution's tools that are not there."""
    return [name for name in names if not tool(name)]


def compile_c(program, *sources, link="ours", flags=(), libraries=()):
    """Compiles C without warnings; the path of the program.

    `link` is "ours": headers and library under test, "reference": those of the distribution, or None. What is linked with
    either runs with both, by the folder that LD_LIBRARY_PATH names.
    """
    command = [os.environ.get("CC", "gcc"), *FLAGS, *flags, *sources, "-o", program]
    if link == "ours":
        if not LIBRARY.exists():
            # The linker would take the distribution's.
            raise Setup("no %s in %s; run make build" % (SONAME, LIBDIR))
        command += ["-I", INCDIR, "-L", LIBDIR, "-l:" + SONAME]
    elif link == "reference":
        command += ["-L", reference(), "-l:" + SONAME]
    done = subprocess.run([str(word) for word in [*command, *libraries]], capture_output=True, text=True, check=False)
    if done.returncode:
        raise Setup("%s does not compile:\n%s" % (Path(program).name, done.stderr))
    return Path(program)


def bounds(memory=None, file=None, seconds=None, data=None):
    """For preexec_fn: what a child may take, in bytes of address space, of a file and of its own memory, and of processor time. None
    leaves a core."""
    def set_them():
        for kind, most in ((resource.RLIMIT_CORE, 0), (resource.RLIMIT_AS, memory), (resource.RLIMIT_DATA, data), (resource.RLIMIT_FSIZE, file),
                           (resource.RLIMIT_CPU, seconds)):  # fmt: skip
            if most is not None:
                resource.setrlimit(kind, (most, most))

    return set_them

"""Runs tests: each chain in a fresh folder tree of its own, so that chains can run side by side."""
import glob
import os
import re
import shutil
import signal
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from build import dynamic_symbols
from plan import TOOLS
from plugins import build_plugins
from settings import SONAME, Broken


@dataclass
class Result:
    status: str                 # PASS FAIL SKIP
    name: str
    reason: str = ""
    seconds: float = 0.0
    hdf5: bool = False          # the witness saw an HDF5 file
    internals: tuple = ()       # functions private to the reference that it calls


def file_name(test_name):
    return re.sub(r"[^\w.@-]+", "__", test_name)


class Executor:
    def __init__(self, s, src, builds, plan, builder, tools, witness=None):
        self.s, self.src, self.builds, self.plan, self.builder = s, src, builds, plan, builder
        self.tools, self.witness = tools, witness
        self.exported = dynamic_symbols(os.path.join(s.libdir, SONAME), "--defined-only")
        role = s.label + ("-async" if s.write_behind else "")
        self.logs = s.folder("logs", role)
        self.trees = s.path("run", role)
        self.env = dict(os.environ, LC_ALL="C.UTF-8", top_srcdir=src, TOPSRCDIR=src,
                        USER=os.environ.get("USER", "nobody"), LD_LIBRARY_PATH=s.libdir)
        for name in ("MAKEFLAGS", "MFLAGS", "LD_PRELOAD", "HDF5_PLUGIN_PATH"):
            self.env.pop(name, None)
        if s.write_behind:
            self.env["ZONDA_ASYNC"] = s.write_behind
        self.print_lock, self.results = threading.Lock(), {}
        self.plugins_lock, self.plugins = threading.Lock(), None

    def check_library_is_used(self, program):
        """Without this the whole run could pass on the distribution's library unnoticed."""
        for exe in (program, os.path.join(self.tools, "ncdump")):
            out = subprocess.run(["ldd", exe], env=self.env, capture_output=True, text=True).stdout
            want = "%s => %s/%s" % (SONAME, self.s.libdir, SONAME)
            if exe != program and "libnetcdf" not in out:
                continue        # a tool of ours (--tools dist/bin), which has the library in it
            if want not in out:
                raise Broken("%s does not load %s/%s:\n%s" % (exe, self.s.libdir, SONAME, out))

    # ------------------------------------------------------------------ the tree of one chain

    def _tree(self, chain):
        test = self.plan.tests[chain[0]]
        build = self.builds[test.config]
        tree = os.path.join(self.trees, file_name(chain[0]))
        shutil.rmtree(tree, ignore_errors=True)
        work = os.path.join(tree, test.folder)
        shutil.copytree(os.path.join(build, test.folder), work, ignore=shutil.ignore_patterns("Makefile"))
        for f in ("config.h", "libnetcdf.settings", "test_common.sh"):
            shutil.copy(os.path.join(build, f), tree)
        # Configured scripts know the folder they were configured in.
        for script in glob.glob(tree + "/*.sh") + glob.glob(work + "/*.sh"):
            with open(script) as f:
                text = f.read()
            with open(script, "w") as f:
                f.write(text.replace(build, tree))
        if any(self.plan.tests[n].plugins for n in chain):
            with self.plugins_lock:
                self.plugins = self.plugins or build_plugins(self.s, self.src, build)
            shutil.copytree(self.plugins, os.path.join(tree, "plugins"))     # one test moves them
        for tool in TOOLS:
            # ncgen beside ncdump, too, for drivers of ours.
            for folder in ["ncdump" if tool == "nccopy" else tool] + (["ncdump"] if tool == "ncgen" else []):
                self._script(os.path.join(tree, folder, tool), 'exec "%s" "$@"' % os.path.join(self.tools, tool))
        # The path converter gives its last argument back on a POSIX machine.
        self._script(os.path.join(tree, "ncdump", "ncpathcvt"),
                     'for last in "$@"; do :; done\nprintf %s "$last"')
        return tree, work

    @staticmethod
    def _script(path, body):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as f:
            f.write("#!/bin/sh\n%s\n" % body)
        os.chmod(path, 0o755)

    # ------------------------------------------------------------------ one test

    def _run(self, test, tree, work):
        programs = [(f, p, self.builder.program(test.config, f, p)) for f, p in test.programs]
        broken = [(p, b.error) for _, p, b in programs if b.error]
        if broken:
            return Result("FAIL", test.name, "%s %s" % broken[0])
        internals = tuple(sorted({x for _, _, b in programs for x in b.internals}))
        lacking = [x for x in internals if x not in self.exported]
        if lacking:
            more = " and %d more" % (len(lacking) - 4) if len(lacking) > 4 else ""
            return Result("SKIP", test.name, "calls private functions of the reference: %s%s"
                          % (" ".join(lacking[:4]), more), internals=internals)
        for f, p, built in programs:
            there = os.path.join(tree, f, p)
            os.makedirs(os.path.dirname(there), exist_ok=True)
            if os.path.lexists(there):
                os.unlink(there)
            os.symlink(built.path, there)
        env = dict(self.env, srcdir=os.path.join(self.src, test.folder), builddir=work)
        seen = os.path.join(tree, "witness." + file_name(test.name))
        if self.witness:
            env.update(LD_PRELOAD=self.witness, ZONDA_WITNESS=seen)
        if test.script:
            with open(test.script, errors="replace") as f:
                m = re.match(r"#!\s*(\S+)", f.readline())
            cmd = [m[1] if m else "/bin/sh", test.script]
        else:
            cmd = ["./" + test.test]
            if test.plugins:
                env["HDF5_PLUGIN_PATH"] = os.path.join(tree, "plugins", ".libs")
        r = self._process(test, cmd, work, env)
        r.hdf5, r.internals = os.path.exists(seen), internals
        return r

    def _process(self, test, cmd, cwd, env):
        log = os.path.join(self.logs, file_name(test.name) + ".log")
        start = time.time()
        with open(log, "wb") as out:
            p = subprocess.Popen(cmd, cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=out,
                                 stderr=subprocess.STDOUT, start_new_session=True)
            try:
                rc = p.wait(self.s.timeout * (10 if test.large else 1))
            except subprocess.TimeoutExpired:
                rc = None
                os.killpg(p.pid, signal.SIGKILL)        # its own process group, nothing else
                p.wait()
        seconds = time.time() - start
        if rc is None:
            return Result("FAIL", test.name, "timed out after %.0f s" % seconds, seconds)
        if rc < 0:
            return Result("FAIL", test.name, "killed by %s" % signal.Signals(-rc).name, seconds)
        if rc == 77:
            return Result("SKIP", test.name, "says that it does not apply (exit 77)", seconds)
        if rc:
            with open(log, errors="replace") as f:
                lines = [x.strip() for x in f if x.strip()] or ["no output"]
            return Result("FAIL", test.name, "exit %d: %s" % (rc, lines[-1][:160]), seconds)
        return Result("PASS", test.name, "", seconds)

    # ------------------------------------------------------------------ chains

    def _chain(self, chain, wanted):
        tree, work = self._tree(chain)
        failed = False
        for name in chain:
            test = self.plan.tests[name]
            if test.large and not self.s.large:
                result = Result("SKIP", name, "writes several GiB: run with --large")
            else:
                result = self._run(test, tree, work)
            if name in wanted:
                failed |= result.status == "FAIL"
                self._report(result)
        if not self.s.keep and not failed:
            shutil.rmtree(tree, ignore_errors=True)

    def _report(self, r):
        with self.print_lock:
            self.results[r.name] = r
            print("%s %s%s" % (r.status, r.name, " -- " + r.reason if r.reason else ""), flush=True)

    def run(self, names):
        """Runs the named tests with what they need; returns {name: Result}."""
        chains, wanted = self.plan.chains(names), set(names)
        with ThreadPoolExecutor(self.s.jobs) as pool:
            for f in [pool.submit(self._chain, c, wanted) for c in chains]:
                f.result()
        return self.results

"""Compiles the test programs, each only when it is needed and only when something changed.

Programs are linked with the distribution's library and run with the one under test: what is built
does not depend on the library under test, and a function that it lacks shows when it is called.
The headers are those of the library under test, so each compilation also tests them.
"""
import glob
import hashlib
import os
import re
import shlex
import subprocess
import threading

from settings import HDF5_INC, HDF5_LIB, HERE, SONAME, SYSTEM_INC, SYSTEM_LIB, Broken

# Programs of ours for those that need private functions or files: the same words on the command line, the same output.
DRIVERS = os.path.join(HERE, "support", "drivers")
STANDINS = os.path.join(HERE, "support", "standins.c")

# Imported by the Fortran library though no header declares them: part of the ABI all the same.
FORTRAN_ABI = {
    "nc_create_par_fortran", "nc_open_par_fortran", "nc_def_var_chunking_ints",
    "nc_inq_var_chunking_ints", "nc_get_chunk_cache_ints", "nc_set_chunk_cache_ints",
    "nc_get_var_chunk_cache_ints", "nc_set_var_chunk_cache_ints", "nc_var_par_access",
}
# Named by dispatch tables of programs, in no header either.
TABLE_ABI = {"NCDEFAULT_" + call for call in ("get_vars", "put_vars", "get_varm", "put_varm")}
DAP_INCLUDES = ("oc2", "libdap2", "libdap4", "liblib")


def dynamic_symbols(path, which):
    out = subprocess.run(["nm", "-D", which, path], capture_output=True, text=True).stdout
    return {line.split()[-1].split("@")[0] for line in out.splitlines() if line.strip()}


def header_text(incdir):
    text = ""
    for f in sorted(glob.glob(os.path.join(incdir, "netcdf*.h"))):
        with open(f, errors="replace") as handle:
            text += handle.read()
    return text


class Program:
    def __init__(self, path="", error="", internals=()):
        self.path, self.error, self.internals = path, error, sorted(internals)


class Builder:
    def __init__(self, s, src, builds, sources):
        self.s, self.src, self.builds, self.sources = s, src, builds, sources
        self.done, self.locks, self.guard = {}, {}, threading.Lock()
        public = set(re.findall(r"[A-Za-z_]\w+", header_text(SYSTEM_INC)))
        public |= FORTRAN_ABI | TABLE_ABI
        reference = os.path.join(SYSTEM_LIB, SONAME)
        if not os.path.exists(reference):
            raise Broken("%s is missing: the test programs are linked with it" % reference)
        self.private = dynamic_symbols(reference, "--defined-only") - public
        self.headers = self._headers_first()
        with open(STANDINS) as f:
            standins = f.read()
        self.inputs = hashlib.sha256((header_text(s.incdir) + standins).encode()).hexdigest()

    def _headers_first(self):
        """A folder of links to the headers under test: gcc moves a standard folder such as
        /usr/include to the end of its search, behind the source tree's own netcdf.h."""
        inc = self.s.folder("inc", self.s.label)
        for old in os.listdir(inc):
            os.unlink(os.path.join(inc, old))
        for f in glob.glob(os.path.join(self.s.incdir, "netcdf*.h")):
            os.symlink(f, os.path.join(inc, os.path.basename(f)))
        if not os.path.exists(os.path.join(inc, "netcdf.h")):
            raise Broken("no netcdf.h in %s" % self.s.incdir)
        return inc

    def _command(self, config, folder, program, exe):
        src, build = self.src, self.builds[config]
        flags = ["-O1", "-w", "-std=gnu99", "-fno-strict-aliasing", "-DHAVE_CONFIG_H",
                 "-D_GNU_SOURCE", "-DTOPSRCDIR=" + src, "-DTOPBINDIR=" + build]
        for d in (self.headers, build, os.path.join(build, folder), build + "/include",
                  src + "/include", src + "/libsrc", os.path.join(src, folder)):
            flags.append("-I" + d)
        if config == "full":
            flags.append("-I" + HDF5_INC)
        if "dap" in folder:
            flags += ["-I%s/%s" % (src, d) for d in DAP_INCLUDES]
        files = []
        for f in self.sources[(config, folder, program)]:
            if f.endswith(".c"):
                p = os.path.join(src, folder, f)
                files.append(p if os.path.exists(p) else os.path.join(build, folder, f))
        if program == "tst_inmemory":       # borrows the byte buffer of the package
            files += ["-DWITH_WHOLE_FILES", src + "/libdispatch/ncbytes.c"]
        if program == "tst_udf":
            files.append("-DWITH_TABLE_MEMBERS")
        libs = ["-L" + SYSTEM_LIB, "-lnetcdf"]
        if config == "full":
            libs += ["-L" + HDF5_LIB, "-lhdf5_hl", "-lhdf5"]
        return (["gcc"] + flags + files + [STANDINS, "-o", exe, "-Wl,--as-needed", "-Wl,-z,lazy",
                "-Wl,--unresolved-symbols=ignore-all"] + libs + ["-lm", "-lpthread"])

    def program(self, config, folder, program):
        """The compiled program, made at most once at a time and kept until an input changes."""
        key = (config, folder, program)
        with self.guard:
            lock = self.locks.setdefault(key, threading.Lock())
        with lock:
            if key not in self.done:
                self.done[key] = self._build(*key)
            return self.done[key]

    def _build(self, config, folder, program):
        driver = os.path.join(DRIVERS, program)
        if folder == "dap4_test" and self.s.label == "zonda" and os.path.exists(driver):
            return Program(driver)
        exe = os.path.join(self.s.folder("bin", self.s.label, config, folder), program)
        cmd = self._command(config, folder, program, exe)
        stamp = hashlib.sha256((shlex.join(cmd) + self.inputs).encode()).hexdigest()
        try:
            with open(exe + ".stamp") as f:
                fresh = f.read() == stamp and os.path.exists(exe)
        except OSError:
            fresh = False
        if not fresh:
            r = subprocess.run(cmd, capture_output=True, text=True, errors="replace")
            with open(exe + ".log", "w") as f:
                f.write(shlex.join(cmd) + "\n" + r.stdout + r.stderr)
            if r.returncode:
                errors = [x for x in r.stderr.splitlines() if "error" in x] or ["see %s.log" % exe]
                return Program(error="does not compile: " + errors[0].replace(self.src + "/", "")[:160])
            with open(exe + ".stamp", "w") as f:
                f.write(stamp)
        return Program(exe, internals=dynamic_symbols(exe, "--undefined-only") & self.private)

    def shared_object(self, name):
        """One of support/*.c as a preloadable object."""
        out = os.path.join(self.s.folder("bin"), name + ".so")
        cmd = ["gcc", "-shared", "-fPIC", "-O1", "-Wall", os.path.join(HERE, "support", name + ".c"),
               "-o", out, "-ldl"]
        r = subprocess.run(cmd, capture_output=True, text=True)
        if r.returncode:
            raise Broken("%s.c does not compile:\n%s" % (name, r.stderr))
        return out

# SPDX-License-Identifier: MIT OR Apache-2.0
"""The library that does TLS: loaded for the first https:// URL and not before, and missed or refused by name."""
import json
import os
import shutil
import sys
from pathlib import Path

import loading
import places
import rig
from rig import Wrong

FILE = "files/example_2.nc"
NAME = "libzonda-tls.so.1"
CAPI = Path(__file__).with_name("capi.py")
# Tables of other versions, and none at all.
STATIC = """#include <netcdf.h>
#include <stdio.h>
int main(int argc, char **argv) {
    int id, code = argc > 1 ? nc_open(argv[1], NC_NOWRITE, &id) : NC_EINVAL;
    puts(code == NC_NOERR ? "open" : nc_strerror(code));
    return code != NC_NOERR || nc_close(id) != NC_NOERR;
}
"""
TABLE = "unsigned table[64] = {%s}; const void *zonda_tls_table(void) { return %s; }\n"


def all_of(bench):
    if not (rig.LIBDIR / NAME).exists():
        bench.counts.skip("tls", f"no {NAME} in {rig.LIBDIR}")
        return
    if "nginx" not in bench.servers.running:
        bench.counts.skip("tls", "no nginx")
        return
    for test in (when_it_is_loaded, static_library, missing, found_by_the_loader, no_library, other_versions, said_by_doctor, forked_around, forked_within):
        if bench.options.wants("tls " + test.__name__):
            bench.counts.attempt("tls " + test.__name__, test, bench)


def alone(bench, name):
    """A folder lib with the library and nothing beside it. Not a link, which is followed to what is beside its target."""
    folder = bench.scratch / name / "lib"
    folder.mkdir(parents=True)
    try:
        os.link(rig.LIBRARY.resolve(), folder / rig.SONAME)
    except OSError:
        shutil.copy(rig.LIBRARY, folder / rig.SONAME)
    return folder


def environment(bench, **more):
    where = places.home_of(bench.homes, "tls", ncrc="HTTP.SSL.CAINFO=%s\n" % bench.servers.ca)
    return rig.environment(None, places.NETWORK, HOME=where, **more)


def said(bench, library, env, server=None):
    url = "%s/%s#mode=bytes" % (server or bench.servers.https, FILE)
    return json.loads(bench.run([sys.executable, CAPI, library, url], env).stdout)


def when_it_is_loaded(bench):
    """By what the loader says of itself: for https and for nothing else."""
    for server, expected in ((bench.servers.http, False), (bench.servers.https, True)):
        log = bench.scratch / ("loader-%s" % expected)
        done = said(bench, rig.LIBRARY, environment(bench, LD_DEBUG="files", LD_DEBUG_OUTPUT=log), server)
        if done["open"] != 0:
            raise Wrong("%s: %s" % (server, done["error"]))
        [text] = [path.read_text(errors="replace") for path in bench.scratch.glob(log.name + ".*")]
        if (NAME in text) != expected or rig.SONAME not in text:
            raise Wrong("%s: that %s is loaded is %s" % (server, NAME, NAME in text))


def static_library(bench):
    """libnetcdf.a has it inside: a program that is linked with that opens https:// and needs no library beside."""
    if not (rig.LIBDIR / "libnetcdf.a").exists():
        raise rig.Skip("no libnetcdf.a in %s" % rig.LIBDIR)
    folder = bench.scratch / "tls-static"
    folder.mkdir()
    (folder / "open.c").write_text(STATIC)
    libraries = [rig.LIBDIR / "libnetcdf.a", "-lgcc_s", "-lpthread", "-ldl", "-lm"]
    program = rig.compile_c(folder / "open", folder / "open.c", link=None, flags=["-I", rig.INCDIR], libraries=libraries)
    log = folder / "loader"
    env = environment(bench, LD_DEBUG="files", LD_DEBUG_OUTPUT=log)
    done = bench.run([program, "%s/%s#mode=bytes" % (bench.servers.https, FILE)], env)
    if done.returncode or done.stdout.strip() != "open":
        raise Wrong("it ends with %s and says %s" % (done.returncode, done.stdout))
    if any(NAME in path.read_text(errors="replace") for path in folder.glob(log.name + ".*")):
        raise Wrong("it loads %s" % NAME)


def refused(bench, folder, *words):
    done = said(bench, folder / rig.SONAME, environment(bench))
    if done["open"] == 0:
        raise Wrong("it opens")
    for word in (NAME, *words):
        if word not in done["error"]:
            raise Wrong("the error has nothing of %s: %s" % (word, done["error"]))
    # Other servers are read all the same.
    if said(bench, folder / rig.SONAME, environment(bench), bench.servers.http)["open"] != 0:
        raise Wrong("http:// does not open")


def missing(bench):
    folder = alone(bench, "tls-missing")
    refused(bench, folder, str(folder / NAME), "make install", "libzonda")


def found_by_the_loader(bench):
    folder = alone(bench, "tls-path")
    other = bench.scratch / "tls-path/other"
    other.mkdir()
    shutil.copy(rig.LIBDIR / NAME, other)
    done = said(bench, folder / rig.SONAME, environment(bench, LD_LIBRARY_PATH=other))
    if done["open"] != 0:
        raise Wrong("it does not open: %s" % done["error"])


def no_library(bench):
    folder = alone(bench, "tls-text")
    (folder / NAME).write_text("no library")
    refused(bench, folder, str(folder / NAME), "same release")


def other_versions(bench):
    for name, numbers, gives, words in (
        ("later", "2, 80", "table", "version 2 "), ("longer", "1, 96", "table", "96 bytes"), ("empty", "1, 80", "0", "no table"),
    ):  # fmt: skip
        folder = alone(bench, "tls-" + name)
        (folder / "table.c").write_text(TABLE % (numbers, gives))
        rig.compile_c(folder / NAME, folder / "table.c", link=None, flags=["-shared", "-fPIC"])
        refused(bench, folder, str(folder / NAME), words)
    folder = alone(bench, "tls-none")
    (folder / "none.c").write_text("int none;\n")
    rig.compile_c(folder / NAME, folder / "none.c", link=None, flags=["-shared", "-fPIC"])
    refused(bench, folder, str(folder / NAME), "there is no zonda_tls_table in it")


def said_by_doctor(bench):
    here = bench.scratch / "doctor"
    here.mkdir()
    folder = alone(bench, "tls-doctor")
    shutil.copy(rig.LIBDIR / "libzonda-preload.so", folder)
    for where, status, words in ((rig.LIBDIR, 0, "https:// URLs open, by "), (folder, 1, "https:// URLs do not open: ")):
        done = bench.run([rig.BIN / "zonda", "doctor", "--lib", where, here], environment(bench))
        if done.returncode != status or words + ("" if status else str(where / NAME)) not in done.stdout:
            raise Wrong("it ends with %s and says %s" % (done.returncode, done.stdout))


def forked_around(bench):
    loading.forked_around(bench, environment(bench, LD_LIBRARY_PATH=rig.LIBDIR))


def forked_within(bench):
    loading.forked_within(bench, environment(bench), alone(bench, "tls-half"))

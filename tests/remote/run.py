#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Files behind servers: by URL as by path.

    run.py [--quick] [--long] [--only REGEX] [--parts LIST] [--seed N]

line      the proxy that delays and counts (latency.py) does both
requests  few requests for a whole variable whose index lies scattered among its chunks
files     every file of tests/corpus, by each way to it: ncdump says the same as of the file alone in a folder, of damaged ones, too. With
          ZONDA_CORPUS those of the corpus, each by one way (--long: by each)
programs  ncdump and nccopy of the distribution, NCO, CDO, GDAL and netCDF4-python under zonda run, by URL as by path
refused   wrong and missing passwords, secrets, certificates, objects and servers: an error that names the URL, and no value
secrets   users, passwords, secrets and signatures are in no output, trace or inquiry, and go to no other host
tls       the library that does TLS: when it is loaded, what is said where it is not there, or another one, and forks while it is loaded
local     programs with local files open no socket and no certificate
put       finished files copied to S3: the bytes of a local copy; what fails leaves no object
fork      a forked child has connections of its own; threads share the limit of them
hostile   servers that break their word, through the C interface: an error, fill in the caller's memory, bounded time and memory
guide     the examples of docs/guides/remote.md
"""
import concurrent.futures
import hashlib
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(1, str(HERE.parent))
import rig  # noqa: E402
import foreign  # noqa: E402
import forked  # noqa: E402
import guide  # noqa: E402
import hostile  # noqa: E402
import lines  # noqa: E402
import n_requests  # noqa: E402
import places  # noqa: E402
import puts  # noqa: E402
import refusals  # noqa: E402
import tls  # noqa: E402
from rig import Wrong  # noqa: E402
from servers import Servers  # noqa: E402

SMALL = HERE.parent / "corpus"
SECONDS = 60
# Of what is told of a file, in bytes.
LONGEST = 32 << 20
# Lines of exceptions.txt: a regular expression for the name of a file, and why it may say otherwise by URL.
EXCEPTIONS = [line.split("\t") for line in (HERE / "exceptions.txt").read_text().splitlines() if line and not line.startswith("#")]


class Bench:
    """Servers, the folder that they serve, and what is known of it."""

    def __init__(self, options, counts, scratch, servers):
        self.options, self.counts, self.scratch, self.servers = options, counts, scratch, servers
        self.files = scratch / "files"
        self.alone = scratch / "alone"
        self.local = {}
        self.ways = []
        shutil.copytree(SMALL / "files", self.files / "files")
        shutil.copytree(SMALL / "bad", self.files / "bad")
        self.small = sorted(str(path.relative_to(self.files)) for path in self.files.glob("*/*"))
        self.large = []
        if rig.CORPUS and (rig.CORPUS / "MANIFEST.tsv").exists():
            # Links, so that 60 MB need not be copied; servers follow them.
            (self.files / "large").symlink_to(rig.CORPUS / "files")
            rows = [line.split("\t") for line in (rig.CORPUS / "MANIFEST.tsv").read_text().splitlines()]
            self.large = ["large" + row[0].removeprefix("files") for row in rows if row[0].startswith("files/") and row[1] not in ("foreign", "hdf4")]
        for path in self.files.rglob("*"):
            if not path.is_symlink() and path.is_file():
                path.chmod(0o644)

    def start(self):
        """What is installed of servers, and the ways to them."""
        servers, homes = self.servers, self.scratch / "homes"
        homes.mkdir()
        self.counts.attempt("nginx", servers.nginx, self.files)
        if "nginx" in servers.running:
            self.ways += places.of_nginx(servers, homes)
            if self.counts.attempt("squid", servers.squid):
                self.ways += places.of_squid(servers, homes)
        if self.counts.attempt("moto", servers.moto):
            self.ways += places.of_s3(servers, homes, "moto", servers.moto_endpoint)
        if self.counts.attempt("versitygw", servers.versitygw):
            self.ways += places.of_s3(servers, homes, "versitygw", servers.s3_endpoint)
        self.homes = homes

    def way(self, name):
        """A way by its name, or the test is left out."""
        found = [way for way in self.ways if way.name == name]
        if not found:
            raise rig.Skip("no server for %s" % name)
        return found[0]

    def run(self, command, env, seconds=SECONDS, **how):
        """Runs a program; no secret of the servers may be in what it says."""
        done = rig.run(command, env, seconds=seconds, **how)
        for text in (done.stdout or "", done.stderr or ""):
            said = text if isinstance(text, str) else text.decode("latin-1")
            if any(secret in said for secret in self.servers.secrets()):
                raise Wrong("a secret is in what %s says" % command[0])
        return done

    def path_alone(self, name):
        """The file by itself in a folder: names beside it are none of a remote file's."""
        folder = self.alone / hashlib.sha256(name.encode()).hexdigest()[:16]
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / Path(name).name
        if not path.exists():
            shutil.copyfile(self.files / name, path)
        return path

    def dump(self, target, env, *shown, words=()):
        """What our ncdump says: status, digest of the text, and the errors without the name."""
        with tempfile.TemporaryFile(dir=self.scratch) as text:
            done = self.run([rig.BIN / "ncdump", "-n", "x", *words, target], env, text=False, stdout=text, stderr=subprocess.PIPE, preexec_fn=rig.bounds(file=LONGEST))
            text.seek(0)
            digest = hashlib.file_digest(text, "sha256").hexdigest()
        said = done.stderr.decode("utf-8", "backslashreplace")
        for name in sorted(map(str, shown), key=len, reverse=True):
            said = said.replace(name, "NAME")
        # Names of other files are refused there, and here the file is alone.
        said = re.sub("there is no such file|a file behind a network may not name other files", "not there", said)
        # Where nothing says that the URL is that of a file, what it was tried as is told of, too.
        said = re.sub("\nLocation: NAME: no netCDF file: .*; and no dataset of OPeNDAP: .*", "", said)
        # Bytes that are no netCDF file have the reference's code for such an answer, which is another one than for a path.
        said = re.sub("NetCDF: HDF error|NetCDF: file not found", "NetCDF: Unknown file format", said)
        return done.returncode, digest, re.sub(r"\[bytes\]|#mode=\S*?bytes\b|#aws\S*?=other\b", "", said).strip()

    def dump_local(self, name):
        """(further words for ncdump, what it says)"""
        if name not in self.local:
            path, env = self.path_alone(name), rig.environment(rig.LIBDIR, places.NETWORK, HOME=self.homes)
            words, said = [], self.dump(path, env, path)
            if said[0] == -signal.SIGXFSZ:
                # Little is stored of it, and much told.
                words, said = ["-h"], self.dump(path, env, path, words=["-h"])
            self.local[name] = words, said
        return self.local[name]


def line(bench):
    lines.all_of(bench)


def same_dump(bench, way, name):
    words, wanted = bench.dump_local(name)
    got = bench.dump(way.url(name), way.environment(), way.url(name), way.shown(name), way.shown(name).removeprefix("[bytes]"), way.before + "/" + name, words=words)
    if "not there" in wanted[2] and "not there" in got[2] and wanted[:2] == got[:2]:
        # By path it is missing, by URL refused: the codes that a tool tells are two.
        return
    if "the object ends at byte" in got[2] and got[0] != 0:
        # A classic file without its end: by path zeros stand for it, as in the reference.
        return
    if wanted != got and not any(re.search(pattern, name) for pattern, _ in EXCEPTIONS):
        what = ["status", "text", "errors"]
        differ = ", ".join("%s: by path %.300r, by URL %.300r" % (what[n], wanted[n], got[n]) for n in range(3) if wanted[n] != got[n])
        raise Wrong("%s by %s: %s" % (name, way.url(name), differ))


def files(bench):
    options, chosen = bench.options, random.Random(bench.options.seed)
    names = bench.small if not options.by(1, 0, 0) else chosen.sample(bench.small, 8)
    cases = [(way, name) for way in bench.ways for name in names]
    if options.mark != rig.QUICK:
        # Neighbours in the list go different ways.
        first = chosen.randrange(1 << 16)
        cases += [(way, name) for n, name in enumerate(bench.large) for m, way in enumerate(bench.ways) if options.long or (n + first) % len(bench.ways) == m]
    cases = [(way, name) for way, name in cases if options.wants("%s %s" % (way.name, name))]
    if bench.ways and any(way.upload for way, _ in cases):
        by_server = sorted({name for way, name in cases if way.upload})
        bench.counts.attempt("upload", places.uploaded, bench.servers, bench.files, by_server, [way for way in bench.ways if way.upload])
    bench.servers.log() if "nginx" in bench.servers.running else None
    with concurrent.futures.ThreadPoolExecutor(int(os.environ.get("ZONDA_JOBS", "2"))) as pool:
        # The local answers first, each once.
        list(pool.map(bench.dump_local, sorted({name for _, name in cases})))
        for done in [pool.submit(bench.counts.attempt, "%s %s" % (way.name, name), same_dump, bench, way, name) for way, name in cases]:
            done.result()
    if cases and "nginx" in bench.servers.running:
        bench.counts.attempt("what nginx saw", seen_by_nginx, bench, cases)


def seen_by_nginx(bench, cases):
    """The files did come from there, by ranges, and with a login and a certificate where one is asked for."""
    rows = bench.servers.log()
    names = {way.name for way, _ in cases}
    if "http" in names and not any(status == 206 and asked.startswith("bytes=") for _, status, _, _, _, asked, _, _ in rows):
        raise Wrong("no ranges in %d requests" % len(rows))
    if "login" in names and not any(user == bench.servers.user and status == 206 for _, status, _, _, _, _, user, _ in rows):
        raise Wrong("nobody logged in")
    if "certificate" in names and not any("CN=client" in cert for *_, cert in rows):
        raise Wrong("nobody had a certificate")
    heads = [row for row in rows if row[3] == "HEAD"]
    if heads:
        raise Wrong("%d HEADs, of %s" % (len(heads), heads[0][4]))


def programs(bench):
    foreign.all_of(bench)


def refused(bench):
    refusals.all_of(bench)


def secrets(bench):
    refusals.secrets_of(bench)


def tls_library(bench):
    tls.all_of(bench)


def local(bench):
    """By strace: no socket, no file of a certificate, no .netrc."""
    if bench.options.wants("local"):
        strace = rig.tool("strace")
        if not strace:
            bench.counts.skip("local", "no strace")
            return
        for program, words in (("ncdump", []), ("nccopy", ["out"]), ("zonda", [])):
            for name in ("files/example_2.nc", "files/tas_mod2_hist_rectilin_grid_2D.nc", "files/paged_nopersist.h5"):
                bench.counts.attempt("local %s %s" % (program, name), no_socket, bench, strace, program, words, name)


def no_socket(bench, strace, program, words, name):
    log, path = bench.scratch / "strace", bench.path_alone(name)
    target = [bench.scratch / "out.nc"] if words else []
    command = [rig.BIN / program, *(["info"] if program == "zonda" else []), path, *target]
    calls = "trace=socket,socketpair,connect,bind,open,openat,openat2,clone,clone3,fork,vfork"
    done = bench.run([strace, "-f", "-qq", "-e", calls, "-o", log, *command], rig.environment(rig.LIBDIR, places.NETWORK, HOME=bench.way("login").home))
    text = log.read_text(errors="replace")
    if str(path) not in text:
        raise rig.Skip("strace sees nothing here: %s" % done.stderr.strip()[-200:])
    found = [row for row in text.splitlines() if re.search(r"\b(socket|socketpair|connect|bind)\(|ca-certificates|/ssl/|\.pem\"|\.crt\"|\.netrc|\.aws/|resolv\.conf|/etc/hosts", row)]
    # What a library of the system reads for itself is openssl.cnf at most, and we link none.
    if found:
        raise Wrong("%s does: %s" % (program, found[0].strip()))


def requests(bench):
    n_requests.all_of(bench)


def put(bench):
    puts.all_of(bench)


def forks(bench):
    forked.all_of(bench)


def hostile_servers(bench):
    hostile.all_of(bench)


def guided(bench):
    guide.all_of(bench)


PARTS = {"line": (rig.QUICK, line), "requests": (rig.QUICK, requests), "files": (rig.QUICK, files), "programs": (rig.FULL, programs), "refused": (rig.QUICK, refused), "secrets": (rig.QUICK, secrets),
         "tls": (rig.QUICK, tls_library), "local": (rig.QUICK, local), "put": (rig.FULL, put), "fork": (rig.QUICK, forks), "hostile": (rig.FULL, hostile_servers), "guide": (rig.FULL, guided)}  # fmt: skip


def main():
    options = rig.arguments(rig.parser(__doc__, parts={name: mark for name, (mark, _) in PARTS.items()}, seed=1))
    counts = rig.Counts()
    if not rig.LIBRARY.exists():
        raise rig.Setup("no %s in %s; run make build" % (rig.SONAME, rig.LIBDIR))
    with rig.scratch() as scratch, Servers(scratch / "servers") as servers:
        bench = Bench(options, counts, scratch, servers)
        bench.start()
        for part in options.chosen():
            PARTS[part][1](bench)
    return counts


if __name__ == "__main__":
    rig.main(main)

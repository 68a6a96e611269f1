"""manifest.tsv of this folder, and asking a library about one of its files."""
import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass

HERE = os.path.dirname(os.path.abspath(__file__))
MANIFEST = os.path.join(HERE, "manifest.tsv")
COLUMNS = ["file", "origin", "licence", "code", "header_sha256", "data_sha256"]
SECONDS = 20


@dataclass
class Row:
    """`code`: what nc_open returns, or `refused` (any error) where the reference has no answer of its
    own: it crashes, or asks for as much memory as the damaged count says. Digests are `-` for damaged files: what a library reads out of
    damaged bytes binds nobody, that it ends and how it refuses does."""
    file: str
    origin: str
    licence: str
    code: str
    header_sha256: str
    data_sha256: str

    @property
    def damaged(self):
        return self.file.startswith("bad/")


def read():
    with open(MANIFEST) as f:
        lines = [x.rstrip("\n").split("\t") for x in f]
    if lines[0] != COLUMNS:
        raise SystemExit("%s: unexpected columns %s" % (MANIFEST, lines[0]))
    return [Row(*x) for x in lines[1:]]


def write(rows):
    with open(MANIFEST, "w") as f:
        for r in [COLUMNS] + [[getattr(r, c) for c in COLUMNS] for r in rows]:
            f.write("\t".join(r) + "\n")


def unlisted(rows):
    have = {os.path.join(d, n) for d in ("files", "bad") for n in os.listdir(os.path.join(HERE, d))}
    return sorted(have - {r.file for r in rows})


def ask(library, row, *options):
    """(code, header digest, data digest) as the manifest writes them, or (how it died, "", "")."""
    try:
        p = subprocess.run([sys.executable, os.path.join(HERE, "probe.py"), "--lib", library, *options,
                            os.path.join(HERE, row.file)], capture_output=True, text=True, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return "no answer within %d s" % SECONDS, "", ""
    if p.returncode < 0:
        return "killed by %s" % signal.Signals(-p.returncode).name, "", ""
    if p.returncode:
        return "exit %d: %s" % (p.returncode, p.stderr.strip().splitlines()[-1:]), "", ""
    answer = json.loads(p.stdout)
    none = answer["code"] != 0 or row.damaged
    return (str(answer["code"]), "-" if none else answer["header_sha256"],
            "-" if none else answer["data_sha256"])

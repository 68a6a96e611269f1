#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""A weather model's output in miniature: gathered to rank 0 and written there, and by 1, 2, 3 and 6 groups of I/O servers.

    study_cosmo.py               half the size, one round, in C and Fortran: a minute or two; out/study/cosmo.md, .svg and .csv
    study_cosmo.py --full        4.2 s of computing and 768 MB of output, three rounds
    study_cosmo.py --ranks N     ranks that compute (8)
    study_cosmo.py --rate BYTES  what a process can write in a second (60e6)
    study_cosmo.py --extra N...  rows with N servers as extra ranks of the program, which calls nc_zonda_servers (C)

The program (engines/cosmo.c and .f90) makes ordinary calls of netCDF: six fields, a file each, a record a step. It sleeps where a model computes, so
that overlap shows on few cores. The device of a process (rank 0, or each server) is that of the layer `throttle:RATE:shared`: whatever a
process writes, to however many files, goes at that rate. So with G groups the output takes bytes / (G x rate) at least, and all of it

    law = max(compute + copies, bytes / (G x rate))

Compute is what the same program takes without output, copies what puts cost the ranks with the most groups. Gathering overlaps nothing: compute + bytes / rate.
Ranks of MPICH that wait for others keep their cores busy: more ranks than cores, or a busy machine, make gathering longer. See docs/guides/output-modes.md.
"""

import argparse
import csv
import datetime
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import harness
from harness import ROOT

sys.path[1:1] = [str(ROOT / "tests"), str(ROOT / "tests" / "par")]
import launch  # noqa: E402
import rig  # noqa: E402

MOST_SECONDS = 300
STEPS = 24
FULL = {"compute": 4.2, "megabytes": 768.0}
GROUPS = (1, 2, 3, 6)
COLOURS = {"compute": "#bbbbbb", "output": "#d55e00", "final wait": "#0072b2"}


class Study:
    def __init__(self, mpi, programs, folder, options):
        self.mpi, self.programs, self.folder, self.options = mpi, programs, folder, options
        share = 1.0 if options.full else 0.5
        self.compute, self.megabytes = FULL["compute"] * share, FULL["megabytes"] * share
        self.zonda = ROOT / "dist" / "bin" / "zonda"
        self.rows = []
        self.whole = {}

    def run(self, language, way, groups):
        """One run: its parts in seconds."""
        for old in self.folder.glob("*.nc"):
            old.unlink()
        words = [self.programs[language], self.folder, f"extra:groups={groups}" if way == "extra" else way, STEPS, self.compute, self.megabytes]
        command = launch.command(self.mpi, self.options.ranks + (groups if way == "extra" else 0), words)
        if way == "together":
            command = [self.zonda, "run", "--servers", f"groups={groups}", "--", *command]
        io = f"cache,throttle:{int(self.options.rate)}:shared,file"
        env = launch.environment(self.mpi, ROOT / "dist" / "lib", ZONDA_IO=io)
        done = subprocess.run([str(word) for word in command], env=env, capture_output=True, text=True, timeout=MOST_SECONDS)
        ended = time.time()
        if done.returncode:
            sys.exit(f"{language}, {way}, {groups} groups ends with {done.returncode}: {done.stdout[-500:]} {done.stderr[-2000:]}")
        parts = json.loads(done.stdout.splitlines()[-1])
        total = ended - parts["began"]
        return {"compute": parts["compute"], "output": parts["output"], "final wait": total - parts["compute"] - parts["output"], "total": total}

    def law(self, language, name):
        """What it takes at least."""
        compute, device = self.median(language, self.names()[0], "total"), self.megabytes * 1e6 / self.options.rate
        groups = next(row["groups"] for row in self.rows if row["way"] == name)
        if name == self.names()[0]:
            return compute
        copies = min((self.median(language, row["way"], "output") for row in self.rows if row["groups"] and row["language"] == language), default=0)
        return max(compute + copies, device / groups) if groups else compute + device

    def same_files(self, language, name):
        """All ways leave the same values."""
        for path in sorted(self.folder.glob("*.nc")):
            digest = hash(rig.must([rig.tool("ncdump"), path], rig.environment(rig.reference())))
            if self.whole.setdefault((language, path.stem), digest) != digest:
                sys.exit(f"{language}, {name}: {path.name} has other values")

    def measure(self):
        ways = [("none", 0), ("gather", 0), *(("together", groups) for groups in self.options.groups)]
        for language in self.programs:
            extra = [("extra", groups) for groups in self.options.extra if language == "C"]
            for way, groups in ways + extra:
                name = {"none": "no output", "gather": "gather, written by rank 0"}.get(way, f"{groups} group{'s' * (groups > 1)}{', extra ranks' * (way == 'extra')}")
                runs = [self.run(language, way, groups) for _ in range(self.options.repeat)]
                for number, parts in enumerate(runs):
                    self.rows.append({"language": language, "way": name, "groups": groups, "round": number, **parts})
                print(f"{language}, {name}: {statistics.median(run['total'] for run in runs):.2f} s", file=sys.stderr, flush=True)
                if self.options.compare:
                    self.same_files(language, name)

    def median(self, language, way, part):
        return statistics.median(row[part] for row in self.rows if (row["language"], row["way"]) == (language, way))

    def names(self, language=None):
        """The ways that were run, of one language or all."""
        return list(dict.fromkeys(row["way"] for row in self.rows if language in (None, row["language"])))


def table(study, heading):
    o = study.options
    lines = [heading, "", f"{o.ranks} ranks, {study.mpi.name}; 6 fields in 6 files, {study.megabytes:.0f} MB in {STEPS} steps, {study.compute:.1f} s of computing; a process writes {o.rate / 1e6:.0f} MB/s. Seconds, medians.", ""]
    for language in study.programs:
        lines += [f"| {language} | compute | output | final wait | total | of compute | law | total / law |", "|---" * 8 + "|"]
        for name in study.names(language):
            part = {what: study.median(language, name, what) for what in ("compute", "output", "final wait", "total")}
            law = study.law(language, name)
            cells = " | ".join(f"{part[what]:.2f}" for what in ("compute", "output", "final wait", "total"))
            lines.append(f"| {name} | {cells} | {part['total'] / study.median(language, study.names()[0], 'total'):.2f} | {law:.2f} | {part['total'] / law:.2f} |")
        lines.append("")
    return "\n".join(lines)


def plot(study):
    """Bars of what the time of each way is made of."""
    languages = list(study.programs)
    wide, tall, left, bar = 460, 26, 190, 18
    most = max(row["total"] for row in study.rows)
    # Not all languages have all ways.
    height = 50 + sum(len(study.names(language)) * tall + 40 for language in languages)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + wide + 70}" height="{height + 30}" font-family="sans-serif" font-size="12">',
           '<rect width="100%" height="100%" fill="white"/>',
           f'<text x="10" y="18" font-size="13">Six files, {study.megabytes:.0f} MB, {study.options.rate / 1e6:.0f} MB/s a process, {study.compute:.1f} s of computing: seconds</text>']
    y = 36
    for language in languages:
        out.append(f'<text x="10" y="{y + 14}" font-weight="bold">{language}</text>')
        y += 22
        for name in study.names(language):
            x = left
            out.append(f'<text x="{left - 8}" y="{y + 14}" text-anchor="end">{name}</text>')
            for part, colour in COLOURS.items():
                long = max(0.0, study.median(language, name, part)) / most * wide
                out.append(f'<rect x="{x:.1f}" y="{y}" width="{long:.1f}" height="{bar}" fill="{colour}"/>')
                x += long
            out.append(f'<text x="{x + 5:.1f}" y="{y + 14}">{study.median(language, name, "total"):.1f}</text>')
            y += tall
        at, above = left + study.compute / most * wide, len(study.names(language)) * tall + 4
        out.append(f'<line x1="{at:.1f}" x2="{at:.1f}" y1="{y - above}" y2="{y}" stroke="#444" stroke-dasharray="4,3"/>')
        y += 14
    for number, (part, colour) in enumerate(COLOURS.items()):
        x = left + number * 130
        out.append(f'<rect x="{x}" y="{height}" width="14" height="14" fill="{colour}"/><text x="{x + 20}" y="{height + 12}">{part}</text>')
    return "\n".join([*out, "</svg>", ""])


def build(folder):
    """The programs, for MPICH."""
    mpi = next(mpi for mpi in launch.known() if mpi.name == "mpich")
    if not mpi.there_is():
        sys.exit("the study needs MPICH (mpicc.mpich)")
    folder.mkdir(parents=True, exist_ok=True)
    env, engines, programs = launch.environment(mpi), ROOT / "bench" / "engines", {"C": folder / "cosmo"}
    library = ["-L", rig.LIBDIR, "-l:" + rig.SONAME]
    rig.must([mpi.compiler, "-O2", "-I", rig.LIBDIR / "netcdf" / "mpi" / "include", "-I", rig.INCDIR, engines / "cosmo.c", "-o", programs["C"], *library], env)
    if rig.tool(mpi.fortran) and shutil.which("nf-config"):
        programs["Fortran"] = folder / "cosmo_f"
        flags = subprocess.run(["nf-config", "--fflags"], capture_output=True, text=True, check=True).stdout.split()
        rig.must([mpi.fortran, "-O2", *flags, engines / "cosmo.f90", "-o", programs["Fortran"], "-J", folder, "-lnetcdff", *library], env)
    return mpi, programs


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--full", action="store_true")
    p.add_argument("--ranks", type=int, default=8)
    p.add_argument("--rate", type=float, default=60e6)
    p.add_argument("--repeat", type=int, default=0)
    p.add_argument("--groups", type=int, nargs="*", default=list(GROUPS))
    p.add_argument("--extra", type=int, nargs="*", default=[])
    p.add_argument("--languages", nargs="+", choices=("C", "Fortran"), default=["C", "Fortran"])
    p.add_argument("--compare", action="store_true", help="compare the values of all files with the reference's ncdump (slow)")
    options = p.parse_args()
    options.repeat = options.repeat or (3 if options.full else 1)
    mpi, programs = build(ROOT / "out" / "bench-bin")
    programs = {language: path for language, path in programs.items() if language in options.languages}
    out = ROOT / "out" / "study"
    out.mkdir(parents=True, exist_ok=True)
    started, host = datetime.datetime.now(datetime.timezone.utc), harness.machine()
    with tempfile.TemporaryDirectory(prefix="zonda-cosmo-", dir=os.environ.get("BENCH_MEMORY", "/dev/shm")) as folder:
        study = Study(mpi, programs, Path(folder), options)
        study.measure()
    heading = f"{host['cpu']}, {host['cores']} cores, Linux {host['kernel']}; commit {harness.commit()}, {started:%Y-%m-%d %H:%M} UTC, load {host['load_at_start']:.1f}; {options.repeat} round{'s' * (options.repeat > 1)}"
    text = table(study, heading)
    (out / "cosmo.md").write_text(text)
    with (out / "cosmo.csv").open("w", newline="") as f:
        rows = csv.DictWriter(f, list(study.rows[0]))
        rows.writeheader()
        rows.writerows(study.rows)
    (out / "cosmo.svg").write_text(plot(study))
    print(text)
    print("written: " + ", ".join(str((out / f"cosmo.{end}").relative_to(ROOT)) for end in ("md", "csv", "svg")))
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""What the programs of this folder share: engines, libraries, machine, records. See README.md."""

import datetime
import hashlib
import itertools
import json
import os
import platform
import re
import subprocess
import sys
from pathlib import Path

BENCH = Path(__file__).resolve().parent
ROOT = BENCH.parent
REFERENCE = "reference"

# Engine -> source and compiler flags. Those that stand for a limit are allowed everything.
LIMIT_FLAGS = ["-O3", "-march=native", "-fno-trapping-math"]
ENGINES = {
    "history_model": ("examples/history_model.c", ["-std=c99", "-O2", "-lnetcdf", "-lm"]),
    "raw_write": ("examples/raw_write.c", ["-std=c99", *LIMIT_FLAGS]),
    "arrays": ("bench/engines/arrays.c", ["-std=c99", "-O2", "-lnetcdf"]),
    "small": ("bench/engines/small.c", ["-std=c99", "-O2", "-lnetcdf"]),
    "cycle": ("bench/engines/cycle.c", ["-std=c99", "-O2", "-lnetcdf"]),
    "redef": ("bench/engines/redef.c", ["-std=c99", "-O2", "-lnetcdf"]),
    "inquire": ("bench/engines/inquire.c", ["-std=c99", "-O2", "-lnetcdf"]),
    "digest": ("bench/engines/digest.c", ["-std=c99", "-O2", "-lnetcdf"]),
    "families": ("bench/engines/families.c", ["-std=c99", "-O2", "-lnetcdf", "-ldl"]),
    "limits": ("bench/engines/limits.c", ["-std=c11", "-Wno-type-limits", *LIMIT_FLAGS]),
    "thread_time.so": ("bench/engines/thread_time.c", ["-std=gnu11", "-O2", "-shared", "-fPIC"]),
    "throttle.so": ("bench/engines/throttle.c", ["-std=gnu11", "-O2", "-shared", "-fPIC", "-ldl"]),
}


class Failed(Exception):
    """An engine that did not do its work; the text says which and why."""


# ---- libraries and the machine ------------------------------------------------------------------


def resolved(program: Path, env: dict) -> Path | None:
    """The libnetcdf that `program` would load in `env`."""
    out = subprocess.run(["ldd", program], env=env, capture_output=True, text=True, check=True)
    found = re.search(r"libnetcdf\.so\S* => (\S+)", out.stdout)
    return Path(found[1]).resolve() if found else None


def libraries(bin_dir: Path) -> dict[str, dict]:
    """Name -> environment and identity of each library to run on; the reference comes first."""
    base = {k: v for k, v in os.environ.items() if k not in ("LD_LIBRARY_PATH", "LD_PRELOAD")}
    folders: dict[str, Path | None] = {REFERENCE: None}
    zonda = Path(os.environ.get("ZONDA_LIB", ROOT / "dist" / "lib"))
    if (zonda / "libnetcdf.so.19").exists():
        folders["zonda"] = zonda
    else:
        print(f"no libnetcdf.so.19 in {zonda}: only the reference is run", file=sys.stderr)
    for item in filter(None, os.environ.get("NETCDF_LIBS", "").split(":")):
        name, _, folder = item.partition("=")
        if not folder or name in folders or not Path(folder).is_dir():
            sys.exit(f'NETCDF_LIBS is "name=folder:name=folder", not "{item}"')
        folders[name] = Path(folder)

    found = {}
    for name, folder in folders.items():
        env = base if folder is None else {**base, "LD_LIBRARY_PATH": str(folder)}
        library = resolved(bin_dir / "arrays", env)
        if library is None or (folder and not library.samefile(folder / "libnetcdf.so.19")):
            sys.exit(f"{name}: the engines would load {library}, not one of {folder}")
        out = subprocess.run(
            [sys.executable, "-c", VERSION_OF, library], env=env, capture_output=True, text=True
        )
        found[name] = {
            "env": env,
            "version": out.stdout.strip() or "unknown",
            "file": library.name,
            "sha256": hashlib.sha256(library.read_bytes()).hexdigest()[:16],
        }
    return found


VERSION_OF = """
import ctypes, sys
lib = ctypes.CDLL(sys.argv[1])
lib.nc_inq_libvers.restype = ctypes.c_char_p
print(lib.nc_inq_libvers().decode().strip(' $'))
"""


def machine() -> dict:
    cpu = platform.processor() or platform.machine()
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith(("model name", "Model")):
            cpu = line.split(":", 1)[1].strip()
            break
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "cpu": cpu,
        "arch": platform.machine(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_bytes": memory,
        "kernel": platform.release(),
        "load_at_start": os.getloadavg()[0],
    }


def slug(cpu: str) -> str:
    short = re.sub(r"\((r|tm)\)|cpu|processor|@.*|\d+-core", " ", cpu.lower())
    return re.sub(r"[^a-z0-9]+", "-", short).strip("-") or "unknown"


def commit() -> str:
    def git(*args: str) -> str:
        out = subprocess.run(["git", "-C", ROOT, *args], capture_output=True, text=True)
        return out.stdout.strip() if out.returncode == 0 else ""

    return (git("rev-parse", "--short=12", "HEAD") or "none") + (
        "-dirty" if git("status", "--porcelain") else ""
    )


def build(bin_dir: Path) -> str:
    """Compiles the engines against the distribution's header and library; gives gcc's version."""
    bin_dir.mkdir(parents=True, exist_ok=True)
    shared = max(header.stat().st_mtime for header in (BENCH / "engines").glob("*.h"))
    for name, (source, flags) in ENGINES.items():
        program, new = bin_dir / name, bin_dir / f".{name}.{os.getpid()}"
        changed = max(shared, Path(__file__).stat().st_mtime, (ROOT / source).stat().st_mtime)
        if program.exists() and program.stat().st_mtime > changed:
            continue
        compiler = "gfortran" if source.endswith(".f90") else "gcc"
        command = [compiler, "-Wall", "-Wextra", ROOT / source, "-o", new, *flags]
        if subprocess.run(command).returncode != 0:
            sys.exit(f"cannot compile {source}")
        new.replace(program)  # another run may have the old one open
    out = subprocess.run(["gcc", "-dumpfullversion"], capture_output=True, text=True, check=True)
    return out.stdout.strip()




def engine(bin_dir: Path, name: str, args: list, env: dict, most: float | None = None) -> list[dict]:
    """Runs an engine, for at most so many seconds; gives its result lines. What it says on standard
    error is a failure too: a library that could not do as its environment says warns there."""
    try:
        out = subprocess.run([bin_dir / name, *args], env=env, capture_output=True, text=True, timeout=most)
    except subprocess.TimeoutExpired:
        raise Failed(f"{name} took more than {most} s") from None
    said = out.stderr.strip().splitlines()
    if out.returncode != 0 or said:
        raise Failed(f"{name} ended with {out.returncode}: {(said or ['no message'])[-1]}")
    return [json.loads(line) for line in out.stdout.splitlines()]


# ---- records ------------------------------------------------------------------------------------


def identity(libs: dict) -> dict:
    """What the libraries are, without how they are called."""
    return {n: {k: v for k, v in lib.items() if k != "env"} for n, lib in libs.items()}


def heading(host: dict, gcc: str, libs: dict, started: datetime.datetime, more: str) -> str:
    lines = [
        f"{host['cpu']}, {host['cores']} cores, Linux {host['kernel']}, gcc {gcc}, {more}",
        f"commit {commit()}, {started:%Y-%m-%d %H:%M} UTC, load {host['load_at_start']:.1f}",
    ]
    for name, lib in libs.items():
        lines.append(f"{name}: {lib['version']} ({lib['file']}, sha256 {lib['sha256']})")
    return "\n".join(lines)


def keep(host: dict, started: datetime.datetime, kind: str, facts: dict, rows: list) -> Path:
    """Writes a record of raw figures, a row to a line; gives its path inside the checkout."""
    folder = BENCH / "record" / slug(host["cpu"])
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{started:%Y-%m-%dT%H%M}{kind}.json"
    first = {"started": started.isoformat(timespec="seconds"), "commit": commit(), "machine": host}
    head = json.dumps({**first, **facts}, indent=1).removesuffix("\n}")
    lines = ",\n  ".join(json.dumps(row) for row in rows)
    path.write_text(f'{head},\n "rows": [\n  {lines}\n ]\n}}\n')
    return path.relative_to(ROOT)



def in_turn(names, number: int) -> list:
    """The names in the order of a round. Each comes behind each other one as often, since what ran just before (dirty pages on
    their way to the disk) makes the next one slower."""
    names = list(names)
    if len(names) > 5:
        # Too many orders to go through.
        first = number % len(names)
        return names[first:] + names[:first]
    orders = list(itertools.permutations(names))
    # Even rounds from the front, odd ones from the back: orders and their opposites, so that few rounds are fair, too.
    half = number // 2 % len(orders)
    return list(orders[half if number % 2 == 0 else -1 - half])

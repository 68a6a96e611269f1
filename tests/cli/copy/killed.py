#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""What killed writers leave: makers of files are killed (SIGKILL) at random moments, and the next one that runs to its
end in that folder removes what they left; nothing else, and nothing that somebody is at work on.

    killed.py PREFIX [--long]

PREFIX has bin/zonda, bin/nccopy and bin/ncgen. Runs in a folder of its own. Prints `N passed, N failed`.
"""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

# Of others, or of no maker: these stay.
FOREIGN = ["notes.zonda-new-1-1.txt", "mine.zonda-new-", ".zonda-new-1-1", "x.zonda-new-1-1-1", "y.zonda-new-a-1"]


def makers(prefix, source, text):
    zonda = f"{prefix}/bin/zonda"
    chunks = ["-c", "time/0,lat/2,lon/2", "-d", "9"]
    return {
        "zonda copy": [zonda, "copy", "-q", "-f", *chunks, source, "made.nc"],
        "zonda copy by pieces": [zonda, "copy", "-q", "-f", "-m", "4M", *chunks, source, "made.nc"],
        "zonda recover --to": [zonda, "recover", "--to", "made.nc", source],
        "nccopy": [f"{prefix}/bin/nccopy", "-d", "9", source, "made.nc"],
        "ncgen": [f"{prefix}/bin/ncgen", "-k", "nc4", "-o", "made.nc", text],
    }


def left():
    return sorted(entry.name for entry in Path(".").iterdir() if entry.name not in FOREIGN)


def run(command):
    Path("made.nc").unlink(missing_ok=True)
    start = time.monotonic()
    subprocess.run(command, check=True, capture_output=True)
    return time.monotonic() - start


def write_sources():
    """A text, and the file of it, whose chunks are maps."""
    text, source = Path("../killed.cdl").resolve(), Path("../killed.nc").resolve()
    numbers = ", ".join(str(n * 7919 % 10007) for n in range(96 * 40 * 50))
    text.write_text("netcdf killed { dimensions: time = 96 ; lat = 40 ; lon = 50 ; variables: int v(time, lat, lon) ; "
                    f"v:_ChunkSizes = 1, 40, 50 ; v:_DeflateLevel = 1 ; data: v = {numbers} ; }}")
    subprocess.run([f"{sys.argv[1]}/bin/ncgen", "-k", "nc4", "-o", source, text], check=True)
    return str(source), str(text)


def main(prefix, rounds):
    source, text = write_sources()
    random.seed(1)
    for name in FOREIGN:
        Path(name).write_text("mine")
    os.mkdir("folder.zonda-new-1-1")
    failed = kills = littered = 0
    for name, command in makers(prefix, source, text).items():
        lasts = run(command)
        if left() != ["folder.zonda-new-1-1", "made.nc"]:
            print(f"{name}: leaves {left()}")
            failed += 1
        Path("made.nc").unlink()
        for _ in range(rounds):
            process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            # Stopped at a random moment: alive, as far as others can tell.
            time.sleep(random.uniform(0, 1.1 * lasts))
            process.send_signal(signal.SIGSTOP)
            # Until it stands still, or has ended, which is not to be taken note of here.
            if process.returncode is None:
                os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
            here = [file for file in left() if ".zonda-new-" in file and not file.startswith("folder")]
            own = [file for file in here if f"-{process.pid}-" in file]
            if random.random() < 0.3:
                run(makers(prefix, source, text)["ncgen"])
                Path("made.nc").unlink()
                # A piece is open already, and goes by itself.
                gone = [file for file in own if file not in left() and not file.endswith("-pieces")]
                if gone and process.poll() is None:
                    # Stopped before it had its lock: it takes another name then.
                    process.send_signal(signal.SIGCONT)
                    if process.wait() != 0 or not Path("made.nc").exists():
                        print(f"{name}: what it was at work on was taken away: {gone}")
                        failed += 1
            process.kill()
            process.wait()
            kills += 1
            littered += bool(own)
            Path("made.nc").unlink(missing_ok=True)
        run(command)
        if left() != ["folder.zonda-new-1-1", "made.nc"]:
            print(f"{name}: {left()} after a run that nobody killed")
            failed += 1
        Path("made.nc").unlink()
    for name in FOREIGN:
        if not Path(name).exists():
            print(f"{name} was removed, and is no maker's")
            failed += 1
    if not littered:
        print("no kill fell into a moment that leaves something")
        failed += 1
    print(f"{kills} kills, of which {littered} left a file: {kills - failed} passed, {failed} failed")
    return failed != 0


sys.exit(main(sys.argv[1], 60 if "--long" in sys.argv[2:] else 6))

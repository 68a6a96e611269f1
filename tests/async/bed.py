# SPDX-License-Identifier: MIT OR Apache-2.0
"""What the scenes stand on: the library, programs that do what they are told, readers, and files."""

import os
import re
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(1, str(HERE.parent))
import rig  # noqa: E402
from rig import Wrong  # noqa: E402

FORMATS = ("1", "2", "5", "4", "z")
# No call of any scene may take longer, in seconds: what does hangs.
MOST_SECONDS = 60
WIDTH = 1000
RECORD = 12 * WIDTH  # bytes that a record of both variables has in the file
NOT_THERE = -999


class Agent:
    """A program (agent.c) on one of the libraries, which waits for commands."""

    def __init__(self, world, who, env):
        self.who, self.rest = who, b""
        command = [world.python, HERE / "h5look.py"] if who == "h5py" else [world.bin / "agent"]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env={**world.env(who), **env}, cwd=world.scratch)

    def said_at_the_end(self):
        return self.process.stderr.read().decode(errors="replace").strip()

    def tell(self, line):
        self.process.stdin.write(line.encode() + b"\n")
        self.process.stdin.flush()

    def hear(self, line="the last command"):
        """(code, seconds, values) of the next answer."""
        deadline = time.monotonic() + MOST_SECONDS
        out = self.process.stdout.fileno()
        while b"\n" not in self.rest:
            if not select.select([out], [], [], max(0, deadline - time.monotonic()))[0]:
                self.kill()
                raise Wrong("%r on %s hangs" % (line, self.who))
            more = os.read(out, 1 << 16)
            if not more:
                raise Wrong("%s ended at %r with %s: %s" % (self.who, line, self.process.wait(), self.said_at_the_end()[-300:]))
            self.rest += more
        answer, _, self.rest = self.rest.partition(b"\n")
        code, seconds, *values = answer.decode().split()
        return int(code), float(seconds), values

    def ask(self, line):
        self.tell(line)
        return self.hear(line)

    def wants(self, line, code=0, values=None):
        """Asks; another answer is wrong. Gives the values, as numbers where they are some."""
        got, _, said = self.ask(line)
        if got != code or values is not None and said != [str(v) for v in values]:
            raise Wrong("%s: %r gives %d %s, not %d %s" % (self.who, line, got, said, code, values or ""))
        return [int(v) if re.fullmatch(r"-?\d+", v) else v for v in said]

    def pending(self):
        """(pending bytes, kept error); fails if the library has no write-behind."""
        return tuple(self.wants("status 0"))

    def until_pending(self):
        """Makes sure that what was put is not written yet: otherwise the scene shows nothing."""
        if not self.pending()[0]:
            raise Wrong("nothing is pending: the storage is not slow enough, or write-behind is off")

    def ends(self, last=None):
        """Lets the program end by itself; (its status, what it said on standard error)."""
        try:
            if last:
                self.tell(last)
            self.process.stdin.close()
            status = self.process.wait(MOST_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
            raise Wrong("%s does not end after %r" % (self.who, last)) from None
        except BrokenPipeError:
            status = self.process.wait()
        if status < 0:
            raise Wrong("%s was killed by signal %d: %s" % (self.who, -status, self.said_at_the_end()[-300:]))
        return status, self.said_at_the_end()

    def kill(self):
        self.process.kill()
        self.process.wait()

    def clear(self):
        if self.process.poll() is None:
            self.kill()
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            try:
                pipe.close()
            except BrokenPipeError:
                pass


class World:
    """A folder of its own for scenes that run one after another."""

    def __init__(self, scratch, kills, like=None):
        self.scratch, self.kills, self.agents, self.readers, self.kept = scratch, kills, [], {}, {}
        self.scratch.mkdir(exist_ok=True)
        if like:
            self.bin, self.behind, self.python, self.h5py = like.bin, like.behind, like.python, like.h5py
            return
        self.bin = self.scratch / "bin"
        self.bin.mkdir()
        libraries = ["-lpthread", "-ldl", "-lm"]
        rig.compile_c(self.bin / "agent", HERE / "agent.c", libraries=libraries)
        rig.compile_c(self.bin / "life", HERE / "life.c", HERE / "transfer.c", libraries=libraries)
        self.check_library()
        self.behind = hasattr(rig.loaded(), "nc_zonda_async_status")
        self.python = rig.python("h5py")
        self.h5py = self.python is not None

    def check_library(self):
        said = rig.must(["ldd", self.bin / "agent"], self.env("zonda"))
        if str(rig.LIBRARY) not in said:
            raise rig.Setup("the programs would not load the library of %s:\n%s" % (rig.LIBDIR, said))

    def env(self, who):
        return rig.environment(rig.LIBDIR if who == "zonda" else None)

    def agent(self, who="zonda", **env):
        agent = Agent(self, who, env)
        self.agents.append(agent)
        return agent

    def slow(self, asynchronous="mem=64M,threads=2", bandwidth="20M", **env):
        """A program on storage so slow that puts run ahead of it."""
        return self.agent(ZONDA_ASYNC=asynchronous, ZONDA_IO="throttle:%s,file" % bandwidth, **env)

    def wants_helper(self):
        """Raises Skip unless write-behind by a process of its own is built."""
        a = self.agent(ZONDA_ASYNC="helper")
        code, _, _ = a.ask("create 0 5 10 %s" % self.path("helper.nc"))
        put = a.ask("put 0 0 1")[0] if code == 0 else code
        said = a.ends()[1]
        self.clear()
        if put or said:
            raise rig.Skip("a helper process is not built: %s" % (said or "code %d" % put))

    def path(self, name="file.nc"):
        return self.scratch / name

    def sync_bytes(self, fmt, *commands, end="close 0"):
        """What a synchronous run of these commands leaves; `{}` is the path."""
        key = (fmt, commands, end)
        if key not in self.kept:
            path = self.path("sync.nc")
            a = self.agent(ZONDA_ASYNC="off")
            a.wants("create 0 %s %d %s" % (fmt, WIDTH, path))
            for c in commands:
                a.wants(c)
            if end.startswith("close"):
                a.wants(end)
                a.ends()
            else:
                a.ends(end)
            self.kept[key] = path.read_bytes()
        return self.kept[key]

    def same_bytes(self, path, fmt, *commands, end="close 0"):
        want, got = self.sync_bytes(fmt, *commands, end=end), Path(path).read_bytes()
        if want != got:
            at = next((i for i, (x, y) in enumerate(zip(want, got)) if x != y), min(len(want), len(got)))
            raise Wrong("the file has %d bytes and is another from byte %d on; the synchronous one has %d" % (len(got), at, len(want)))

    def holds(self, path, promised, fmt, most=None):
        """What was promised is in the file for every reader; of what came later, any part, but nothing wrong."""
        # A copy, because locks of the program that wrote it do not matter here.
        path = shutil.copy(path, self.path("look.nc"))
        for who in ("zonda", "netcdf"):
            r = self.reader(who)
            r.wants("open 0 r %s" % path)
            (length,) = r.wants("len 0")
            parts = [(0, promised), (promised, length - promised)] if length > promised else [(0, promised)]
            first, *later = [[r.wants("get 0 %d %d %d" % (v, *part)) for v in (0, 1)] for part in parts]
            r.wants("close 0")
            self.judge(who, length, promised, most, first, later[0] if later else [])
        if self.h5py and fmt in ("4", "z"):
            length, *n = self.reader("h5py").wants("%d %s" % (promised, path))
            self.judge("h5py", length, promised, most, [n[0:3], n[3:6]], [n[6:9], n[9:12]])

    def reader(self, who):
        """A program that only reads, and lives as long as all is well."""
        r = self.readers.get(who)
        if r is None or r.process.poll() is not None:
            r = self.readers[who] = Agent(self, who, {})
        return r

    @staticmethod
    def judge(who, length, promised, most, first, later):
        if length < promised or most is not None and length > most:
            raise Wrong("%s: %d records, of which %d were promised" % (who, length, promised))
        for right, absent, wrong in first:
            if (right, absent, wrong) != (promised, 0, 0):
                raise Wrong("%s: of %d records that were promised %d are right, %d absent, %d wrong" % (who, promised, right, absent, wrong))
        for right, absent, wrong in later:
            if wrong:
                raise Wrong("%s: of the records since the last sync %d are wrong" % (who, wrong))

    def clear(self, failed=False):
        """Ends what a scene started. After a failure readers may have its file open."""
        for a in self.agents + (list(self.readers.values()) if failed else []):
            a.clear()
        self.agents = []
        for f in self.scratch.glob("*.nc*"):
            f.unlink()

# SPDX-License-Identifier: MIT OR Apache-2.0
"""What is to be seen of I/O servers: their traces beside those of programs (zonda trace), and running jobs (zonda top)."""
import html.parser
import json
import os
import pty
import re
import signal
import subprocess
import time
from pathlib import Path

import rig
from rig import Wrong

HERE = Path(__file__).resolve().parent
SECONDS = 120
STEPS, ROWS = 6, 500
VALUES = STEPS * ROWS * 256 * 4


def check(ok, *what):
    if not ok:
        raise Wrong(" ".join(map(repr, what))[:1500])


def trace(options, files):
    return rig.must([rig.ZONDA, "trace", *options, *files], rig.environment(rig.LIBDIR))


def processes_of(files):
    recordings = [json.loads(line) for line in trace(["--json"], files).splitlines()]
    check(len(recordings) == len(files), recordings)
    return {process["role"] or "program": process for recording in recordings for process in recording["processes"]}


def traced(program, scratch):
    """Calls and bytes that the program put are those that servers took and carried out, in each form of the report."""
    folder = fresh(scratch / "traces")
    words = [rig.ZONDA, "run", "--servers", "groups=2", "--trace", folder / "t.%r", "--", program, folder / "a.nc", folder / "b.nc", STEPS, ROWS]
    done = rig.run(words, rig.environment(rig.LIBDIR), seconds=SECONDS)
    check(done.returncode == 0, done.stdout, done.stderr)
    names = [folder / name for name in ("t.0", "t.server1", "t.server2")]
    check(sorted(folder.glob("t.*")) == names, sorted(folder.iterdir()))
    found = processes_of(names)
    one, servers = found["program"], [found["server1"], found["server2"]]
    told = one["served"]["told"]
    check((told["put"]["count"], told["put"]["bytes"], told["close"]["count"]) == (2 * STEPS, 2 * VALUES, 2), told)
    check(one["served"]["asked"]["create"]["count"] == 2, one["served"]["asked"])
    check(one["calls"]["nc_put_vara"]["count"] == 2 * STEPS, one["calls"])
    for server in servers:
        served = server["served"]
        for kind in (served["taken"], served["carried_out"]):
            check((kind["put"]["count"], kind["put"]["bytes"], kind["close"]["count"]) == (STEPS, VALUES, 1), kind)
        calls = sum(sum_of["count"] for sum_of in served["carried_out"].values())
        check(served["queued"]["count"] == calls == sum(sum_of["count"] for sum_of in served["taken"].values()), served)
        check(list(served["taken_from"]) == [str(one["pid"])], served["taken_from"], one["pid"])
        check(0 < server["queue"]["most_bytes"] <= VALUES and server["queue"]["most_bytes_ns"] <= server["since_ns"] + server["ns"] + 10**9, server["queue"])
        (file,) = server["files"]
        written = list(file["layers"].values())[-1]["write"]["bytes"]
        check(written >= VALUES and Path(file["path"]).name in ("a.nc", "b.nc"), file)
        # It began before the program did, and ended after it.
        check(server["since_ns"] < one["since_ns"] < server["since_ns"] + server["ns"], server["since_ns"], one["since_ns"])
    check({Path(server["files"][0]["path"]).name for server in servers} == {"a.nc", "b.nc"}, servers)
    text = trace(["--html", folder / "job.html", "-o", folder / "job.svg", "--chrome", folder / "job.json"], names)
    check(re.match(r"3 recordings, 3 processes, ", text), text)
    for number, server in enumerate(servers, 1):
        calls = sum(sum_of["count"] for sum_of in server["served"]["taken"].values())
        row = r"^ +server%d +\d\S+ +\d\S+ +1 +%d +%s +%d " % (number, calls, "{:_}".format(VALUES), calls)
        check(re.search(row, text, re.M), row, text)
    check(re.search(r"^ +process %d .* %s " % (one["pid"], "{:_}".format(2 * VALUES)), text, re.M), text)
    page = (folder / "job.html").read_text()
    balanced(page)
    for title in ("What processes did", "Bytes that wait in I/O servers", "<h2>Programs</h2>", "<h2>I/O servers</h2>", "server2: Process"):
        check(title in page, title)
    check("What processes did" in (folder / "job.svg").read_text(), "no picture")
    events = json.load(open(folder / "job.json"))["traceEvents"]
    check({event["pid"] for event in events} == {process["pid"] for process in found.values()}, "processes of --chrome")
    cut_traces(folder, names)


def cut_traces(folder, names):
    """Whatever a kill leaves of a trace: what is there is shown, and that it is not whole is said."""
    whole = names[1].read_bytes()
    for keep in (0, 3, 30, 100, 2000, len(whole) - 20):
        names[1].write_bytes(whole[:keep])
        text = trace(["--html", folder / "cut.html"], names)
        check("nothing in it" in text if keep < 60 else "breaks off at byte" in text, keep, text)
        balanced((folder / "cut.html").read_text())
    names[1].write_bytes(whole + b"no block begins here, and there are more bytes than a head of a block has")
    done = rig.run([rig.ZONDA, "trace", *names], rig.environment(rig.LIBDIR))
    check(done.returncode == 1 and "no block of a trace begins here" in done.stderr, done.stdout, done.stderr)
    other = folder / "other.txt"
    other.write_text("1.0 event#0 read 0 10 5 ok\n")
    done = rig.run([rig.ZONDA, "trace", names[0], other], rig.environment(rig.LIBDIR))
    check(done.returncode == 1 and "is not shown beside recordings" in done.stderr, done.stderr)


class Page(html.parser.HTMLParser):
    void = {"meta", "br", "img", "link", "input"}

    def __init__(self):
        super().__init__()
        self.open_tags = []

    def handle_starttag(self, tag, attrs):
        if tag not in self.void:
            self.open_tags.append(tag)

    def handle_startendtag(self, tag, attrs):
        pass

    def handle_endtag(self, tag):
        check(self.open_tags and self.open_tags.pop() == tag, "page: an element that ends and did not begin", tag)


def balanced(text):
    page = Page()
    page.feed(text)
    check(not page.open_tags, "page: elements that do not end", page.open_tags)


def traced_ranks(launch, mpi, program, scratch):
    """Each rank has its row, in the order of their numbers, and the server knows all of them."""
    folder, n, steps = fresh(scratch / "traces"), 3, 5
    env = launch.environment(mpi, rig.LIBDIR, ZONDA_TRACE=folder / "t.%r")
    done = rig.run([rig.ZONDA, "run", "--servers", "groups=1", "--", *launch.command(mpi, n, [program, folder / "x.nc", "5", steps])], env, seconds=SECONDS)
    check(done.returncode == 0, done.stdout, done.stderr)
    names = [folder / ("t.%d" % rank) for rank in range(n)] + [folder / "t.server1"]
    found = processes_of(names)
    check(sorted(found) == ["rank 0", "rank 1", "rank 2", "server1"], sorted(found))
    server = found.pop("server1")
    for process in found.values():
        told = process["served"]["told"]
        check((told["put"]["count"], process["calls"]["nc_put_vara"]["count"]) == (2 * steps, 2 * steps), told)
        of_rank = server["served"]["taken_from"][str(process["pid"])]
        check(of_rank["bytes"] == sum(kind["bytes"] for kind in told.values()), of_rank, told)
    check(server["served"]["carried_out"]["put"]["count"] == n * 2 * steps, server["served"]["carried_out"])
    check(len(server["served"]["taken_from"]) == n, server["served"]["taken_from"])
    text = trace([], names[::-1])
    check([line.split()[:2] for line in text.splitlines() if re.match(r" +rank \d", line)] == [["rank", str(rank)] for rank in range(n)], text)


def fresh(folder):
    folder.mkdir(exist_ok=True)
    for old in folder.iterdir():
        old.unlink()
    return folder


def top(*words):
    return rig.run([rig.ZONDA, "top", *words], rig.environment(rig.LIBDIR), seconds=SECONDS)


def looks(folder, until):
    """Asks until what is said fulfils a condition."""
    end = time.monotonic() + 60
    while True:
        done = top("--json", folder)
        check(done.returncode == 0, done.stdout, done.stderr)
        servers = json.loads(done.stdout)["servers"]
        if until(servers):
            return servers
        check(time.monotonic() < end, "it does not come", servers)
        time.sleep(0.05)


def says(place, *patterns):
    """Looks until the table has these lines; on a busy machine a server may need longer than a look waits for it."""
    end = time.monotonic() + 60
    while True:
        done = top("--once", place)
        check(done.returncode == 0, done.stdout, done.stderr)
        missing = [pattern for pattern in patterns if not re.search(pattern, done.stdout, re.M)]
        if not missing:
            return
        check(time.monotonic() < end, missing, done.stdout)


class Job:
    """A command with servers, while it runs."""

    def __init__(self, spec, command, env=None):
        words = [rig.ZONDA, "run", "--servers", spec, "--", *command]
        self.child = subprocess.Popen(list(map(str, words)), env=env or rig.environment(rig.LIBDIR), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for server in self.servers().values():
            os.kill(server, signal.SIGCONT)
        if self.child.poll() is None:
            # Passed on to the program; servers end after it.
            self.child.terminate()
        self.child.communicate(timeout=60)

    def servers(self):
        """Processes by socket."""
        found = {}
        for entry in Path("/proc").iterdir():
            try:
                parent = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1]) if entry.name.isdigit() else 0
                words = (entry / "cmdline").read_bytes().split(b"\0") if parent == self.child.pid else []
            except OSError:
                continue
            if b"--group" in words:
                found[Path(os.fsdecode(words[words.index(b"--group") + 1]))] = int(entry.name)
        return found


def running(program, scratch):
    """What a look says are the calls and bytes of the program; a server that is stopped does not keep others from answering."""
    folder = fresh(scratch / "top")
    with Job("groups=2", [program, folder / "a.nc", folder / "b.nc", STEPS, ROWS]) as job:
        check(job.child.stdout.readline() == "put\n", "the program does not put")
        sockets = sorted(job.servers().items())
        check(len(sockets) == 2, sockets)
        place = sockets[0][0].parent
        servers = looks(place, lambda servers: all(server["look"] and server["look"]["done"]["bytes"] == VALUES for server in servers))
        check([server["pid"] for server in servers] == [pid for _, pid in sockets], servers)
        for server in servers:
            look = server["look"]
            check(look["taken"] == look["done"] and look["waiting_bytes"] == 0 and look["n_failed"] == 0, look)
            check(look["memory_bytes"] > 0 and len(look["clients"]) == 1 and not look["clients"][0]["waits"], look)
            (file,) = look["files"]
            check(file["done"]["bytes"] == VALUES and file["pid"] == look["clients"][0]["pid"] and file["rank"] is None, file)
        check({server["look"]["files"][0]["path"] for server in servers} == {str(folder / "a.nc"), str(folder / "b.nc")}, servers)
        says(place, *(r"^%s +server[12] +process \d+ " % re.escape(str(folder / name)) for name in ("a.nc", "b.nc")))
        # All of this user: those of others that run now, too.
        check(all(str(socket) in top("--json").stdout for socket, _ in sockets), sockets)
        os.kill(sockets[0][1], signal.SIGSTOP)
        for _ in range(2):
            says(place, r"^server1 does not answer$", r"^server2 +%d +1 " % sockets[1][1])
        os.kill(sockets[0][1], signal.SIGCONT)
        looks(place, lambda servers: all(server["state"] == "answers" for server in servers))
        live, reader, shown = on_terminal(place)
        job.child.stdin.write("\n")
        job.child.stdin.flush()
        out, err = job.child.communicate(timeout=SECONDS)
        # Looks that were given up are no clients that failed.
        check((job.child.returncode, out, err) == (0, "", ""), job.child.returncode, out, err)
        shown += read_all(reader)
        check(live.wait(timeout=SECONDS) == 0 and "the I/O servers have ended" in shown and "\x1b[H" in shown, shown)
    done = top("--once", place)
    check(done.returncode == 1 and "no I/O server runs there" in done.stderr, done.stdout, done.stderr)


def on_terminal(place):
    """`zonda top` as at a terminal, once it has drawn something."""
    reader, terminal = pty.openpty()
    live = subprocess.Popen([str(rig.ZONDA), "top", str(place)], env=rig.environment(rig.LIBDIR), stdout=terminal)
    os.close(terminal)
    seen = b""
    while b"server2" not in seen:
        seen += os.read(reader, 4096)
    return live, reader, seen.decode(errors="replace")


def read_all(reader):
    seen = b""
    try:
        while part := os.read(reader, 4096):
            seen += part
    except OSError:
        pass
    os.close(reader)
    return seen.decode(errors="replace")


def who_is_missed(launch, mpi, program, scratch):
    """A rank that makes no further call is named while the others wait."""
    folder = fresh(scratch / "top")
    env = launch.environment(mpi, rig.LIBDIR, ZONDA_PAR_TIMEOUT="0")
    with Job("groups=1", launch.command(mpi, 3, [program, folder / "x.nc", "4", "4000", "leave", "1", "6"]), env) as job:
        end = time.monotonic() + 60
        while not job.servers():
            check(time.monotonic() < end, "no server comes")
            time.sleep(0.05)
        place = next(iter(job.servers())).parent
        missed = lambda file: file["waits_for_ranks"] == [1] and file["n_ranks"] == 3  # noqa: E731
        looks(place, lambda servers: servers[0]["look"] and any(map(missed, servers[0]["look"]["files"])))
        says(place, r"x\.nc +server1 +3 of 3 ranks .* rank 1$")


def seen(options, counts, scratch):
    import launch
    program = rig.compile_c(scratch / "seen", HERE / "seen.c")
    for name, case in (("traces of a job", traced), ("top", running)):
        if options.wants(name):
            counts.attempt(name, case, program, scratch)
    include = rig.LIBDIR / "netcdf" / "mpi" / "include"
    for mpi in launch.known()[:2]:
        if not mpi.there_is():
            counts.skip(mpi.name, "not installed")
            continue
        ranks = scratch / ("seen-ranks-" + mpi.name)
        rig.must([mpi.compiler, "-O1", "-I", include, "-I", rig.INCDIR, HERE / "ranks.c", "-o", ranks, "-L", rig.LIBDIR, "-l:" + rig.SONAME], launch.environment(mpi))
        for name, case in (("traces of ranks", traced_ranks), ("top: who is missed", who_is_missed)):
            if options.wants("%s: %s" % (mpi.name, name)):
                counts.attempt("%s: %s" % (mpi.name, name), case, launch, mpi, ranks, scratch)

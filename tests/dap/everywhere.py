# SPDX-License-Identifier: MIT OR Apache-2.0
"""Tools and Python with datasets of OPeNDAP; copies that break off and are completed; traces; and the examples of docs/guides/opendap.md."""
import json
import os
import signal
import subprocess
import time

import guide
import places
import rig
import wire2
from dap_server import Server
from rig import Wrong

PAGE = rig.ROOT / "docs" / "guides" / "opendap.md"
# Requests that break off are made again for so long.
HASTY = "HTTP.TIMEOUT=3\nHTTP.CONNECTTIMEOUT=2\n"
N_VARS, N = 12, 40_000


def all_of(bench):
    local = bench.scratch / "everywhere.nc"
    for name, test in (("info", info), ("copy", copied), ("dump", dumped), ("diff", different), ("check", checked), ("view", viewed), ("trace", traced)):
        if bench.options.wants("tools " + name):
            bench.counts.attempt("tools " + name, test, bench, local)
    if bench.options.wants("tools python"):
        bench.counts.attempt("tools python", by_python, bench)
    for test in (breaks_off, killed, other_definitions):
        if bench.options.wants("tools resume " + test.__name__):
            bench.counts.attempt("tools resume " + test.__name__, test, bench)
    for language, number, text in guide.examples(PAGE):
        case = "guide %d %s" % (number, language)
        if bench.options.wants(case):
            bench.counts.attempt(case, example, bench, language, text)


def zonda(bench, *words, status=0, env=None):
    done = bench.run([rig.ZONDA, *words], env)
    if done.returncode != status:
        raise Wrong("zonda %s ends with %s: %s" % (words[0], done.returncode, done.stderr.strip()[-400:]))
    return done


def sites(bench):
    url = bench.server().url
    return (("DAP2", url + "/cf"), ("DAP4", "[dap4]%s/made4" % url))


def info(bench, _):
    for version, url in sites(bench):
        said = zonda(bench, "info", url).stdout
        if "OPeNDAP (%s)" % version not in said or bench.server().url not in said:
            raise Wrong("it says %.300s" % said)
        facts = json.loads(zonda(bench, "info", "--json", url).stdout)
        if facts["format"] != "OPeNDAP" or len(facts["variables"]) < 5 or "error" in facts:
            raise Wrong("it says %.300s" % facts)
    bad = bench.run([rig.ZONDA, "info", bench.server().url + "/nothing-there"])
    if bad.returncode == 0 or "nothing-there" not in bad.stderr:
        raise Wrong("of what is not there it says %r" % bad.stderr)


def copied(bench, local):
    for _, url in sites(bench):
        zonda(bench, "copy", "-f", url, local)
        a, b = (rig.must([rig.BIN / "ncdump", "-n", "x", name], bench.environment()) for name in (url, local))
        if a != b:
            raise Wrong("the copy of %s is another: %s" % (url, [pair for pair in zip(a.splitlines(), b.splitlines()) if pair[0] != pair[1]][:2]))
        if sorted(path.name for path in local.parent.glob("everywhere.nc*")) != ["everywhere.nc"]:
            raise Wrong("there is something beside the copy")


def dumped(bench, local):
    for _, url in sites(bench):
        zonda(bench, "copy", "-f", url, local)
        a, b = (zonda(bench, "dump", name).stdout.partition("\n")[2] for name in (url, local))
        if a != b or len(a) < 100:
            raise Wrong("a dump of %s is another" % url)


def different(bench, local):
    for _, url in sites(bench):
        zonda(bench, "copy", "-f", url, local)
        zonda(bench, "diff", url, local)
    zonda(bench, "diff", sites(bench)[0][1], local, status=1)


def checked(bench, _):
    for _, url in sites(bench):
        said = zonda(bench, "check", url).stdout
        if "sound" not in said:
            raise Wrong("it says %r" % said)
    bad = bench.run([rig.ZONDA, "check", bench.server().url + "/nothing-there"])
    if bad.returncode == 0:
        raise Wrong("what is not there is sound")


def viewed(bench, _):
    picture = bench.scratch / "view.png"
    zonda(bench, "view", sites(bench)[0][1], "tas", "-o", picture)
    if not picture.exists() or picture.read_bytes()[:4] != b"\x89PNG":
        raise Wrong("there is no picture")


def traced(bench, _):
    trace = bench.scratch / "dap-trace"
    secret = "token-%s" % bench.servers.secret
    bench.server().log()
    zonda(bench, "dump", "-v", "tas", sites(bench)[0][1], env=bench.environment(ZONDA_TRACE=trace))
    n_asked = len(bench.server().log())
    said = zonda(bench, "trace", trace).stdout
    if "/cf" not in said or secret in said:
        raise Wrong("it says %.400s" % said)
    if n_asked < 3 or "equest" not in said:
        raise Wrong("%d requests, and it says %.800s" % (n_asked, said))


PYTHON = """
import sys, warnings
import numpy as np, zonda, zonda.netcdf4
two, four, none, target = sys.argv[1:]
warnings.simplefilter("ignore")
with zonda.open(two) as file, zonda.netcdf4.Dataset(two) as other:
    all = file["tas"][...]
    assert all.shape == (4, 19, 36) and np.array_equal(file["tas"][1, ::3, 5:2:-1], all[1, ::3, 5:2:-1])
    assert np.array_equal(np.asarray(other.variables["tas"][:]), all) and other.disk_format == "DAP2" and other.filepath() == two
with zonda.netcdf4.Dataset(four) as file:
    assert (file.data_model, file.disk_format) == ("NETCDF4", "DAP4") and set(file.groups) == {"g", "k"}
for open in (zonda.open, zonda.netcdf4.Dataset):
    try:
        open(none)
    except OSError as error:
        assert isinstance(error, FileNotFoundError) or open is not zonda.open
        assert "nothing-there" in str(error)
    else:
        raise AssertionError("what is not there opens")
try:
    zonda.open(two, "r+")
except PermissionError:
    pass
assert set(zonda.copy(two, target, resume=True).ways.values()) == {"values"}
with zonda.open(target) as file:
    assert np.array_equal(file["tas"][...], all)
print("fine")
"""


def by_python(bench):
    python = rig.python("zonda", "numpy")
    if not python:
        raise rig.Skip("no Python with zonda: scripts/wheel.sh, and pip install")
    url, target = bench.server().url, bench.scratch / "python.nc"
    said = rig.must([python, "-c", PYTHON, url + "/cf", "[dap4]%s/made4" % url, url + "/nothing-there", target], bench.environment())
    if "fine" not in said:
        raise Wrong("it says %r" % said)


# ---- Copies that break off

class Breaking(Server):
    """Answers as long as it may: then only for definitions."""

    def __init__(self, datasets):
        self.data_left, self.late, self.n_data = None, 0.0, 0
        super().__init__(datasets)
        self.answer = self.breaking

    def breaking(self, name, query, hows):
        if name.endswith(".dods"):
            self.n_data += 1
            time.sleep(self.late)
            if self.data_left is not None:
                self.data_left -= 1
                if self.data_left < 0:
                    return 500, b"gone", "ver"
        return self.made(name, query, hows)


def many(units="1"):
    dds = "Dataset {\n%s} many;\n" % "".join("    Int32 v%d[x = %d];\n" % (i, N) for i in range(N_VARS))
    das = "Attributes {\n%s}\n" % "".join('    v%d { String units "%s"; }\n' % (i, units) for i in range(N_VARS))
    return wire2.Dataset.made(dds, das)


def hasty(bench, **more):
    return bench.environment(places.home_of(bench.homes, "hasty", ncrc=HASTY), **more)


def command(url, target, *words):
    # One variable a request, so that it is known how many are complete.
    return [rig.ZONDA, "copy", *words, url + "#noprefetch&nocache", target]


def complete(bench, url, target):
    whole = target.with_name("whole.nc")
    rig.must(command(url, whole, "-f"), hasty(bench))
    done = bench.run([rig.ZONDA, "diff", whole, target])
    if done.returncode:
        raise Wrong("it is not what a copy is that does not break off: %s" % done.stdout[-300:])
    left = sorted(path.name for path in target.parent.glob(target.name + "*"))
    if left != [target.name]:
        raise Wrong("there is %s" % left)


def fails(bench, url, target, *words):
    done = bench.run(command(url, target, *words), hasty(bench), seconds=60)
    if done.returncode == 0 or target.exists():
        raise Wrong("it ends with %s, and the target %s" % (done.returncode, "exists" if target.exists() else "does not exist"))
    return done.stderr


def breaks_off(bench):
    """The server breaks off, twice; what is complete is not asked for again, in the end."""
    target = bench.scratch / "resumed.nc"
    with Breaking({"many": many()}) as server:
        url, server.data_left = server.url + "/many", N_VARS // 2
        said = fails(bench, url, target)
        if "--resume" not in said or "resumed.nc.zonda-part" not in said or server.url not in said:
            raise Wrong("it says %s" % said)
        listed = target.with_name("resumed.nc.zonda-part-done").read_text().splitlines()
        if not 2 <= len(listed) <= N_VARS // 2 + 1:
            raise Wrong("%d lines in the list" % len(listed))
        server.data_left = 0
        fails(bench, url, target, "--resume")
        if target.with_name("resumed.nc.zonda-part-done").read_text().splitlines() != listed:
            raise Wrong("the list is another one after a copy that brought nothing")
        server.data_left, server.n_data = None, 0
        rig.must(command(url, target, "--resume"), hasty(bench))
        if server.n_data > N_VARS - len(listed) + 1:
            raise Wrong("%d requests for %d variables" % (server.n_data, N_VARS - len(listed) + 1))
        complete(bench, url, target)


def killed(bench):
    """It is killed, and interrupted; an interrupted copy says what is left."""
    for how in (signal.SIGKILL, signal.SIGINT):
        target = bench.scratch / ("killed-%d.nc" % how)
        with Breaking({"many": many()}) as server:
            url, server.late = server.url + "/many", 0.6
            with subprocess.Popen([str(word) for word in command(url, target)], env=hasty(bench), stderr=subprocess.PIPE, text=True) as child:
                listed = target.with_name(target.name + ".zonda-part-done")
                until = time.monotonic() + 40
                while time.monotonic() < until and not (listed.exists() and listed.read_text().count("\n") > 2):
                    time.sleep(0.02)
                child.send_signal(how)
                said = child.communicate(timeout=30)[1]
            if target.exists() or child.returncode == 0:
                raise Wrong("it was done before it was killed")
            if how == signal.SIGINT and "--resume" not in said:
                raise Wrong("it says %r" % said)
            n_before = listed.read_text().count("\n") - 1
            if n_before < 1:
                raise Wrong("nothing is in the list")
            server.late, server.n_data = 0.0, 0
            rig.must(command(url, target, "--resume"), hasty(bench))
            if server.n_data > N_VARS - n_before + 1:
                raise Wrong("%d requests, and %d variables were complete" % (server.n_data, n_before))
            complete(bench, url, target)


def other_definitions(bench):
    """A dataset that has other definitions now is copied from the beginning."""
    target = bench.scratch / "changed.nc"
    with Breaking({"many": many()}) as server:
        url, server.data_left = server.url + "/many", N_VARS // 2
        fails(bench, url, target)
        server.data_left = None
        server.datasets["many"] = many("m")
        server.n_data = 0
        rig.must(command(url, target, "--resume"), hasty(bench))
        if server.n_data < N_VARS:
            raise Wrong("%d requests for %d variables" % (server.n_data, N_VARS))
        complete(bench, url, target)


# ---- The guide

def example(bench, language, text):
    folder = bench.scratch / "guide"
    folder.mkdir(exist_ok=True)
    server = bench.server()
    text = text.replace("https://dap.example.org/data/model", server.url + "/cf").replace("https://dap.example.org", server.url)
    home = places.home_of(bench.homes, "guide")
    env = rig.environment(None, places.NETWORK, HOME=home, PATH="%s:%s" % (rig.BIN, os.environ.get("PATH", os.defpath)))
    {"sh": guide.shell, "python": guide.python, "c": guide.in_c}[language](None, folder, env, text)

# SPDX-License-Identifier: MIT OR Apache-2.0
"""A child of fork reads on by connections of its own, and its parent by those that it had; threads of one program share the limit of them."""
import array
import json
import subprocess
import sys

import made
import places
import rig
from latency import Line
from rig import Wrong

N = 3 << 20
PART = N // 3
# Parent, child, parent: a third each, in processes that take turns.
FORK = """
import ctypes, json, os, sys
nc, n = ctypes.CDLL(sys.argv[1]), int(sys.argv[3])
ncid = ctypes.c_int()
assert nc.nc_open(sys.argv[2].encode(), 0, ctypes.byref(ncid)) == 0
def part(k):
    values = (ctypes.c_float * n)()
    code = nc.nc_get_vara_float(ncid, 0, (ctypes.c_size_t * 1)(k * n), (ctypes.c_size_t * 1)(n), values)
    return [code, sum(values)]
def tell(said):
    print(json.dumps(said), flush=True)
    sys.stdin.readline()
tell(part(0))
child = os.fork()
if child == 0:
    tell(part(1))
    os._exit(0)
status = os.waitpid(child, 0)[1]
tell(part(2) + [status])
"""
# Eight threads, each with a file of its own.
THREADS = """
import ctypes, json, sys, threading
nc, n, said = ctypes.CDLL(sys.argv[1]), int(sys.argv[3]), []
def one():
    ncid, values = ctypes.c_int(), (ctypes.c_float * (3 * n))()
    codes = [nc.nc_open(sys.argv[2].encode(), 0, ctypes.byref(ncid)), nc.nc_get_var_float(ncid, 0, values), nc.nc_close(ncid)]
    said.append(codes + [sum(values)])
threads = [threading.Thread(target=one) for _ in range(8)]
[t.start() for t in threads], [t.join() for t in threads]
print(json.dumps(said))
"""


def right_sum(data, k, n):
    values = array.array("f", data[-4 * N :][4 * k * PART : 4 * (k * PART + n)])
    values.byteswap()
    return sum(values)


def all_of(bench):
    if "nginx" not in bench.servers.running:
        bench.counts.skip("fork", "no nginx")
        return
    data = made.classic(N)
    (bench.files / "long.nc").write_bytes(data)
    for test in (forked, threads):
        if bench.options.wants("fork " + test.__name__):
            with Line(bench.servers.port, 1.0) as line:
                bench.counts.attempt("fork " + test.__name__, test, bench, line, data)


def program(bench, line, script):
    url = "http://127.0.0.1:%d/long.nc#mode=bytes" % line.port
    env = rig.environment(rig.LIBDIR, places.NETWORK, HOME=places.home_of(bench.homes, "plain"))
    return [sys.executable, "-c", script, str(rig.LIBRARY), url, str(PART)], env


def forked(bench, line, data):
    command, env = program(bench, line, FORK)
    said, counts = [], []
    with subprocess.Popen(command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        for _ in range(3):
            said.append(json.loads(child.stdout.readline() or "null"))
            counts.append(line.counts())
            child.stdin.write("go\n")
            child.stdin.flush()
    if said != [[0, right_sum(data, 0, PART)], [0, right_sum(data, 1, PART)], [0, right_sum(data, 2, PART), 0]]:
        raise Wrong("the processes say %s" % said)
    if counts[1]["requests"] and not counts[1]["connections"]:
        raise Wrong("the child sends %d requests by the parent's connections" % counts[1]["requests"])
    if not counts[1]["requests"]:
        raise Wrong("the child asked for nothing: the test shows nothing")


def threads(bench, line, data):
    command, env = program(bench, line, THREADS)
    said = json.loads(bench.run(command, env).stdout)
    if said != [[0, 0, 0, right_sum(data, 0, N)]] * 8:
        raise Wrong("the threads say %s" % said)
    counted = line.counts()
    if counted["connections"] > 8:
        raise Wrong("%d connections to one host" % counted["connections"])

# SPDX-License-Identifier: MIT OR Apache-2.0
"""That the proxy of latency.py delays as it says, changes nothing, and counts right: what is measured with it rests on that."""
import http.client
import time

import rig
from latency import Line
from rig import Wrong

RTT = 40.0


def all_of(bench):
    if "nginx" not in bench.servers.running:
        bench.counts.skip("line", "no nginx")
        return
    for test in (delays, passes, parallel):
        if bench.options.wants("line " + test.__name__):
            with Line(bench.servers.port, RTT) as through:
                bench.counts.attempt("line " + test.__name__, test, bench, through)


def get(connection, name, headers):
    connection.request("GET", "/" + name, headers=headers)
    answer = connection.getresponse()
    return answer.status, answer.read()


def delays(bench, through):
    """A connection costs a round trip, each request one more."""
    connection, took = http.client.HTTPConnection("127.0.0.1", through.port), []
    for n in range(4):
        began = time.monotonic()
        get(connection, bench.small[-1], {"Range": "bytes=%d-%d" % (n, n + 3)})
        took.append(1000 * (time.monotonic() - began))
    connection.close()
    if took[0] < 2 * RTT or any(one < RTT for one in took):
        raise Wrong("requests take %s ms" % took)
    if min(took) > 3 * RTT:
        raise Wrong("requests take far too long: %s ms" % took)
    counted = through.counts()
    found = [counted[name] for name in ("connections", "requests", "trips", "asked")]
    if found != [1, 4, 4, ["bytes=%d-%d" % (n, n + 3) for n in range(4)]]:
        raise Wrong("it counts %s" % counted)


def passes(bench, through):
    """What comes through is what nginx has, and is counted to the byte."""
    connection, bodies = http.client.HTTPConnection("127.0.0.1", through.port), 0
    for name in bench.small[:10]:
        status, body = get(connection, name, {})
        if (status, body) != (200, (bench.files / name).read_bytes()):
            raise Wrong("%s is another: %s, %d bytes" % (name, status, len(body)))
        bodies += len(body)
    connection.close()
    counted = through.counts()
    if not bodies < counted["got"] < bodies + 10 * 500:
        raise Wrong("%d bytes of %d were counted" % (counted["got"], bodies))
    if through.counts()["requests"] != 0:
        raise Wrong("it does not begin anew")


def parallel(bench, through):
    """Requests of several connections at once are one round trip."""
    connections = [http.client.HTTPConnection("127.0.0.1", through.port) for _ in range(6)]
    for turn in range(2):
        for connection in connections:
            connection.request("GET", "/" + bench.small[-1], headers={"Range": "bytes=0-9"})
        for connection in connections:
            connection.getresponse().read()
    for connection in connections:
        connection.close()
    counted = through.counts()
    if [counted[name] for name in ("connections", "requests", "trips")] != [6, 12, 2]:
        raise Wrong("it counts %s" % {**counted, "asked": None})

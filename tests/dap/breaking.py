# SPDX-License-Identifier: MIT OR Apache-2.0
"""An OPeNDAP server that breaks its word in one of its documents, seen through the C interface (tests/remote/capi.py).

Of each behaviour: an error with one of its codes, which names the URL; no value is delivered, the caller's memory is all fill; time and memory
are bounded. Those of HOLDS are to be got over. `cuts` ends each document of small datasets at every byte.
"""
import concurrent.futures
import contextlib
import json
import socket
import sys
import threading
import time
import urllib.parse
from pathlib import Path

import places
import rig
import wire2
import wire4
from rig import Wrong

HERE = Path(__file__).resolve().parent
# Values of the variable, settings of the client under test in seconds, and what a case may take.
N, TIMEOUT, SECONDS, MIB = 1 << 18, 4, 40, 256
# Codes, and what they are for: the connection, the server's own errors, DAS, DDS and DMR, data; what is too much of something.
CURL, SERVICE, DAS, DDS, DATA = -67, -70, -71, -72, -73
NET, LIMITS = (CURL, -68, -77, -78), (-61, -76, -53, -137, -62, -125, -101)
KINDS = ("dmr.xml", "dds", "das", "dods", "dmr", "dap")


def dataset2(n=N):
    return wire2.Dataset.made("Dataset {\n    Int16 w[4];\n    Float32 v[n = %d];\n    String s;\n} broken;\n" % n, "Attributes {\n    v {\n        String units \"m\";\n    }\n}\n")


def dataset4(n=N):
    return wire4.Dataset.made('<Dataset name="broken" dapVersion="4.0" dmrVersion="1.0" xmlns="http://xml.opendap.org/ns/DAP/4.0#"><Dimension name="n" size="%d"/><Int16 name="w"><Dim size="4"/></Int16>'
                              '<Float32 name="v"><Dim name="/n"/></Float32><String name="s"/></Dataset>' % n)  # fmt: skip


class Reply:
    """What a behaviour works with: the connection, the body that would be right, and where its values begin."""

    def __init__(self, connection, kind, body, number, query, dataset):
        self.connection, self.kind, self.body, self.number, self.query, self.dataset = connection, kind, body, number, query, dataset

    @property
    def begins(self):
        """Where the values of DAP2 begin."""
        return self.body.index(b"\nData:\n") + 7

    def say(self, body, status="200 OK", *headers, length=None):
        head = "HTTP/1.1 %s\r\nContent-Length: %d\r\n%s\r\n" % (status, len(body) if length is None else length, "".join(line + "\r\n" for line in headers))
        self.connection.sendall(head.encode() + body)

    def stream(self, first, piece, pause=0.0, last=b""):
        """`first`, and `piece` as long as anybody listens."""
        self.connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + self.chunk(first))
        until = time.monotonic() + SECONDS
        with contextlib.suppress(OSError):
            while time.monotonic() < until:
                self.connection.sendall(self.chunk(piece))
                time.sleep(pause)
        return False

    @staticmethod
    def chunk(data):
        return b"%x\r\n%s\r\n" % (len(data), data) if data else b""

    def values(self, index, data):
        """The values with other bytes at a place of them."""
        at = self.begins + index
        return self.body[:at] + data + self.body[at + len(data) :]


class Breaking:
    """The server; `act` answers requests for `where`, the others are answered as they should be."""

    def __init__(self, dataset, where, act):
        self.dataset, self.where, self.act, self.numbers = dataset, where, act, {}
        self.version = 2 if isinstance(dataset, wire2.Dataset) else 4
        self.lock = threading.Lock()
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def right(self, kind, query):
        query = urllib.parse.unquote(query)
        if self.version == 2:
            return {"dds": lambda: self.dataset.dds(query).encode(), "das": lambda: self.dataset.das().encode(), "dods": lambda: self.dataset.dods(query)}[kind]()
        ce = dict(urllib.parse.parse_qsl(query)).get("dap4.ce", "")
        return self.dataset.dap(ce) if kind == "dap" else self.dataset.dmr(ce).encode()

    def serve(self, connection):
        with contextlib.suppress(OSError), connection:
            rest = b""
            while True:
                while b"\r\n\r\n" not in rest:
                    more = connection.recv(65536)
                    if not more:
                        return
                    rest += more
                head, rest = rest.split(b"\r\n\r\n", 1)
                path, _, query = head.split(b" ")[1].decode().partition("?")
                if self.answer(connection, urllib.parse.unquote(path), query) is False:
                    return

    def answer(self, connection, path, query):
        kind = next((kind for kind in KINDS if path.endswith("." + kind)), "")
        try:
            body = self.right(kind, query)
        except (KeyError, wire2.Refused, ValueError, AttributeError):
            return Reply(connection, kind, b"", 0, query, self.dataset).say(b"no", "404 Not Found")
        with self.lock:
            self.numbers[kind] = self.numbers.get(kind, 0) + 1
            reply = Reply(connection, kind, body, self.numbers[kind], query, self.dataset)
        return self.act(reply) if kind in self.where else reply.say(body)

    def close(self):
        self.listener.close()


# ---- Running

def asked(bench, port, version, variable="v"):
    """What the C interface says of it: (seconds, answer)."""
    began = time.monotonic()
    url = "[dap%d]http://127.0.0.1:%d/broken" % (version, port)
    command = [sys.executable, HERE.parent / "remote" / "capi.py", bench.libdir / rig.SONAME, url, variable, str(N)]
    done = bench.run(command, bench.environment(bench.breaking_home), seconds=3 * SECONDS)
    if done.returncode:
        raise Wrong("the program ends with %s: %s" % (done.returncode, done.stderr[-300:]))
    return time.monotonic() - began, json.loads(done.stdout)


def bounded(took, told):
    if took > SECONDS:
        raise Wrong("it takes %.1f s: %s" % (took, told))
    if told["peak"] > MIB:
        raise Wrong("it takes %d MiB: %s" % (told["peak"], told))


def breaks(bench, version, where, act, codes, only_open, message):
    server = Breaking(dataset2() if version == 2 else dataset4(), where, act)
    try:
        took, told = asked(bench, server.port, version, "" if only_open else "v")
    finally:
        server.close()
    bounded(took, told)
    code = told["open"] or told.get("get", 0)
    if code == 0:
        if only_open:
            return
        raise Wrong("the get is no error: %s" % told)
    if code not in codes:
        raise Wrong("code %d, not one of %s: %s" % (code, codes, told["error"]))
    if told.get("delivered"):
        raise Wrong("%d values of a get that failed: %s" % (told["delivered"], told))
    if told["open"] == 0 and told["fill"] != N:
        raise Wrong("only %d of %d values are fill: %s" % (told["fill"], N, told))
    if bench.options.reference:
        # It has no text for an error but that of its code.
        return
    if "127.0.0.1:%d/broken" % server.port not in told["error"]:
        raise Wrong("the error does not name the URL: %s" % told["error"])
    if message and message not in told["error"]:
        raise Wrong("the server's own message is not in the error: %s" % told["error"])


def holds(bench, version, where, act):
    server = Breaking(dataset2() if version == 2 else dataset4(), where, act)
    try:
        took, told = asked(bench, server.port, version)
    finally:
        server.close()
    bounded(took, told)
    if (told["open"], told.get("get"), told.get("delivered")) != (0, 0, N):
        raise Wrong("it is not got over: %s" % told)


def all_of(bench):
    import behaviours

    # Most of them wait for a client that waits.
    bench.breaking_home = places.home_of(bench.homes, "breaking", ncrc="HTTP.TIMEOUT=%d\nHTTP.CONNECTTIMEOUT=%d\n" % (TIMEOUT, TIMEOUT))
    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        cases = [pool.submit(bench.counts.attempt, name, test, bench, *arguments) for name, test, *arguments in every(behaviours) if bench.options.wants(name)]
        for case in cases:
            case.result()


def every(behaviours):
    """(name, test, its arguments); what takes longest first."""
    for version in (2, 4):
        for kind in ("dds", "das", "dods") if version == 2 else ("dmr", "dap"):
            for how in ("told", "broken"):
                yield "cuts DAP%d .%s %s" % (version, kind, how), cuts, version, kind, how
    slow = [row for row in behaviours.BREAKS if row[2] in behaviours.SLOW]
    for version, where, act, codes, only_open, message in slow + [row for row in behaviours.BREAKS if row not in slow]:
        yield "hostile DAP%d %s of .%s" % (version, act.__name__.replace("_", " "), where[0]), breaks, version, where, act, codes, only_open, message
    for version, where, act in behaviours.HOLDS:
        yield "hostile DAP%d %s of .%s, got over" % (version, act.__name__.replace("_", " "), where[0]), holds, version, where, act


# ---- Every byte

CUTTER = """
import ctypes, json, sys
library, before, steps, ends = sys.argv[1], sys.argv[2], json.loads(sys.argv[3]), sys.argv[4]
nc, said = ctypes.CDLL(library), []
for k in steps:
    ncid = ctypes.c_int()
    code = nc.nc_open((before % k).encode(), 0, ctypes.byref(ncid))
    codes = [code]
    if code == 0:
        # Bytes that are neither fill nor what stood there before would have been delivered.
        for name, size in (("w", 8), ("v", 20)):
            varid, memory = ctypes.c_int(), (ctypes.c_ubyte * size)(*[0xEE] * size)
            if nc.nc_inq_varid(ncid, name.encode(), ctypes.byref(varid)):
                codes.append(-49)
                continue
            code = nc.nc_get_var(ncid, varid, memory)
            codes.append(code)
            fill = {8: b"\\x01\\x80" * 4, 20: b"\\x00\\x00\\xf0\\x7c" * 5}[size]
            if code and bytes(memory) not in (fill, b"\\xee" * size):
                codes.append("delivered")
        nc.nc_close(ncid)
    said.append(codes)
print(json.dumps(said))
"""


class Cutting(Breaking):
    """Documents of one kind lack their last K + 1 bytes; the path says how many: /K/broken."""

    def __init__(self, dataset, kind, how):
        super().__init__(dataset, (), None)
        self.kinds = ("dmr", "dmr.xml") if kind == "dmr" else (kind,)
        self.how, self.cut = how, set()

    def answer(self, connection, path, query):
        kind = next((kind for kind in KINDS if path.endswith("." + kind)), "")
        try:
            body = self.right(kind, query)
        except (KeyError, wire2.Refused, ValueError, AttributeError):
            return Reply(connection, kind, b"", 0, query, self.dataset).say(b"no", "404 Not Found")
        reply, k = Reply(connection, kind, body, 1, query, self.dataset), int(path.split("/")[1])
        if kind not in self.kinds:
            return reply.say(body)
        # From the end: responses have different lengths, and none of them is to come whole.
        left = body[: max(len(body) - 1 - k, 0)]
        if self.how == "broken" or kind in ("dods", "dap") or left.strip() != body.strip():
            self.cut.add(k)
        reply.say(left, length=len(body) if self.how == "broken" else len(left))
        return self.how != "broken"


def cuts(bench, version, kind, how):
    dataset = dataset2(5) if version == 2 else dataset4(5)
    server = Cutting(dataset, kind, how)
    longest = len(server.right(kind, ""))
    # A broken connection is asked again, and waited for.
    step = bench.options.by(61, 29, 1) if how == "broken" else bench.options.by(13, 1, 1)
    steps = list(range(0, longest, step))
    try:
        url = "[dap%d]http://127.0.0.1:%d/%%d/broken" % (version, server.port)
        done = bench.run([sys.executable, "-c", CUTTER, bench.libdir / rig.SONAME, url, json.dumps(steps), ""], bench.environment(bench.breaking_home), seconds=1200)
    finally:
        server.close()
    if done.returncode:
        raise Wrong("the program ends with %s: %s" % (done.returncode, done.stderr[-300:]))
    said = json.loads(done.stdout)
    missed = [k for k, codes in zip(steps, said) if k in server.cut and not any(codes)]
    if missed:
        raise Wrong("no error where %s bytes and one of %d are missing" % (missed[:10], longest))
    if any("delivered" in codes for codes in said):
        raise Wrong("values of a get that failed are in the caller's memory: %s" % [k for k, codes in zip(steps, said) if "delivered" in codes][:10])
    odd = sorted({code for codes in said for code in codes if isinstance(code, int) and code not in (0, CURL, -68, SERVICE, DAS, DDS, DATA, -66, -75, -76)})
    if odd:
        raise Wrong("codes %s" % odd)
    if len(server.cut) < len(steps) // 3:
        raise Wrong("only %d of %d were cut at all" % (len(server.cut), len(steps)))


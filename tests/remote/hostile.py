# SPDX-License-Identifier: MIT OR Apache-2.0
"""A server that keeps its word for the first request and breaks it then, or breaks it at once; seen through the C interface.

The large table of such behaviours is in crates/zonda-remote/tests. Here is shown what comes of some of them for a C program: an error
that names URL and range, the caller's memory all fill, time and memory within bounds. A few are to be got over.
"""
import contextlib
import json
import re
import socket
import sys
import threading
import time
from pathlib import Path

import made
import places
import rig
from rig import Wrong

# A float each; the first request brings a part of them only.
N = 1 << 20
# Settings of the client under test, in seconds; and what a case may take.
TIMEOUT, SECONDS, MIB = 4, 40, 256
CHUNK = 64 << 10


class Answer:
    """What a behaviour works with: the connection, the file, and the range that was asked for."""

    def __init__(self, connection, data, first, last, number):
        self.connection, self.data, self.first, self.last, self.number = connection, data, first, last, number

    def say(self, status, *headers, body=b""):
        head = "HTTP/1.1 %s\r\n%s\r\n" % (status, "".join(line + "\r\n" for line in headers))
        self.connection.sendall(head.encode() + body)

    def part(self):
        return self.data[self.first : self.last + 1]

    def range(self, first=None, last=None, total=None):
        first, last, total = (given if given is not None else own for given, own in ((first, self.first), (last, self.last), (total, len(self.data))))
        return "Content-Range: bytes %s-%s/%s" % (first, last, total)

    def right(self, etag='"one"'):
        body = self.part()
        self.say("206 Partial Content", self.range(last=self.first + len(body) - 1), "Content-Length: %d" % len(body), "ETag: " + etag, body=body)


def cut_off(a):
    a.say("206 Partial Content", a.range(), "Content-Length: %d" % len(a.part()), 'ETag: "one"', body=a.part()[: len(a.part()) // 2])
    return False


def short_range(a):
    body = a.part()[:-4]
    a.say("206 Partial Content", a.range(last=a.last - 4), "Content-Length: %d" % len(body), 'ETag: "one"', body=body)


def long_body(a):
    body = a.part() + b"\x3f\x80\x00\x00" * 4096
    a.say("206 Partial Content", a.range(), "Content-Length: %d" % len(body), 'ETag: "one"', body=body)


def other_range(a):
    a.say("206 Partial Content", a.range(first=a.first + 4, last=a.last + 4), "Content-Length: %d" % len(a.part()), 'ETag: "one"', body=a.part())


def no_range(a):
    a.say("206 Partial Content", "Content-Length: %d" % len(a.part()), 'ETag: "one"', body=a.part())


def other_total(a):
    a.say("206 Partial Content", a.range(total=len(a.data) + 4), "Content-Length: %d" % len(a.part()), 'ETag: "one"', body=a.part())


def changed(a):
    a.right(etag='"two"')


def lost_etag(a):
    a.say("206 Partial Content", a.range(), "Content-Length: %d" % len(a.part()), body=a.part())


def zipped(a):
    a.say("206 Partial Content", a.range(), "Content-Length: %d" % len(a.part()), 'ETag: "one"', "Content-Encoding: gzip", body=a.part())


def endless(a):
    a.say("206 Partial Content", a.range(), 'ETag: "one"', "Transfer-Encoding: chunked")
    piece = b"%x\r\n" % CHUNK + b"\x3f\x80\x00\x00" * (CHUNK // 4) + b"\r\n"
    until = time.monotonic() + SECONDS
    with contextlib.suppress(OSError):
        while time.monotonic() < until:
            a.connection.sendall(piece)
    return False


def dripping(a):
    a.say("206 Partial Content", a.range(), "Content-Length: %d" % len(a.part()), 'ETag: "one"')
    until = time.monotonic() + SECONDS
    with contextlib.suppress(OSError):
        for byte in a.part():
            if time.monotonic() > until:
                break
            a.connection.sendall(bytes([byte]))
            time.sleep(0.2)
    return False


def silent(a):
    a.connection.settimeout(SECONDS)
    with contextlib.suppress(OSError):
        a.connection.recv(1)
    return False


def huge_headers(a):
    a.connection.sendall(b"HTTP/1.1 206 Partial Content\r\n")
    with contextlib.suppress(OSError):
        for n in range(20000):
            a.connection.sendall(b"X-%d: " % n + b"y" * 4000 + b"\r\n")
    return False


def whole_of_another(a):
    data = a.data + bytes(64)
    a.say("200 OK", "Content-Length: %d" % len(data), 'ETag: "two"', body=data)


def to_itself(a):
    a.say("302 Found", "Location: /v.nc", "Content-Length: 0")


def to_a_file(a):
    a.say("302 Found", "Location: file:///etc/passwd", "Content-Length: 0")


def error_page(a):
    body = b"<html>no</html>" * 100
    a.say("500 Internal Server Error", "Content-Length: %d" % len(body), body=body)


def no_such_range(a):
    a.say("416 Range Not Satisfiable", "Content-Range: bytes */%d" % len(a.data), "Content-Length: 0")


def garbage(a):
    a.connection.sendall(b"\x00\xff" * 5000)
    return False


def nothing(_a):
    return False


def several_parts(a):
    body = b"--x\r\nContent-Range: bytes %d-%d/%d\r\n\r\n" % (a.first, a.last, len(a.data)) + a.part() + b"\r\n--x--\r\n"
    a.say("206 Partial Content", "Content-Type: multipart/byteranges; boundary=x", "Content-Length: %d" % len(body), 'ETag: "one"', body=body)


def gone(a):
    a.say("404 Not Found", "Content-Length: 0")


def not_modified(a):
    a.say("304 Not Modified", 'ETag: "one"')


def two_lengths(a):
    a.say("206 Partial Content", a.range(), "Content-Length: %d" % len(a.part()), "Content-Length: 4", 'ETag: "one"', body=a.part())


def busy_twice(a):
    """Right, but for two answers."""
    if a.number in (2, 3):
        a.say("503 Service Unavailable", "Retry-After: 1", "Content-Length: 0")
    else:
        a.right()


def too_many_once(a):
    if a.number == 2:
        a.say("429 Too Many Requests", "Content-Length: 0")
    else:
        a.right()


def broken_once(a):
    return False if a.number == 2 else a.right()


def early_hints(a):
    """Answers before the answer, in one piece with all of its body."""
    body = a.part()
    headers = [a.range(last=a.first + len(body) - 1), "Content-Length: %d" % len(body), 'ETag: "one"']
    head = "".join(line + "\r\n" for line in ("HTTP/1.1 206 Partial Content", *headers))
    a.connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" + head.encode() + b"\r\n" + body)


def whole_always(a):
    """A server that knows no ranges is right, too."""
    a.say("200 OK", "Content-Length: %d" % len(a.data), 'ETag: "one"', body=a.data)


BREAKS = [cut_off, short_range, long_body, other_range, no_range, other_total, changed, lost_etag, zipped, endless, dripping, silent, huge_headers, whole_of_another, to_itself,
          to_a_file, error_page, no_such_range, garbage, nothing, several_parts, gone, not_modified, two_lengths]  # fmt: skip
HOLDS = [early_hints, busy_twice, too_many_once, broken_once, whole_always]
# What a client may well take at the first request, where nothing was promised before.
FINE_AT_ONCE = (changed, lost_etag, other_total, whole_of_another)


class Hostile:
    """The server: honest in its first `honest` answers."""

    def __init__(self, behaviour, data, honest):
        self.behaviour, self.data, self.honest, self.number = behaviour, data, honest, 0
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
                found = re.search(rb"(?im)^range: *bytes=(\d+)-(\d*)", head)
                first = int(found[1]) if found else 0
                last = min(int(found[2] or 1 << 62) if found else 1 << 62, len(self.data) - 1)
                with self.lock:
                    self.number += 1
                    answer = Answer(connection, self.data, first, last, self.number)
                keeps = answer.right() if answer.number <= self.honest else self.behaviour(answer)
                if keeps is False:
                    return

    def close(self):
        self.listener.close()


def asked(bench, port, way=None):
    """What the C interface says of the file of that server: (seconds, answer)."""
    home = places.home_of(bench.homes, "hostile", ncrc="HTTP.TIMEOUT=%d\nHTTP.CONNECTTIMEOUT=%d\n" % (TIMEOUT, TIMEOUT))
    began = time.monotonic()
    url = way or "http://127.0.0.1:%d/v.nc#mode=bytes" % port
    command = [sys.executable, Path(__file__).with_name("capi.py"), rig.LIBRARY, url, made.NAME, str(N)]
    done = bench.run(command, rig.environment(rig.LIBDIR, places.NETWORK, HOME=home), seconds=3 * SECONDS)
    if done.returncode:
        raise Wrong("the program ends with %s: %s" % (done.returncode, done.stderr[-300:]))
    return time.monotonic() - began, json.loads(done.stdout)


def bounded(took, told):
    if took > SECONDS:
        raise Wrong("it takes %.1f s: %s" % (took, told))
    if told["peak"] > MIB:
        raise Wrong("it takes %d MiB: %s" % (told["peak"], told))


def breaks(bench, behaviour, data, honest):
    server = Hostile(behaviour, data, honest)
    try:
        took, told = asked(bench, server.port)
    finally:
        server.close()
    bounded(took, told)
    if honest == 0 and behaviour in FINE_AT_ONCE:
        return
    if told["open"] == 0 and told.get("get") == 0:
        raise Wrong("the get is no error: %s" % told)
    if told.get("delivered"):
        raise Wrong("%d values of a get that failed: %s" % (told["delivered"], told))
    if told["open"] == 0 and told["fill"] != N:
        raise Wrong("only %d of %d values are fill: %s" % (told["fill"], N, told))
    if "127.0.0.1:%d/v.nc" % server.port not in told["error"]:
        raise Wrong("the error does not name the URL: %s" % told["error"])


def holds(bench, behaviour, data):
    server = Hostile(behaviour, data, 0 if behaviour is whole_always else 1)
    try:
        took, told = asked(bench, server.port)
    finally:
        server.close()
    bounded(took, told)
    if (told["open"], told.get("get"), told.get("delivered")) != (0, 0, N):
        raise Wrong("it is not got over: %s" % told)


def cut_object(bench, data):
    """An honest server of a file that was cut: what its header tells of is not there, and no zeros stand for it."""
    server = Hostile(None, data[:-1000], 1 << 30)
    try:
        took, told = asked(bench, server.port)
    finally:
        server.close()
    bounded(took, told)
    if told["open"] != 0 or told["get"] == 0 or told["delivered"] or told["fill"] != N:
        raise Wrong("%s" % told)
    if "ends at byte %d" % (len(data) - 1000) not in told["error"]:
        raise Wrong("the error does not say so: %s" % told["error"])


def all_of(bench):
    data = made.classic(N)
    if bench.options.wants("hostile cut_object"):
        bench.counts.attempt("hostile cut_object", cut_object, bench, data)
    for behaviour in BREAKS:
        for honest, when in ((1, "later"), (0, "at once")):
            name = "hostile %s %s" % (behaviour.__name__, when)
            if bench.options.wants(name):
                bench.counts.attempt(name, breaks, bench, behaviour, data, honest)
    for behaviour in HOLDS:
        name = "hostile %s" % behaviour.__name__
        if bench.options.wants(name):
            bench.counts.attempt(name, holds, bench, behaviour, data)

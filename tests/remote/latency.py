#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""A line that is longer than loopback: a TCP proxy after which a round trip takes so many milliseconds, and which counts.

    latency.py --to PORT [--rtt MS] [--listen PORT]

Each direction is delayed by half a round trip, and the first bytes of a connection by a whole one more, which a connection costs before it
can be used. The first line of output is the port that it listens on. Then each line on standard input, whatever it says, is answered by a
line of JSON about what went through since the one before:

    connections    that were opened
    requests       heads of HTTP that ended (none can be counted in what is encrypted)
    trips          requests that had to wait for an earlier answer: one that begins a round trip or more after the last that counted. As
                   many requests at once as a client likes are one trip
    sent, got      bytes, as the client sees it
    asked          the value of each request's Range, in order; null for none. At most 20,000

It ends at the end of standard input. `Line` is the same as an object.
"""
import argparse
import asyncio
import collections
import json
import re
import subprocess
import sys

# Bytes on their way in one direction of a connection, at most.
ON_THE_WAY = 64 << 20
# The head of a request, at most; where it is longer, its Range is not told.
HEAD = 64 << 10
ASKED = 20000
RANGE = re.compile(rb"^range:[ \t]*([^\r\n]*)", re.I | re.M)


class Tally:
    """What went through."""

    def __init__(self, rtt):
        self.rtt = rtt
        self.began = None
        self.clear()

    def clear(self):
        self.connections = self.requests = self.trips = self.sent = self.got = 0
        self.asked = []

    def request(self, now, head):
        self.requests += 1
        # The answer to the request that counted last cannot be there before a round trip is over.
        if self.began is None or now >= self.began + self.rtt:
            self.began = now
            self.trips += 1
        if len(self.asked) < ASKED:
            found = RANGE.search(head)
            self.asked.append(found[1].decode("latin-1").strip() if found else None)

    def told(self):
        told = {name: getattr(self, name) for name in ("connections", "requests", "trips", "sent", "got", "asked")}
        self.clear()
        return told


class Half(asyncio.Protocol):
    """One end of a connection: what arrives here leaves at the other end, later."""

    def __init__(self, tally, loop):
        self.tally, self.loop = tally, loop
        self.transport = self.other = None
        self.waiting, self.held, self.timer = collections.deque(), 0, None
        self.ended = False

    def connection_made(self, transport):
        self.transport = transport
        transport.set_write_buffer_limits(ON_THE_WAY)

    def put(self, data, delay):
        self.waiting.append((self.loop.time() + delay, data))
        self.held += len(data or b"")
        if self.held > ON_THE_WAY:
            self.transport.pause_reading()
        if self.timer is None:
            self.timer = self.loop.call_at(self.waiting[0][0], self.leave)

    def leave(self):
        """Sends what is due. All delays of a direction but the first are alike, and the first is the longest: order stays."""
        self.timer, now = None, self.loop.time()
        if self.other.transport is None:
            # The server's connection is not there yet; or it will never be, and this one is ending.
            if not self.transport.is_closing():
                self.timer = self.loop.call_later(0.001, self.leave)
            return
        while self.waiting and self.waiting[0][0] <= now:
            data = self.waiting.popleft()[1]
            if data is None:
                self.other.transport.close()
                return
            self.held -= len(data)
            if not self.other.transport.is_closing():
                self.other.transport.write(data)
        if self.held <= ON_THE_WAY:
            self.transport.resume_reading()
        if self.waiting:
            self.timer = self.loop.call_at(self.waiting[0][0], self.leave)

    def connection_lost(self, _why):
        if not self.ended:
            self.ended = True
            self.put(None, self.tally.rtt / 2)


class Server(Half):
    def data_received(self, data):
        self.tally.got += len(data)
        self.put(data, self.tally.rtt / 2)


class Client(Half):
    def __init__(self, tally, loop, port):
        super().__init__(tally, loop)
        self.port, self.first, self.head, self.due = port, True, b"", 0.0
        self.connecting = None

    def connection_made(self, transport):
        super().connection_made(transport)
        self.tally.connections += 1
        self.other = Server(self.tally, self.loop)
        self.other.other = self
        self.connecting = self.loop.create_task(self.connect())

    async def connect(self):
        try:
            await self.loop.create_connection(lambda: self.other, "127.0.0.1", self.port)
        except OSError:
            # As from a server that is not there.
            self.transport.abort()

    def data_received(self, data):
        self.tally.sent += len(data)
        self.count(data)
        delay = self.tally.rtt * (1.5 if self.first else 0.5)
        self.first = False
        # What follows the first bytes does not overtake them.
        self.due = max(self.due, self.loop.time() + delay)
        self.put(data, self.due - self.loop.time())

    def count(self, data):
        """Counts the heads that end in what was sent. Requests with a body are not told apart from their body."""
        self.head += data
        while True:
            end = self.head.find(b"\r\n\r\n")
            if end < 0:
                self.head = self.head[-HEAD:]
                return
            self.tally.request(self.loop.time(), self.head[:end])
            self.head = self.head[end + 4 :]


async def serve(options):
    loop, tally = asyncio.get_running_loop(), Tally(options.rtt / 1000)
    server = await loop.create_server(lambda: Client(tally, loop, options.to), "127.0.0.1", options.listen, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    asks = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(asks), sys.stdin)
    while await asks.readline():
        print(json.dumps(tally.told()), flush=True)
    server.close()


class Line:
    """The proxy as a process of its own: `with Line(port, rtt=20) as line:` then `line.port`, and `line.counts()` since the last call."""

    def __init__(self, port, rtt=0.0):
        command = [sys.executable, __file__, "--to", str(port), "--rtt", str(rtt)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.port = int(self.process.stdout.readline())

    def counts(self):
        self.process.stdin.write("?\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def close(self):
        self.process.stdin.close()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--to", type=int, required=True, metavar="PORT")
    p.add_argument("--rtt", type=float, default=20.0, metavar="MS")
    p.add_argument("--listen", type=int, default=0, metavar="PORT")
    asyncio.run(serve(p.parse_args()))


if __name__ == "__main__":
    main()

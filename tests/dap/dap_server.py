# SPDX-License-Identifier: MIT OR Apache-2.0
"""A small OPeNDAP server for tests: datasets of wire2 and wire4 by HTTP, and a log of what was asked for.

    with Server({"name": dataset}) as server:   # then server.url + "/name"; server.log() since the last call

The first part of a path may say how: /big/ (DAP4, big-endian), /nosums/ (without checksums), /tiny/ (chunks of a few bytes), /cookie/ (by a
cookie, which a redirect brings), /late/ (every answer takes its time), /whole/ (without Content-Length, until the connection's end), /mute/ (no DAP4 at .dmr.xml).
"""
import contextlib
import functools
import http.server
import socket
import threading
import time
import urllib.parse

import wire2
import wire4
from shapes import Refused

COOKIE = "zonda=crumb"
TYPES = {"dds": "text/plain", "das": "text/plain", "dods": "application/octet-stream", "dmr": "application/vnd.opendap.dap4.dataset-metadata+xml",
         "dmr.xml": "text/xml", "dap": "application/vnd.opendap.dap4.data", "ver": "text/plain"}  # fmt: skip
DESCRIBED = {"dds": "dods-dds", "das": "dods-das", "dods": "dods-data"}
LATE = 0.02


def error2(message, code=400):
    return b'Error {\n    code = %d;\n    message = "%s";\n};\n' % (code, message.replace('"', "'").encode())


def error4(message, code=400):
    return b'<?xml version="1.0"?>\n<Error xmlns="http://xml.opendap.org/ns/DAP/4.0#" httpcode="%d"><Message>%s</Message></Error>\n' % (code, message.replace("<", "&lt;").encode())


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1

    def log_message(self, *_):
        pass

    def do_GET(self):
        path, _, query = self.path.partition("?")
        query = urllib.parse.unquote(query)
        parts = urllib.parse.unquote(path).strip("/").split("/")
        hows, name = set(parts[:-1]), parts[-1]
        with self.server.guard:
            self.server.asked.append((name, query, dict(self.headers)))
        if "late" in hows:
            time.sleep(LATE)
        if "cookie" in hows and COOKIE not in (self.headers.get("Cookie") or ""):
            return self.say(302, b"", [("Set-Cookie", COOKIE + "; Path=/"), ("Location", self.path)])
        status, body, kind = self.server.answer(name, query, frozenset(hows))
        headers = [("Content-Type", TYPES.get(kind, "text/html")), ("XDODS-Server", "zonda-tests/1"), ("XDAP", "2.0")]
        if status == 200 and kind in DESCRIBED:
            headers.append(("Content-Description", DESCRIBED[kind].replace("-", "_")))
        elif status != 200 and kind in DESCRIBED:
            headers.append(("Content-Description", "dods_error"))
        self.say(status, body, headers, whole="whole" in hows)
        return None

    def say(self, status, body, headers, whole=False):
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        if whole:
            self.send_header("Connection", "close")
            self.close_connection = True
        else:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.flush()
        with contextlib.suppress(OSError):
            self.connection.sendall(body)


class Server(http.server.ThreadingHTTPServer):
    daemon_threads, request_queue_size, address_family = True, 128, socket.AF_INET

    def __init__(self, datasets):
        super().__init__(("127.0.0.1", 0), Handler)
        self.datasets, self.asked, self.guard = datasets, [], threading.Lock()
        self.answer = functools.lru_cache(512)(self.made)
        self.port = self.server_address[1]
        self.url = "http://127.0.0.1:%d" % self.port
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()

    def __exit__(self, *_):
        self.shutdown()
        self.server_close()

    def handle_error(self, *_):
        """A client may go away at any time."""

    def log(self):
        """[(name with extension, query without escapes, headers)] since the last call."""
        with self.guard:
            asked, self.asked = self.asked, []
        return asked

    def made(self, name, query, hows):
        """(status, body, extension)"""
        stem, kind = next(((name[: -len(end) - 1], end) for end in ("dmr.xml", "dds", "das", "dods", "dmr", "dap", "ver") if name.endswith("." + end)), (name, ""))
        dataset = self.datasets.get(stem)
        if kind == "ver":
            return 200, b"Core version: DAP/2.0\nServer version: zonda-tests/1\n", kind
        try:
            if isinstance(dataset, wire2.Dataset) and kind in ("dds", "das", "dods"):
                made = {"dds": lambda: dataset.dds(query).encode("latin-1"), "das": lambda: dataset.das().encode("latin-1"), "dods": lambda: dataset.dods(query)}
                return 200, made[kind](), kind
            if isinstance(dataset, wire4.Dataset) and kind in ("dmr", "dmr.xml", "dap") and not ("mute" in hows and kind == "dmr.xml"):
                asked = dict(urllib.parse.parse_qsl(query, keep_blank_values=True, separator="&"))
                ce = asked.get("dap4.ce", "")
                if kind != "dap":
                    return 200, dataset.dmr(ce).encode(), kind
                sums = "nosums" not in hows and asked.get("dap4.checksum", "true") != "false"
                return 200, dataset.dap(ce, ">" if "big" in hows else "<", sums, 5 if "tiny" in hows else wire4.CHUNK), kind
        except Refused as why:
            return 400, (error4 if isinstance(dataset, wire4.Dataset) else error2)(str(why)), kind
        return 404, b"<html><body>no such dataset</body></html>", ""

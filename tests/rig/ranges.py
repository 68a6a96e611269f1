# SPDX-License-Identifier: MIT OR Apache-2.0
"""A small server of ranges for tests: `ranges.py FOLDER` prints its port and serves until it is ended.

It serves the files of a folder over HTTP or HTTPS, on a free port of this machine. What a request has to bring is set by
attributes: a user and a password, a header, or a key of S3 that signs it (the signature itself is not looked at). PUT
makes a file where a key of S3 is set.
"""

from __future__ import annotations

import base64
import hashlib
import re
import ssl
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit


class RangeServer:
    """Files of a folder behind HTTP.

    Attributes
    ----------
    requests : list of (method, path, range or None)
        In the order in which they came.
    user : (name, password) or None
    header : (name, value) or None
    access_key : str or None
        Requests have to be signed by it; the first part of the path is the bucket.
    broken : int or None
        Answers of every request, in place of the file.
    short : bool
        Bodies end in their middle.
    """

    def __init__(self, folder, certificate=None):
        """`certificate` is a file, with its key beside it as `.key`: then it is HTTPS."""
        self.folder = Path(folder)
        self.requests = []
        self.user = self.header = self.access_key = self.broken = None
        self.short = False
        owner = self

        class Handler(_Handler):
            server_of = owner

        self._server = _Server(("127.0.0.1", 0), Handler)
        self.port = self._server.server_address[1]
        self.url = f"{'https' if certificate else 'http'}://127.0.0.1:{self.port}"
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate, Path(certificate).with_suffix(".key"))
            # The thread of a connection does the handshake, at its first read.
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True, do_handshake_on_connect=False)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        # A client that goes, or does not like our certificate, is none.
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Answers are small, and clients wait for each.
    disable_nagle_algorithm = True

    def log_message(self, *_):
        pass

    def _answer(self, code, body=b"", **headers):
        self.send_response(code)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body[: len(body) // 2] if self.server_of.short else body)
        self.close_connection = self.close_connection or self.server_of.short

    def _is_allowed(self):
        server, given = self.server_of, self.headers.get("Authorization", "")
        if server.user is not None:
            wanted = "Basic " + base64.b64encode(":".join(server.user).encode()).decode()
            if given != wanted:
                self._answer(401, WWW_Authenticate='Basic realm="tests"')
                return False
        if server.header is not None and self.headers.get(server.header[0]) != server.header[1]:
            self._answer(403)
            return False
        if server.access_key is not None and not given.startswith(f"AWS4-HMAC-SHA256 Credential={server.access_key}/"):
            self._answer(403, b"<Error><Code>AccessDenied</Code></Error>")
            return False
        return True

    def _path(self):
        name = unquote(urlsplit(self.path).path).lstrip("/")
        return self.server_of.folder / name if ".." not in name.split("/") else None

    def do_GET(self):
        server = self.server_of
        server.requests.append((self.command, self.path, self.headers.get("Range")))
        if server.broken is not None:
            return self._answer(server.broken)
        if not self._is_allowed():
            return None
        path = self._path()
        if path is None or not path.is_file():
            return self._answer(404)
        content = path.read_bytes()
        tag = '"%s"' % hashlib.sha256(content).hexdigest()[:16]
        found = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        if found is None:
            return self._answer(200, content, ETag=tag, Accept_Ranges="bytes")
        start, end = int(found[1]), min(int(found[2] or len(content)) + 1, len(content))
        if start >= len(content):
            return self._answer(416, Content_Range=f"bytes */{len(content)}")
        said = f"bytes {start}-{end - 1}/{len(content)}"
        return self._answer(206, content[start:end], ETag=tag, Accept_Ranges="bytes", Content_Range=said)

    do_HEAD = do_GET

    def do_PUT(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.server_of.requests.append((self.command, self.path, None))
        path = self._path()
        if not self._is_allowed():
            return None
        if path is None or self.server_of.access_key is None:
            return self._answer(405)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(body)
        return self._answer(200, ETag='"%s"' % hashlib.sha256(body).hexdigest()[:16])


def main():
    """Serves until it is ended; a second argument is a user and password, `me:secret`, or `s3:KEY`."""
    with RangeServer(sys.argv[1]) as server:
        if len(sys.argv) > 2:
            name, _, rest = sys.argv[2].partition(":")
            if name == "s3":
                server.access_key = rest
            else:
                server.user = (name, rest)
        print(server.port, flush=True)
        threading.Event().wait()


if __name__ == "__main__":
    main()

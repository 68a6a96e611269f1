# SPDX-License-Identifier: MIT OR Apache-2.0
"""Certificates for servers of tests, made by `openssl`: all in one folder, each with its key beside it (`NAME.pem`, `NAME.key`), good for two days."""

from __future__ import annotations

import subprocess
from pathlib import Path

# Names of each.
SIGNED = {"server": "DNS:localhost,IP:127.0.0.1", "misnamed": "DNS:nobody.invalid", "client": "DNS:client"}


def make(folder, openssl="openssl"):
    """A CA of its own: `ca`; the servers' for localhost and 127.0.0.1, one for another name, a client's; and another CA, `other-ca`.

    Raises RuntimeError where openssl fails.
    """
    folder = Path(folder)

    def call(*words):
        done = subprocess.run([str(openssl), *words], cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError("openssl %s: %s" % (words[0], done.stderr[-300:]))

    for ca in ("ca", "other-ca"):
        call("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", ca + ".key", "-out", ca + ".pem", "-days", "2", "-subj", "/CN=tests " + ca,
             "-addext", "basicConstraints=critical,CA:TRUE", "-addext", "keyUsage=critical,keyCertSign,cRLSign")  # fmt: skip
    for name, names in SIGNED.items():
        (folder / (name + ".ext")).write_text("subjectAltName=%s\nbasicConstraints=CA:FALSE\nextendedKeyUsage=serverAuth,clientAuth\n" % names)
        call("req", "-newkey", "rsa:2048", "-nodes", "-keyout", name + ".key", "-out", name + ".csr", "-subj", "/CN=" + name)
        call("x509", "-req", "-in", name + ".csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-out", name + ".pem", "-days", "2", "-extfile", name + ".ext")
    for file in folder.glob("*.key"):
        file.chmod(0o644)

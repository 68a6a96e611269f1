# SPDX-License-Identifier: MIT OR Apache-2.0
"""Root file systems: Debian by debootstrap, made once in out/release/work/roots. Nothing is written to them afterwards: tests run in an
overlay, which goes with them. ZONDA_DEBIAN names another mirror.
"""
import ctypes
import os
import shutil
import subprocess
import time
from contextlib import contextmanager

import rig

ROOTS = rig.ROOT / "out/release/work/roots"
MIRROR = os.environ.get("ZONDA_DEBIAN", "http://deb.debian.org/debian")


class System:
    """A root file system that programs are run in."""

    def __init__(self, root):
        self.root = root

    def run(self, command, seconds=600, check=True, **more):
        environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LC_ALL": "C.UTF-8", "DEBIAN_FRONTEND": "noninteractive", **more}
        done = subprocess.run(
            ("chroot", self.root, "/bin/sh", "-ec", command), env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL, timeout=seconds,
        )  # fmt: skip
        if check and done.returncode != 0:
            raise rig.Wrong(f"{command}: exit {done.returncode}\n{done.stdout[-3000:]}")
        return done.stdout

    def timed(self, command, **more):
        start = time.monotonic()
        self.run(command, **more)
        return time.monotonic() - start

    def put(self, *files, folder="root"):
        target = self.root / folder
        target.mkdir(parents=True, exist_ok=True)
        for file in files:
            shutil.copy2(file, target)


def mount(*arguments):
    subprocess.run(("mount", *map(str, arguments)), check=True)


@contextmanager
def mounted(root):
    """With what programs expect of a root file system."""
    for kind in ("proc", "dev"):
        (root / kind).mkdir(exist_ok=True)
    mount("-t", "proc", "proc", root / "proc")
    mount("--rbind", "/dev", root / "dev")
    try:
        shutil.copy2("/etc/resolv.conf", root / "etc/resolv.conf")
        yield System(root)
    finally:
        # In a mount namespace of this process; a program that stays behind must not keep it from going.
        subprocess.run(("umount", "--lazy", "--recursive", root / "dev"), check=False)
        subprocess.run(("umount", "--lazy", root / "proc"), check=False)


@contextmanager
def fresh(base):
    """A system like `base`, which is left as it is."""
    with rig.scratch() as scratch:
        for name in ("upper", "work", "root"):
            (scratch / name).mkdir()
        root = scratch / "root"
        # The scratch folder may lie on an overlay itself, which cannot be the upper one.
        mount("-t", "tmpfs", "tmpfs", scratch / "upper")
        for name in ("data", "work"):
            (scratch / "upper" / name).mkdir()
        mount("-t", "overlay", "overlay", "-o", f"lowerdir={base},upperdir={scratch}/upper/data,workdir={scratch}/upper/work", root)
        try:
            with mounted(root) as system:
                yield system
        finally:
            subprocess.run(("umount", "--lazy", root), check=False)
            subprocess.run(("umount", "--lazy", scratch / "upper"), check=False)


def base(suite, packages=""):
    """A root file system with Debian and further packages, made once."""
    made = ROOTS / (suite + ("-programs" if packages else ""))
    if (made / "complete").exists():
        return made
    if not shutil.which("debootstrap"):
        raise rig.Skip("there is no debootstrap")
    shutil.rmtree(made, ignore_errors=True)
    made.parent.mkdir(parents=True, exist_ok=True)
    if packages:
        subprocess.run(("cp", "-a", "--reflink=auto", base(suite), made), check=True)
        with mounted(made) as system:
            system.run(f"apt-get -qq update && apt-get -qq install -y --no-install-recommends {packages}", seconds=3000)
    else:
        done = rig.run(("debootstrap", "--variant=minbase", suite, made, MIRROR), seconds=1800)
        if done.returncode != 0:
            shutil.rmtree(made, ignore_errors=True)
            raise rig.Skip(f"debootstrap {suite}: {(done.stdout or done.stderr).strip().splitlines()[-1]}")
    (made / "complete").touch()
    return made


def other_root(folder):
    """Debian's Python and NumPy for aarch64, unpacked only: nothing runs there to set packages up."""
    kept = ROOTS / "bookworm-arm64"
    if not (kept / "complete").exists():
        shutil.rmtree(kept, ignore_errors=True)
        done = rig.run(("debootstrap", "--foreign", "--arch=arm64", "--variant=minbase", "--include=python3-numpy", "bookworm", kept, MIRROR), seconds=1800)
        if done.returncode != 0:
            raise rig.Skip(f"debootstrap for arm64: {(done.stdout or done.stderr).strip().splitlines()[-1]}")
        (kept / "complete").touch()
    folder.mkdir()
    for path in sorted((kept / "var/cache/apt/archives").glob("*.deb")):
        subprocess.run(("dpkg-deb", "-x", path, folder), check=True)
    return folder


def private():
    """Mounts of this process are nobody else's from here on."""
    CLONE_NEWNS = 0x20000
    if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNS) != 0:
        return False
    return subprocess.run(("mount", "--make-rprivate", "/")).returncode == 0

# SPDX-License-Identifier: MIT OR Apache-2.0
"""Calls in a process of their own: what crashes or hangs there is the answer, not the end."""
import os
import pickle
import select
import signal
import time
import traceback


class Died(Exception):
    """A signal, or no answer in time."""


class Failed(Exception):
    """An exception in there, with its traceback."""


def call(function, *args, seconds=30, env=None):
    """function(*args), in a fork."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reader)
        try:
            os.environ.update(env or {})
            answer = "ok", function(*args)
        except BaseException as why:
            answer = "failed", "%s: %s\n%s" % (type(why).__name__, why, traceback.format_exc(limit=-4))
        with os.fdopen(writer, "wb") as out:
            pickle.dump(answer, out)
        # Nothing of the parent's is to be closed or printed here.
        os._exit(0)
    os.close(writer)
    data, end = [], time.monotonic() + seconds
    try:
        while True:
            ready, _, _ = select.select([reader], [], [], max(0, end - time.monotonic()))
            if not ready:
                os.kill(pid, signal.SIGKILL)
                raise Died("no answer in %d seconds" % seconds)
            piece = os.read(reader, 1 << 20)
            if not piece:
                break
            data.append(piece)
    finally:
        os.close(reader)
        _, status = os.waitpid(pid, 0)
    if os.WIFSIGNALED(status):
        raise Died(signal.Signals(os.WTERMSIG(status)).name)
    kind, answer = pickle.loads(b"".join(data))
    if kind == "failed":
        raise Failed(answer)
    return answer

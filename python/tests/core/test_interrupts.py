"""Ctrl-C in the middle of a long write."""

from __future__ import annotations

import os
import signal
import threading

import netCDF4
import numpy as np
import pytest

import zonda

ROWS, WIDTH = 64 * 8, 1 << 18  # 512 MiB of floats


def test_ctrl_c_ends_a_long_write_and_the_file_has_what_was_put(tmp_path):
    path = tmp_path / "long.nc"
    values = np.broadcast_to(np.arange(WIDTH, dtype="f4"), (ROWS, WIDTH)).copy()
    ds = zonda.create(path)
    ds.create_dimension("t", None)
    ds.create_dimension("x", WIDTH)
    v = ds.create_variable("v", "f4", ("t", "x"), chunks=(3, WIDTH), compression="deflate", level=1, shuffle=True)
    v[0] = values[0]

    def interrupt():
        # As soon as something of the long write is there.
        while ds.sizes["t"] < 2:
            pass
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        v[0:ROWS] = values
    thread.join()
    ds.close()
    with netCDF4.Dataset(path) as judge:
        n = judge.dimensions["t"].size
        assert 2 <= n < ROWS
        # Complete parts, of complete chunks.
        assert n % 3 == 0
        np.testing.assert_array_equal(judge["v"][:], values[:n])

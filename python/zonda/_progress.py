"""A bar for long transfers, where one is wanted and tqdm is installed."""

from __future__ import annotations

import importlib
from types import TracebackType
from typing import Any

# Below this many bytes nobody waits.
_LONG = 64 << 20


class Meter:
    """Counts bytes of one transfer; shows them if `wanted` and it is a long one."""

    def __init__(self, wanted: bool, what: str, total: int) -> None:
        self._bar: Any = None
        if wanted and total >= _LONG:
            try:
                tqdm = importlib.import_module("tqdm.auto").tqdm
            except ImportError:
                return
            self._bar = tqdm(total=total, desc=what, unit="B", unit_scale=True, unit_divisor=1024)

    @property
    def is_shown(self) -> bool:
        """Whether somebody sees it: then transfers go in parts."""
        return self._bar is not None

    def add(self, n: int) -> None:
        """So many bytes more."""
        if self._bar is not None:
            self._bar.update(n)

    def __enter__(self) -> Meter:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._bar is not None:
            self._bar.close()

# SPDX-License-Identifier: MIT OR Apache-2.0
"""What passed, failed and was left out: a line for each failure, and `N passed, N failed, N skipped` at the end."""
import subprocess
import sys
import threading
from pathlib import Path


class Wrong(Exception):
    """Not what must be; the text says what."""


class Skip(Exception):
    """What a test needs is not to be had here; the text says what."""


class Setup(Exception):
    """The tests cannot be run at all, and should: that fails."""


class Counts:
    """May be used by several threads."""

    def __init__(self):
        self.passed = self.failed = self.skipped = 0
        self.lock = threading.Lock()

    def check(self, name, wrong):
        """`wrong` says what is wrong with it, or is None or empty. Whether it passed."""
        if wrong:
            self.fail(name, wrong)
        else:
            self.passes()
        return not wrong

    def passes(self, n=1):
        with self.lock:
            self.passed += n

    def fail(self, name, why):
        with self.lock:
            self.failed += 1
            print("FAIL %s: %s" % (name, why), flush=True)

    def skip(self, name, why=None, n=1):
        with self.lock:
            self.skipped += n
            print("skip %s" % name + (": %s" % why if why else ""), flush=True)

    def attempt(self, name, test, *arguments):
        """Runs a test, and gives what it gives, True for nothing, or None where it did not pass. Whatever it raises, by a defect of
        the test too, is no pass."""
        try:
            result = test(*arguments)
        except Skip as why:
            self.skip(name, why)
        except (Wrong, subprocess.TimeoutExpired) as why:
            self.fail(name, why)
        except Exception as why:
            self.fail(name, "%s: %s" % (type(why).__name__, why))
        else:
            self.passes()
            return True if result is None else result
        return None

    def line(self):
        return "%d passed, %d failed, %d skipped" % (self.passed, self.failed, self.skipped)

    def status(self):
        """Nothing at all is no success."""
        return 1 if self.failed or not (self.passed or self.skipped) else 0


def skip_all(why):
    """Ends a runner that lacks what all of its tests need."""
    print("skip all: %s\n0 passed, 0 failed, 1 skipped" % why)
    sys.exit(0)


def main(function):
    """Runs a runner and ends with its exit status. The function gives its Counts, or a status where it counted nothing."""
    try:
        result = function()
    except Skip as why:
        skip_all(why)
    except Setup as why:
        runner = Path(sys.argv[0]).resolve()
        sys.exit("%s/%s: %s\n0 passed, 1 failed, 0 skipped" % (runner.parent.name, runner.name, why))
    if isinstance(result, Counts):
        print(result.line())
        result = result.status()
    sys.exit(result or 0)

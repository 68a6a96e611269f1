# SPDX-License-Identifier: MIT OR Apache-2.0
"""What each reader says of a state, and whether that is right."""

import collections
import os
import shutil
import signal
import subprocess

import lab


class Server:
    """A process that answers each line with a line; a crash or a hang of it is an answer too."""

    def __init__(self, libdir, *command):
        self.libdir, self.command, self.process = libdir, command, None

    def start(self):
        # Threads of numpy only take memory, of which there is a limit.
        self.process = subprocess.Popen(
            self.command,
            env=lab.rig.environment(self.libdir, OPENBLAS_NUM_THREADS="1", PYTHONDONTWRITEBYTECODE="1"),
            text=True,
            bufsize=1,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self.library = self.process.stdout.readline().strip()

    def ask(self, command):
        if self.process is None:
            self.start()
        try:
            self.process.stdin.write(command + "\n")
            answer = self.process.stdout.readline().strip()
        except BrokenPipeError:
            answer = ""
        if not answer:
            code = self.process.wait()
            self.process = None
            if code == 64:
                raise RuntimeError(f"check does not know: {command}")
            what = signal.Signals(-code).name if code < 0 else f"exit {code}"
            return f"crash {what}"
        return answer

    def close(self):
        if self.process:
            self.process.stdin.close()
            self.process.wait()
            self.process = None


class Checker(Server):
    """One `check` process."""

    def __init__(self, libdir, job):
        super().__init__(libdir, f"{lab.BIN}/check", *job.args())


class H5pyChecker(Server):
    """One `check_plain` process, for files that h5py reads first."""

    reader = None  # of this process and all its jobs, since it starts slowly

    def __init__(self, job):
        super().__init__(lab.ORACLE, f"{lab.BIN}/check_plain", *job.args())
        if H5pyChecker.reader is None:
            script = os.path.join(lab.HERE, "h5reader.py")
            H5pyChecker.reader = Server(lab.ORACLE, job.options.h5py, script)

    def ask(self, command):
        folder = command.split()[-1]
        said = self.reader.ask(os.path.join(folder, lab.FILE_NAME))
        if said.startswith("crash"):
            return said
        answer = super().ask(command)
        os.unlink(os.path.join(folder, ".plain"))
        return answer if said == "ok" or answer == "ok nothing" else f"{answer} ({said})"


class Judge:
    """Judges states of a job's folder in both libraries, of netCDF-4 files also in h5py, and counts."""

    KEPT = 2  # failed states of one job that are kept

    def __init__(self, job, part):
        self.job, self.part = job, part
        self.zonda = Checker(lab.LIBDIR, job)
        self.readers = {"netCDF-C": Checker(lab.ORACLE, job), "Zonda": self.zonda}
        if job.version == lab.NETCDF4 and job.options.h5py:
            self.readers["h5py"] = H5pyChecker(job)
        self.count = collections.Counter()
        self.reasons, self.note, self.n_asked = [], "", 0
        self.budget = job.options.recoveries
        self.passes = {}  # what `state` said of states that were right

    def close(self):
        for reader in self.readers.values():
            reader.close()

    def ask_all(self, folder, promise, unit):
        """What each reader says, by its name."""
        p, q, error = promise
        command = f"check {p} {q} {unit} {error} {folder}"
        self.n_asked += 1
        left_out = "h5py" if self.n_asked % self.job.options.h5py_every else None
        self.count["by h5py"] += "h5py" in self.readers and not left_out
        return {
            name: reader.ask(command) for name, reader in self.readers.items() if name != left_out
        }

    @staticmethod
    def right(answer):
        return answer.startswith(("ok", "torn"))

    def all_right(self, answers):
        return all(map(self.right, answers.values()))

    @staticmethod
    def said(answers):
        return "; ".join(f"{name}: {answer}" for name, answer in answers.items())

    def fail(self, folder, promise, why):
        self.count["failed"] += 1
        if self.count["failed"] > self.KEPT:
            return False
        keep = os.path.join(
            lab.OUT,
            "failed",
            f"{self.part}-{self.job.scenario}-{self.job.version}-" f"{self.count['failed']}",
        )
        shutil.rmtree(keep, ignore_errors=True)
        os.makedirs(os.path.dirname(keep), exist_ok=True)
        lab.copy_tree(folder, keep)
        p, q, error = promise
        kept = os.path.relpath(keep, lab.ROOT)
        self.reasons.append(
            f"{why}{self.note}\n    kept in {kept}; promised up to {p}, begun {q}: "
            f"echo check {p} {q} {lab.PAGE} {error} $PWD/{kept} | "
            f"LD_LIBRARY_PATH=... out/crash/bin/check {' '.join(self.job.args())}"
        )
        return False

    def state(
        self,
        folder,
        promise,
        unit=lab.PAGE,
        excuse=None,
        early_is_right=not lab.STRICT,
        note="",
    ):
        """Judges one state. `excuse` names a count for failures that were not promised against;
        with `early_is_right`, records may be visible before they are complete. `note` is shown
        with a failure."""
        self.note = note
        self.count["states"] += 1
        # A power cut leaves few states in many ways. What was asked for and passed is not asked for again.
        asked = (lab.digest(folder), promise, unit, excuse, early_is_right)
        if asked in self.passes:
            self.count["the same again"] += 1
            return self.passes[asked]
        right = self.new_state(folder, promise, unit, excuse, early_is_right)
        if right:
            self.passes[asked] = right
        return right

    def new_state(self, folder, promise, unit, excuse, early_is_right):
        """Judges a state that was not seen before."""
        answers = self.ask_all(folder, promise, unit)
        journal = lab.has_journal(folder)
        right = self.all_right(answers)
        if right and not journal:
            return self.passed(answers, "direct")
        if not journal:
            kinds = {answer.split()[0] for answer in answers.values()}
            if early_is_right and kinds <= {"ok", "torn", "early"}:
                self.count["early records"] += 1
                return True
            if excuse:
                self.count[excuse] += 1
                return True
            return self.fail(folder, promise, self.said(answers))
        zonda = answers["Zonda"]
        if not self.right(zonda) and not zonda.startswith("error"):
            return self.fail(folder, promise, f"with a journal beside it, Zonda: {zonda}")
        if right:
            # The journal must do no harm either; replaying each would take long.
            self.budget -= 1
            if self.budget < 0:
                return self.passed(answers, "direct")
        return self.recover(folder, promise, unit, "direct" if right else "recovered")

    def recover(self, folder, promise, unit, kind):
        """Replays the journal in copies of the state: by command, by opening for writing."""
        ways = ("command", "open")
        if not self.job.options.long:
            ways = (ways[self.count["states"] % 2],)
        for way in ways:
            copy = self.job.fresh("copy")
            lab.copy_tree(folder, copy)
            who = lab.stranger(copy)
            said = self.replay(copy, way)
            if who is not None:
                # Its owner may have put it there: only who trusts the owner has it completed.
                if not said or not lab.has_journal(copy):
                    return self.fail(folder, promise, f"the journal of user {who} was used by {way}")
                said = self.replay(copy, "command", trust=who)
            answers = self.ask_all(copy, promise, unit)
            left = lab.has_journal(copy)
            shutil.rmtree(copy)
            if said or left or not self.all_right(answers):
                return self.fail(
                    folder,
                    promise,
                    f"after recovery by {way} ({said or 'ok'}"
                    f"{', a journal is left' if left else ''}): {self.said(answers)}",
                )
        return self.passed(answers, kind)

    def replay(self, folder, way, trust=None, **env):
        """What went wrong with a recovery, or None. `trust` is the number of a user whose journal is used."""
        if way == "open":
            answer = self.zonda.ask(f"rewrite {folder}")
            return None if answer == "ok" else f"open for writing: {answer}"
        options = [] if trust is None else ["--trust", str(trust)]
        done = subprocess.run(
            [lab.COMMAND, "recover", *options, os.path.join(folder, lab.FILE_NAME)],
            check=False,
            text=True,
            env=lab.rig.environment(lab.LIBDIR, **env),
            capture_output=True,
            timeout=60,
        )
        return (
            None if done.returncode == 0 else f"exit {done.returncode}: {done.stderr.strip()[:200]}"
        )

    def passed(self, answers, kind):
        if any(a.startswith("torn") for a in answers.values()):
            self.count["torn"] += 1
            return "torn"
        if "ok nothing" in answers.values():
            self.count["nothing"] += 1
        else:
            self.count[kind] += 1
        return True

    def life_goes_on(self, folder, promise, unit=lab.PAGE):
        """After a crash, Zonda opens the file and moves everything once more."""
        copy = self.job.fresh("copy")
        lab.copy_tree(folder, copy)
        self.count["continued"] += 1
        answer = self.zonda.ask(f"goon {promise[0]} {promise[1]} {promise[2]} {copy}")
        answers = self.ask_all(copy, promise, unit)
        shutil.rmtree(copy)
        if answer != "ok" or not self.all_right(answers):
            return self.fail(folder, promise, f"going on: {answer}; {self.said(answers)}")
        return True

# SPDX-License-Identifier: MIT OR Apache-2.0
"""States that a power cut may leave, from the log of a run under ZONDA_SYNC=data.

What is assumed of the system: a unit (a page; in `sectors` 512 bytes) is written wholly or not at
all, and holds what the page cache held at some moment: the first n of the writes to it since the
last fsync or fdatasync of the file. Units are independent of each other. A file's length is one of
those it had since. Names (create, rename, link, unlink) become durable in order, as in a journalling
file system; all earlier ones are when their folder or their file is fsynced, a new file's name also
by fdatasync of the file."""

import os
import shutil
import struct

import lab


class Shadow:
    """A file as the device has it for certain, and what may have come on top."""

    def __init__(self):
        self.base = bytearray()
        self.pending = []  # (at, bytes)
        self.lengths = []  # every length since the barrier, the first one before
        self.length = 0

    def write(self, at, data):
        self.pending.append((at, data))
        self.set_length(max(self.length, at + len(data)))

    def set_length(self, n):
        if n < self.length:
            self.pending.append((n, bytes(self.length - n)))
        if not self.lengths:
            self.lengths.append(self.length)
        if n != self.length:
            self.lengths.append(n)
            self.length = n

    def barrier(self):
        for at, data in self.pending:
            put(self.base, at, data)
        fit(self.base, self.length)
        self.pending, self.lengths = [], []

    def landed(self, rng, unit):
        """One state that may be on the device."""
        content = bytearray(self.base)
        touched = {}
        for n, (at, data) in enumerate(self.pending):
            for u in range(at // unit, (at + len(data) - 1) // unit + 1):
                touched.setdefault(u, []).append(n)
        # Some states lose nearly all, some nearly nothing.
        loss = rng.choice((0.05, 0.2, 0.5, 0.8, 0.95))
        for u, writes in touched.items():
            fate = rng.random()
            n = rng.randrange(len(writes)) if fate < loss else len(writes)
            for w in writes[:n]:
                at, data = self.pending[w]
                first, last = max(at, u * unit), min(at + len(data), (u + 1) * unit)
                put(content, first, data[first - at : last - at])
        fit(
            content,
            (
                self.lengths[-1]
                if self.lengths and rng.random() > loss
                else rng.choice(self.lengths) if self.lengths else self.length
            ),
        )
        return content


def put(content, at, data):
    if len(content) < at:
        content.extend(bytes(at - len(content)))
    content[at : at + len(data)] = data


def fit(content, n):
    if len(content) < n:
        content.extend(bytes(n - len(content)))
    del content[n:]


class Names:
    """What the names of a folder are after the first n changes to them."""

    def __init__(self):
        self.changes = []
        self.durable = 0

    def barrier(self, concerns):
        """All changes up to the last one that `concerns` says yes to are durable."""
        for n in range(len(self.changes), self.durable, -1):
            if concerns(self.changes[n - 1]):
                self.durable = n
                return

    def after(self, n):
        names = {}
        for e in self.changes[:n]:
            if e.kind in (lab.CREATE, lab.LINK):
                names[e.path or f".unnamed-{e.file}"] = e.file
            elif e.kind == lab.MKDIR:
                names[e.path] = None
            elif e.kind == lab.SYMLINK:
                names[e.path] = e.path2
            elif e.kind == lab.UNLINK:
                names.pop(e.path, None)
            elif e.kind == lab.RENAME:
                names[e.path2] = names.pop(e.path)
            elif e.kind == lab.EXCHANGE:
                names[e.path], names[e.path2] = names[e.path2], names[e.path]
        return names


def build(folder, names, files, rng, unit):
    os.mkdir(folder)
    written = {}
    for path, what in names.items():
        to = os.path.join(folder, path)
        os.makedirs(os.path.dirname(to), exist_ok=True)
        if what is None:
            os.makedirs(to, exist_ok=True)
        elif isinstance(what, str):
            os.symlink(what, to)
        elif what in written:
            os.link(written[what], to)
        else:
            lab.write_sparse(to, files[what].landed(rng, unit))
            written[what] = to


def made_durable(e, mine):
    """Which changes to names the sync `e` of a file confirms; `mine` are the file's names now."""

    def concerns(change):
        if change.kind == lab.CREATE and change.file == e.file:
            return True
        if e.kind != lab.FSYNC:
            return False
        return change.file == e.file or change.kind == lab.RENAME and change.path2 in mine

    return concerns


def random_states(job, judge, unit):
    _, events, n_initial = job.logged_run(ZONDA_SYNC="data")
    promise = lab.promises(events)
    ops = job.ops()
    places = [i for i in range(n_initial, len(events)) if events[i].kind in lab.CHANGES]
    n_barriers = sum(e.kind in lab.BARRIERS for e in events)
    if not n_barriers:
        raise lab.Failure("no fsync or fdatasync was called under ZONDA_SYNC=data")
    bound = job.bound(job.options.power_bound, 3000)
    chosen = {}
    for _ in range(bound):
        # Right before a barrier most is pending.
        i = job.random.choice(places)
        if job.random.random() < 0.5:
            while i + 1 < len(events) and events[i + 1].kind not in lab.BARRIERS:
                i += 1
        chosen[i] = chosen.get(i, 0) + 1
    files, names = {}, Names()
    for i, e in enumerate(events):
        if e.kind in lab.NAMES:
            if e.kind == lab.CREATE:
                files[e.file] = Shadow()
            if e.kind == lab.RENAME and i >= n_initial:
                moved = names.after(len(names.changes)).get(e.path)
                if moved in files and files[moved].pending:
                    judge.count["renames of unsynced files"] += 1
                    judge.count["failed"] += 1
                    judge.reasons.append(f"{e.path} is renamed to {e.path2} before it was synced")
            names.changes.append(e)
        elif e.kind == lab.WRITE:
            files[e.file].write(e.at, e.data)
        elif e.kind == lab.LENGTH:
            files[e.file].set_length(e.at)
        elif e.kind == lab.ALLOCATE:
            mode, n = struct.unpack("=QQ", e.data)
            if mode & ~1:
                raise lab.Failure(f"fallocate mode {mode} is not known here")
            if not mode:
                files[e.file].set_length(max(files[e.file].length, e.at + n))
        elif e.kind in (lab.FSYNC, lab.FDATASYNC):
            files[e.file].barrier()
            now = names.after(len(names.changes))
            mine = {path for path, file in now.items() if file == e.file}
            names.barrier(made_durable(e, mine))
        elif e.kind == lab.FSYNC_FOLDER:
            names.barrier(lambda c: True)
        if i + 1 == n_initial:
            for file in files.values():
                file.barrier()
            names.durable = len(names.changes)
        for _ in range(chosen.get(i, 0)):
            state = job.fresh("state")
            n = job.random.randint(names.durable, len(names.changes))
            build(state, names.after(n), files, job.random, unit)
            p, q, error = promise[i]
            # A classic header on its way is written as pages: smaller units may tear it.
            tears = unit < lab.PAGE and job.version in lab.CLASSIC and "d" in ops[p + 1 : q + 1]
            excuse = "torn headers, not promised" if tears else None
            judge.state(state, (p, q, error), unit, excuse, "shared" in job.scenario)
            shutil.rmtree(state)
    judge.count["barriers"] += n_barriers


def pages(job, judge):
    random_states(job, judge, lab.PAGE)


def sectors(job, judge):
    random_states(job, judge, 512)

# SPDX-License-Identifier: MIT OR Apache-2.0
"""Every file with every operation: done or refused, and right."""
import collections
import fnmatch
import multiprocessing
import os
import random
import re
import shutil
import traceback
from pathlib import Path

import change
import child
import goon
import look
import programs
import rig
import sources
import sources_netcdf

HERE = Path(__file__).resolve().parent
OUT = rig.out("edit")
PER_SOURCE = 1      # operations on each file, neither --quick nor --long
# Files whose references lead to what a name leads to: there objects are renamed in a short run, too.
REFERS = re.compile("links-all|data-twice")
CORPUS_BYTES = 2 << 20
CORPUS_FILES = 6    # in a short run
UNFOLLOWED = "in the heap of shared messages"      # which the walk does not enter
THEN = collections.namedtuple("Then", "look problems digests bad random dumped")
READERS = ("netCDF-C", "new netCDF-C", "Zonda")     # Zonda last


class Before:
    """What everybody reads in a file before it is changed."""

    def __init__(self, tools, path):
        self.path = path
        self.look, self.problems = child.call(look.judge, path)
        self.digests = {r: tools.digest(r, path) for r in READERS}
        self.bad = {r: programs.bad(self.digests[r]) for r in READERS}
        # Who reads memory that nobody set says something else each time, or crashes: netCDF-C does with
        # texts of fixed length, where it does not read what Zonda does. Zonda is never excused.
        again = {r: tools.digest(r, path, MALLOC_PERTURB_="165") for r in READERS[:2]}
        has_texts = any(re.fullmatch(r"\|S([2-9]|\d\d+)", keys.get("dtype", "")) for keys in self.look.values())
        self.random = {r for r in again if again[r] != self.digests[r] or has_texts and not agree(again[r], self.digests["Zonda"])}
        self.dumped = tools.h5dump and tools.dumps(path)


class Worker:
    """One process of the pool."""

    def __init__(self, o, tools):
        self.o, self.tools, self.before = o, tools, {}
        self.folder = tools.scratch / ("worker-%d" % os.getpid())
        self.folder.mkdir(exist_ok=True)

    def of(self, name, corpus):
        """(path of the file as it was made, Before)."""
        if name not in self.before:
            path = str(self.folder / "source.h5")
            if corpus:
                shutil.copy(corpus, path)
                os.chmod(path, 0o644)
            else:
                child.call(sources.write, name, path)
            kept = str(self.folder / ("before-%d.h5" % len(self.before)))
            os.rename(path, kept)
            plain = kept
            if "-stale-" in name:
                # Nobody reads it as it is: the edit is judged by the same file without the mark.
                plain = shutil.copy(kept, kept + ".plain")
                sources.mark(plain)
            self.before[name] = kept, Before(self.tools, plain)
            for r in sorted(self.before[name][1].random):
                print("not asked, since it reads at random: %s of %s" % (r, name), flush=True)
        return self.before[name]

    def case(self, name, operation, corpus=None):
        """(verdict, details): edited, refused, not here, FAILED."""
        try:
            original, before = self.of(name, corpus)
        except (child.Died, child.Failed) as why:
            return ("not here", "cannot be read by h5py: %s" % str(why).split("\n")[0]) if corpus else ("FAILED", "cannot be made: %s" % why)
        if corpus and before.digests["Zonda"].startswith("!"):
            return "not here", "cannot be read"
        path = str(self.folder / "edited.nc")
        shutil.copy(original, path)
        journal = path + ".zonda-journal"
        try:
            try:
                what, result = child.call(change.apply, self.tools.library, operation, path)
            except (child.Died, child.Failed) as why:
                return self.failed(name, operation, "the edit: %s" % why, path)
            if os.path.exists(journal):
                return self.failed(name, operation, "a journal is left", path)
            if what == "not here":
                return what, result
            if what == "refused":
                if not result["kept"] or not result["message"]:
                    return self.failed(name, operation, "refused (%(where)s: %(code)d, %(message)r)%(hurt)s" % {
                        **result, "hurt": "" if result["kept"] else ", but the file is changed"}, path)
                return what, result
            if not any(result.values()) and change.sha256(path) == change.sha256(original):
                return "edited", ""     # nothing was to be done, and nothing was
            wrong, digests = self.judge(before, result, path, "")
            if not wrong:
                wrong = self.go_on(before, digests, path)
            return self.failed(name, operation, "; ".join(wrong[:4]), path) if wrong else ("edited", "")
        finally:
            for f in (path, journal):
                if os.path.exists(f):
                    os.unlink(f)

    def failed(self, name, operation, why, path):
        keep = OUT / "failed" / ("%s %s" % (re.sub(r"[^\w.-]+", "_", name), operation))
        keep.mkdir(parents=True, exist_ok=True)
        shutil.copy(self.before[name][0], keep / "before.h5")
        if os.path.exists(path):
            shutil.copy(path, keep / "after.h5")
        return "FAILED", why

    def judge(self, before, result, path, when):
        """What is wrong with a file after an edit; what netCDF reads in it."""
        try:
            after, problems = child.call(look.judge, path)
        except (child.Died, child.Failed) as why:
            return ["%sh5py: %s" % (when, str(why).split("\n")[0])], {}
        wrong = [when + x for x in look.differences(before.look, after, result)]
        known = set(before.problems)
        for old, new in result["renamed"].items():
            known |= {x.replace(old, new) for x in before.problems}
        wrong += ["%sstructure: %s" % (when, x) for x in problems if x not in known and not x.endswith(UNFOLLOWED)]
        try:
            wrong += [when + "h5py: " + x for x in child.call(look.shown, path, result["facts"])]
        except (child.Died, child.Failed) as why:
            wrong.append("%sh5py: %s" % (when, str(why).split("\n")[0]))
        digests = {}
        for r in READERS:
            if r != "Zonda" and before.digests[r].startswith("!"):
                # It could not open the file at all: netCDF-C follows links that lead back without end.
                digests[r] = before.digests[r]
                continue
            digests[r] = self.tools.digest(r, path)
            if r in before.random:
                continue
            new = programs.bad(digests[r]) - before.bad[r]
            if new:
                wrong.append("%s%s: %s" % (when, r, sorted(new)[:3]))
            elif not any(key == "shape" for _, key in result["touched"]):
                # Where no dimension grows, others show the same through netCDF as well.
                wrong += ["%s%s: %s" % (when, r, x) for x in others(before, r, digests[r], result)]
        for r in [r for r in READERS[:2] if r not in before.random]:
            # Whom they agreed with before, they must agree with after.
            if agree(before.digests[r], before.digests["Zonda"]) and not agree(digests[r], digests["Zonda"]):
                wrong.append("%s%s and Zonda differ: %s" % (when, r, first_difference(digests[r], digests["Zonda"])))
        if before.dumped and not self.tools.dumps(path):
            wrong.append(when + "h5dump ends with an error")
        return wrong, digests

    def go_on(self, before, digests, path):
        """libhdf5 edits it further, and all that was right still is."""
        try:
            middle, problems = child.call(look.judge, path)
            _, more = child.call(goon.go_on, path)
        except (child.Died, child.Failed) as why:
            return ["libhdf5 cannot go on: %s" % why]
        then = THEN(middle, problems, digests, before.bad, before.random, before.dumped)
        wrong, _ = self.judge(then, more, path, "after libhdf5 went on: ")
        # What libhdf5 does with its own file is its own affair.
        if wrong and not hasattr(before, "alone"):
            before.alone = self.alone(before)
        return [x for x in wrong if shape(x) not in before.alone] if wrong else []

    def alone(self, before):
        """What is said of libhdf5's edit of the file as it was."""
        path = str(self.folder / "alone.nc")
        shutil.copy(before.path, path)
        try:
            _, more = child.call(goon.go_on, path)
            return {shape(x) for x in self.judge(before, more, path, "after libhdf5 went on: ")[0]}
        except (child.Died, child.Failed) as why:
            return {shape("libhdf5 cannot go on: %s" % why)}
        finally:
            os.unlink(path)


def shape(text):
    return re.sub(r"\d+", "#", text)[:60]


def unquoted(name):
    """A name as it is, of one in a digest, where bytes beyond plain letters are numbers."""
    return re.sub(r"(?:\\x[0-9a-f]{2})+", lambda m: bytes.fromhex(m[0].replace("\\x", "")).decode("utf-8", "surrogateescape"), name)


def blocks(text):
    """{path: lines} of the variables in a digest. Names that nobody gave are all the same."""
    found, group, path = {}, "", None
    for line in text.splitlines():
        line = re.sub(r"phony_dim_\d+", "phony_dim", line)
        if line.startswith("group "):
            group, path = unquoted(line.split('"')[1]).rstrip("/"), None
        elif line.startswith(" var "):
            path = group + "/" + unquoted(line.split('"')[1])
            found[path] = [line]
        elif path and line.startswith("  "):
            found[path].append(line)
        else:
            path = None
    return found


def others(before, reader, after, result):
    """Variables that an edit did not touch, and that read otherwise now."""
    touched = {path for path, _ in result["touched"]} | set(result["renamed"])
    for group, keys in before.look.items():
        # An object has several names to netCDF, soft links too.
        touched |= {group.rstrip("/") + "/" + name for name, to in keys.get("links", {}).items()
                    if to in touched or to.startswith("soft ") and any(to.endswith(" " + path) for path in touched)}
    names = {old.rsplit("/", 1)[1]: new.rsplit("/", 1)[1] for old, new in result["renamed"].items() if old not in result["stay"]}
    # A type without a name goes by a number in order of discovery, or is one that has a name now, and its attributes are seen.
    types = "|".join(["_Anonymous[A-Za-z]+[0-9]+", *map(re.escape, result["types"])])
    head_of = lambda line: re.sub(r"(?<=\" )(%s)(?= )" % types, "_Anonymous", line)
    seen = re.compile(r'  att ".*" (%s) ' % "|".join(map(re.escape, result["types"])))
    before, after = blocks(before.digests[reader]), blocks(after)
    for path, lines in before.items():
        if path not in touched:
            now = after.get(look.moved(path, result["renamed"]))
            # A dimension may have been renamed.
            head = head_of(re.sub(r"(?<=[( ])([^( ]+)=", lambda m: names.get(m[1], m[1]) + "=", lines[0]))
            if now is None:
                yield "%s is lost" % path
                continue
            now = [head_of(now[0])] + [x for x in now[1:] if not (result["types"] and seen.match(x)) or x in lines]
            if not re.fullmatch(re.escape(head).replace("phony_dim=", "[^ (]+="), now[0]):
                # What has no name goes by the first dimension of its length, also by one that is new.
                yield "%s: %.100r was %.100r" % (path, now[0], head)
            elif now[1:] != lines[1:]:
                yield "%s: %.100r was %.100r" % (path, *next(((a, b) for a, b in zip(now[1:], lines[1:]) if a != b), (now, lines)))


def comparable(text):
    """A digest without what the releases of netCDF-C say otherwise."""
    text = re.sub(r" quantize \d+ \d+", "", text)
    # Which dimension a variable without names has depends on lengths that are known at different
    # moments; the shape of the variable stays to be compared.
    if "phony_dim_" in text:
        text = re.sub(r"phony_dim_\d+", "phony_dim", text)
        text = re.sub(r'(?m)^(group ".*": )\d+ dims', r"\1dims", text)
    lines = [x for x in text.splitlines() if not x.startswith(' dim "phony_dim"')]
    # So have variables that libhdf5 made when it went on; h5py compares these.
    kept, is_made = [], False
    for x in lines:
        if not x.startswith("  "):
            is_made = x.startswith(' var "') and ' by h5py"' in x or x.startswith(' var "by h5py')
        if not is_made:
            kept.append(x)
    lines = kept
    if sum(x.endswith(" unlimited") for x in lines) > 1:
        # netCDF-C puts elements in the wrong place where a variable is shorter than several of these.
        lines = [x for x in lines if not x.startswith("  data ")]
    return sorted(lines)


def agree(a, b):
    return comparable(a) == comparable(b)


def first_difference(a, b):
    a, b = comparable(a), comparable(b)
    return "%.120r, %.120r" % (next((x for x in a if x not in b), ""), next((x for x in b if x not in a), ""))


# ---- The whole

def read_list(path):
    found = []
    for line in open(path):
        if line.strip() and not line.startswith("#"):
            found.append(tuple(x.strip() for x in line.split("|")))
    return found


def corpus_files(o):
    """[(name, path)] of what the corpus has, always the same ones."""
    folder = rig.CORPUS
    n = o.corpus if o.corpus is not None else o.by(0, CORPUS_FILES, 150)
    if not folder:
        print("skip the corpus: ZONDA_CORPUS is not set")
        return []
    rows = [line.rstrip("\n").split("\t") for line in open(os.path.join(folder, "MANIFEST.tsv"))]
    head = {k: i for i, k in enumerate(rows[0])}
    fit = [r for r in rows[1:] if r[head["format"]] and r[head["category"]] in ("hdf5", "netcdf4") and r[head["verdict"]] == "valid"
           and int(r[head["size"]]) <= CORPUS_BYTES]
    random.Random(6).shuffle(fit)
    return [("corpus/" + r[head["path"]], os.path.join(folder, r[head["path"]])) for r in fit[:n]]


def cases(o, tools):
    """[(file, operation, path in the corpus)], by file."""
    sources_netcdf.by_netcdf({"nc": str(tools.reference / "libnetcdf.so.19"), "ncnew": str(tools.newest / "libnetcdf.so.19")})
    operations = list(change.OPERATIONS)
    found = []
    files, n = [(name, None) for name in sources.SOURCES] + corpus_files(o), o.by(1, PER_SOURCE, len(operations))
    if not o.only:
        files = files[::o.by(5, 1, 1)]
    for i, (name, corpus) in enumerate(files):
        # Some of the operations, others for each file, so that all meet in turn.
        chosen = operations if o.long or o.only else {operations[(i * n + k * 11) % len(operations)] for k in range(n)}
        if REFERS.search(name):
            chosen = {*chosen, "variable-rename", "group-rename"}
        found += [(name, op, corpus) for op in operations if op in chosen and o.wants("%s %s" % (name, op))]
    return found


worker = None


def prepare(o, tools):
    global worker
    worker = Worker(o, tools)


def one_file(work):
    """All operations on one file."""
    results = []
    for name, operation, corpus in work:
        try:
            results.append((name, operation, *worker.case(name, operation, corpus)))
        except Exception:
            results.append((name, operation, "FAILED", "the test itself: " + traceback.format_exc(limit=-3)))
    return results


def run(o, tools, scratch):
    todo = collections.defaultdict(list)
    for case in cases(o, tools):
        todo[case[0]].append(case)
    listed, used = read_list(HERE / "refused.txt"), set()
    counts, reasons, lines = collections.Counter(passed=0, failed=0), collections.Counter(), []
    with multiprocessing.Pool(o.jobs, prepare, (o, tools)) as pool:
        for results in pool.imap_unordered(one_file, todo.values()):
            for name, operation, verdict, details in results:
                if verdict == "refused":
                    message = re.sub(r"^.*?: ", "", details["message"].replace(str(scratch), ""), count=1)
                    reasons[(details["where"], details["code"], re.sub(r"\d+", "#", message))] += 1
                    lines.append((name, operation, details["code"], message))
                    rule = next((r for r in listed if fnmatch.fnmatchcase(name, r[0]) and fnmatch.fnmatchcase(operation, r[1])
                                 and fnmatch.fnmatchcase(message, r[2])), None)
                    used.add(rule)
                    if rule is None:
                        verdict, details = "FAILED", "refused, which refused.txt does not have: %(where)s: %(code)d, %(message)s" % details
                counts[verdict if verdict != "FAILED" else "failed"] += 1
                if verdict == "FAILED":
                    print("FAIL %s %s: %s" % (name, operation, details), flush=True)
                elif verdict != "not here":
                    counts["passed"] += 1
    if reasons:
        print("refused, by reason:")
        for (where, code, message), n in reasons.most_common():
            print("%5d  %s %d: %s" % (n, where, code, message))
    if o.refusals:
        for line in sorted(lines):
            print("%s | %s | %d %s" % line)
    if o.long and not o.only:
        for rule in listed:
            if rule not in used:
                counts["failed"] += 1
                print("FAIL refused.txt: nothing is refused as %s" % " | ".join(rule))
    return counts

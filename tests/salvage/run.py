#!/usr/bin/env python3
"""`zonda recover --to` on files that are cut off, or of which pages are zeroed.

    tests/salvage/run.py [--quick] [--long] [--only NAME] [--keep]

What was saved is read by netCDF-C (netCDF4-python), the original by h5py or netCDF-C. Each element is
equal, or listed as lost. Of a file that was cut off, everything has to be there whose bytes and
metadata are: each variable in one run whose header is in the file; all elements whose bytes are,
where all metadata are; each element of a classic file. The command never panics, and never takes
more than 20 seconds. A sample of places by default, a smaller one with --quick; with --long every 1,000
bytes and every page.
"""
import os
import re
import shutil
import struct
import subprocess
import sys
from pathlib import Path

sys.path.insert(1, str(Path(__file__).resolve().parents[1]))
import rig  # noqa: E402

rig.needs("h5py", "netCDF4", "numpy")
import files  # noqa: E402
import h5py  # noqa: E402
import netCDF4  # noqa: E402
import numpy as np  # noqa: E402

LONGEST = 20
PAGE = 4096
LOST = re.compile(r"lost: (\S+) (\[[^\]]*\]) to (\[[^\]]*\]): ")
WHOLE = re.compile(r"lost: (/[^\s:]*): ")
SAVED = re.compile(r"saved: (\S+): (?:all of )?([\d_]+)(?: of ([\d_]+))? elements")
MARKS = [b"OHDR", b"OCHK", b"TREE", b"SNOD", b"HEAP", b"FRHP", b"FHDB", b"FHIB", b"BTHD", b"BTLF",
         b"BTIN", b"FAHD", b"FADB", b"EAHD", b"EAIB", b"EADB", b"EASB", b"GCOL"]


class Original:
    """What a file has: values of variables by path, and where their bytes are."""

    def __init__(self, path):
        self.path = path
        with open(path, "rb") as file:
            self.bytes = file.read()
        self.values, self.runs, self.headers = {}, {}, {}
        self.is_hdf5 = self.bytes.startswith(b"\x89HDF")
        if self.is_hdf5:
            with h5py.File(path) as file:
                file.visititems(self.take)
            places = [self.bytes.rfind(mark) for mark in MARKS]
            # A heap's collection has 4 KiB, and no other structure here has more.
            self.metadata_end = max(places) + 4096
        else:
            self.classic()

    def take(self, name, item):
        if not isinstance(item, h5py.Dataset):
            return
        if item.attrs.get("NAME", b"").startswith(b"This is a netCDF dimension but not"):
            return
        path = "/" + name
        data = item.asstr()[...] if h5py.check_string_dtype(item.dtype) else item[...]
        self.values[path] = np.asarray(data)
        info = h5py.h5o.get_info(item.id)
        self.headers[path] = (info.addr, info.hdr.space.total, info.hdr.nchunks)
        runs = []
        if item.chunks is None:
            if item.id.get_offset() is not None and self.values[path].dtype != object:
                runs.append((None, item.id.get_offset(), item.id.get_storage_size()))
        else:
            for i in range(item.id.get_num_chunks()):
                chunk = item.id.get_chunk_info(i)
                runs.append((chunk.chunk_offset, chunk.byte_offset, chunk.size))
        self.runs[path] = (item.chunks, bool(item.compression or item.fletcher32), runs)

    def classic(self):
        with netCDF4.Dataset(self.path) as file:
            file.set_auto_mask(False)
            for name, var in file.variables.items():
                self.values["/" + name] = np.asarray(var[...])
        # Where each element ends, by Zonda's own words checked against the values in the bytes.
        self.ends = {path: self.element_ends(path) for path in self.values}

    def element_ends(self, path):
        """The byte behind each element: found by its value, which no other element of its record has."""
        data, elem = self.values[path], self.values[path].dtype.itemsize
        raw = data.astype(data.dtype.newbyteorder(">"))
        ends = np.zeros(data.shape, "i8")
        with netCDF4.Dataset(self.path) as file:
            is_record = file.variables[path[1:]].dimensions[:1] == ("t",)
        at = 0
        for index in range(data.shape[0] if is_record else 1):
            row = raw[index] if is_record else raw
            at = self.bytes.index(row.tobytes(), at)
            inner = (np.arange(row.size).reshape(row.shape) + 1) * elem + at
            if is_record:
                ends[index] = inner
            else:
                ends[...] = inner
            at += 1
        return ends

    def must_have(self, path, cut):
        """Which elements have to be there of a file that ends at `cut`."""
        data = self.values[path]
        if not self.is_hdf5:
            return self.ends[path] <= cut
        there = np.zeros(data.shape, bool)
        address, length, n_blocks = self.headers[path]
        chunks, is_filtered, runs = self.runs[path]
        all_metadata = cut >= self.metadata_end
        # Blocks of a header may be anywhere; one block is where it begins.
        in_file = n_blocks == 1 and address + length <= cut
        if not all_metadata and (chunks is not None or not in_file):
            return there
        for start, at, size in runs:
            if chunks is None:
                n = max(0, min(size, cut - at)) // data.dtype.itemsize
                there.reshape(-1)[:n] = True
                continue
            if is_filtered and at + size > cut:
                continue
            n = max(0, min(size, cut - at)) // data.dtype.itemsize
            inside = (np.arange(int(np.prod(chunks))) < n).reshape(chunks)
            if is_filtered:
                inside[...] = True
            box = tuple(slice(s, min(s + c, full)) for s, c, full in zip(start, chunks, data.shape))
            there[box] = inside[tuple(slice(0, b.stop - b.start) for b in box)]
        return there


def saved_values(path):
    """What netCDF-C reads of the saved file, by path."""
    found = {}

    def walk(group, at):
        for name, var in group.variables.items():
            var.set_auto_maskandscale(False)
            found[at + name] = np.asarray(var[...])
        for name, inner in group.groups.items():
            walk(inner, at + name + "/")

    with netCDF4.Dataset(path) as file:
        walk(file, "/")
    return found


def lost_of(text):
    """Paths that are lost, and parts of them: (path, box)."""
    whole, parts = set(), []
    for line in text.splitlines():
        found = LOST.match(line)
        if found:
            first, last = (eval(found.group(i)) for i in (2, 3))
            parts.append((found.group(1), tuple(slice(a, b + 1) for a, b in zip(first, last))))
        elif WHOLE.match(line):
            whole.add(WHOLE.match(line).group(1))
    return whole, parts


class Sweep(rig.Counts):
    def __init__(self, folder):
        super().__init__()
        self.folder, self.n_elems, self.n_saved = folder, 0, 0

    def fail(self, label, why, damaged):
        kept = os.path.join(self.folder, "failed-" + re.sub(r"\W+", "-", label))
        shutil.copyfile(damaged, kept)
        rig.keep(self.folder)
        super().fail(label, "%s\n        %s" % (why, kept))

    def recover(self, damaged):
        target = os.path.join(self.folder, "saved.nc")
        if os.path.exists(target):
            os.remove(target)
        return target, rig.run([rig.ZONDA, "recover", "--all", "--to", target, damaged], seconds=LONGEST)

    def one(self, label, original, data, cut):
        """One damaged file. `cut`: where it ends; None where bytes inside are not as they were."""
        damaged = os.path.join(self.folder, "damaged")
        with open(damaged, "wb") as file:
            file.write(data)
        try:
            target, done = self.recover(damaged)
        except subprocess.TimeoutExpired:
            return self.fail(label, "takes more than %d seconds" % LONGEST, damaged)
        if "panicked" in done.stderr or done.returncode not in (0, 1, 3):
            return self.fail(label, "exit %d: %s" % (done.returncode, done.stderr[:300]), damaged)
        why = self.judge(original, target, done, cut)
        if why:
            return self.fail(label, why, damaged)
        self.passes()

    def judge(self, original, target, done, cut):
        must = {} if cut is None else {p: original.must_have(p, cut) for p in original.values}
        if done.returncode == 1:
            n = sum(int(there.sum()) for there in must.values())
            return "nothing saved, %d elements are there: %s" % (n, done.stderr) if n else None
        try:
            found = saved_values(target)
        except (OSError, AttributeError, RuntimeError) as error:
            return "netCDF-C cannot read what was saved: %s" % error
        whole, parts = lost_of(done.stdout)
        if done.returncode == 0 and (whole or parts):
            return "exit 0, and something is lost"
        told = {m.group(1): m for m in map(SAVED.match, done.stdout.splitlines()) if m}
        unnamed = [v for p, v in found.items() if "object_at_" in p or p not in original.values]
        for path, data in original.values.items():
            there = must.get(path, np.zeros(data.shape, bool))
            self.n_elems += data.size
            got = found.get(path)
            if got is None:
                # Its name or its group is lost: it may be there under another name.
                same = [v for v in unnamed if v.shape == data.shape and v.dtype == data.dtype]
                if there.any() and not any((v[there] == data[there]).all() for v in same):
                    return "%s is not there, and %d of its elements are" % (path, there.sum())
                continue
            if path not in told:
                return "%s is saved, and there is no line about it" % path
            if got.shape != data.shape:
                if cut is None:
                    continue
                return "%s has shape %s, not %s" % (path, got.shape, data.shape)
            lost = np.zeros(data.shape, bool)
            for name, box in parts:
                if name == path:
                    lost[box] = True
            if path in whole and not told[path].group(3) is None and not lost.any():
                lost[...] = True
            same = got == data
            if cut is not None and not (same | lost).all():
                at = np.argwhere(~(same | lost))[0].tolist()
                return "%s: element %s is %s, not %s, and not listed as lost" % (
                    path, at, got[tuple(at)], data[tuple(at)])
            if (there & ~same).any():
                at = np.argwhere(there & ~same)[0].tolist()
                return "%s: element %s is in the file and not saved" % (path, at)
            if cut is not None and int(lost.sum()) != elements_lost(told[path]):
                return "%s: %d elements are listed as lost, and the line says %s" % (
                    path, lost.sum(), told[path].group(0))
            self.n_saved += int(same.sum())
        return None


def elements_lost(line):
    number = [int(n.replace("_", "")) for n in line.groups()[1:] if n]
    return number[1] - number[0] if len(number) == 2 else 0


def cuts(original, options):
    """Where a file is cut: every 1,000 bytes from its end, and beside what is odd."""
    size = len(original.bytes)
    every = [size - n for n in range(1000, size, 1000)] + [size - 1, size - 7]
    if options.long:
        every += list(range(PAGE, size, PAGE)) + [10, 60, 100, 200, 300, 400, 500]
        every += [size - n for n in range(30, 1000, 97)]
        return sorted(set(cut for cut in every if 0 < cut < size))
    step = max(1, len(every) // options.by(3, 8, 8))
    return sorted(set(every[::step] + every[:1] + every[-2:]))


def counted(original, number):
    """A classic file whose header says another number of records."""
    data = bytearray(original.bytes)
    wide = data[3] == 5
    data[4:12 if wide else 8] = struct.pack(">Q" if wide else ">I", number)
    return bytes(data)


def damage(sweep, name, original, options):
    """All ways to damage a file."""
    for cut in cuts(original, options):
        sweep.one("%s cut at %d" % (name, cut), original, original.bytes[:cut], cut)
    size = len(original.bytes)
    pages = list(range(0, size, PAGE))
    for at in pages if options.long else pages[:2] + pages[2::max(1, len(pages) // 3)]:
        data = bytearray(original.bytes)
        data[at:at + PAGE] = bytes(len(data[at:at + PAGE]))
        sweep.one("%s zeroed at %d" % (name, at), original, bytes(data), None)
    if not original.is_hdf5:
        records = next(v.shape[0] for p, v in original.values.items() if p == "/a")
        all_ones = 2 ** 64 - 1 if original.bytes[3] == 5 else 2 ** 32 - 1
        for number in (0, 1, records - 1, all_ones):
            sweep.one("%s with %d records" % (name, number), original,
                      counted(original, number), size)
        sweep.one("%s with too many records" % name, original, counted(original, 10 ** 9), size)
        sweep.one("%s streaming, cut" % name, original,
                  counted(original, all_ones)[:size - 40], size - 40)


def main():
    parser = rig.parser(__doc__)
    parser.add_argument("--keep", action="store_true")
    options = rig.arguments(parser)
    with rig.scratch() as folder:
        if options.keep:
            rig.keep(folder)
        sweep = Sweep(folder)
        for name, path in files.make(str(folder), str(rig.ZONDA)).items():
            if options.wants(name):
                damage(sweep, name, Original(path), options)
    print("%d of %d elements of variables that keep their names saved" % (sweep.n_saved, sweep.n_elems))
    return sweep


if __name__ == "__main__":
    rig.main(main)

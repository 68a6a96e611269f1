#!/usr/bin/env python3
"""Writes seeds of the target hdf5_structure: the structures of sound HDF5 files.

    structure_seeds.py OUT FILE...

A seed is two bytes that pick the structure (see the target), a copy of the structure, and the whole
file behind it, with the addresses of structures moved by as much. Files of more than 16 KiB or with
addresses of another width than 8 are passed over.
"""
import hashlib
import pathlib
import re
import sys

LARGEST = 16 << 10
HEAD = 1024             # bytes of the copy
SHIFT = 48 + HEAD       # what comes before the file: the target's superblock, the copy
SIGNATURES = re.compile(b"OHDR|OCHK|TREE|SNOD|HEAP|GCOL|FRHP|FHDB|FHIB|FSHD|BTHD|BTIN|BTLF"
                        b"|FAHD|FADB|EAHD|EAIB|EASB|EADB|SMTB|SMLI")
WHICH = {b"HEAP": [2], b"GCOL": [3], b"FRHP": [4], b"TREE": [6, 7], b"FAHD": [8], b"EAHD": [9], b"BTHD": [5, 10],
         b"SMTB": [14], b"OHDR": [15]}


def seeds(data):
    at = {match.start(): match.group() for match in SIGNATURES.finditer(data) if match.start() >= 48}
    moved = {place.to_bytes(8, "little"): (place + SHIFT).to_bytes(8, "little") for place in at}
    if not moved:
        return
    addresses = re.compile(b"|".join(map(re.escape, sorted(moved))))
    whole = addresses.sub(lambda match: moved[match.group()], data)
    for place, signature in at.items():
        copy = whole[place:place + HEAD].ljust(HEAD, b"\0")
        for which in WHICH.get(signature, []):
            hows = [data[place + 5]] if which == 5 else range(8) if 7 <= which <= 10 else [0]
            for how in hows:
                yield bytes([which, how]) + copy + whole


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    out = pathlib.Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    number = 0
    for name in sys.argv[2:]:
        data = pathlib.Path(name).read_bytes()
        widths = data[9:11] if data[8:9] in (b"\2", b"\3") else data[13:15]
        if len(data) > LARGEST or data[:4] != b"\x89HDF" or widths != b"\x08\x08":
            continue
        for seed in seeds(data):
            (out / hashlib.sha256(seed).hexdigest()[:16]).write_bytes(seed)
            number += 1
    print("fuzz: %d structures" % number)


if __name__ == "__main__":
    main()

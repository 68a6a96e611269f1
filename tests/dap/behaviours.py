# SPDX-License-Identifier: MIT OR Apache-2.0
"""The table of what breaking.py's server does: (version, documents, what it does, codes, whether only the open is tried, the server's message)."""
import time
import zlib

import numpy as np
import wire4
from breaking import DAS, DATA, DDS, LIMITS, NET, SECONDS, SERVICE, N
from dap_server import error2, error4

MESSAGE = "the disk is on fire"


# ---- Any document

def half(r):
    r.say(r.body[: len(r.body) // 2])


def half_of_what_was_declared(r):
    r.say(r.body[: len(r.body) // 2], length=len(r.body))
    return False


def nothing(r):
    r.say(b"")


def page(r):
    r.say(b"<html><head><title>Please log in</title></head><body>" + b"<p>no</p>" * 500 + b"</body></html>", "200 OK", "Content-Type: text/html")


def error_page(r):
    r.say(b"<html>broken</html>" * 50, "500 Internal Server Error", "Content-Type: text/html")


def error_document(r):
    r.say(error2(MESSAGE, 500) if r.kind in ("dds", "das", "dods") else error4(MESSAGE, 500), "200 OK", "Content-Description: dods-error")


def error_with_its_status(r):
    r.say(error2(MESSAGE, 500) if r.kind in ("dds", "das", "dods") else error4(MESSAGE, 500), "500 Internal Server Error", "Content-Description: dods-error")


def dripping(r):
    r.connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(r.body))
    until = time.monotonic() + SECONDS
    for byte in r.body:
        if time.monotonic() > until:
            break
        r.connection.sendall(bytes([byte]))
        time.sleep(0.2)
    return False


def silence(r):
    r.connection.settimeout(SECONDS)
    r.connection.recv(1)
    return False


def garbage(r):
    r.say(bytes(range(256)) * 64)


def zipped(r):
    r.say(zlib.compress(r.body), "200 OK", "Content-Encoding: br")


def to_a_file(r):
    r.say(b"", "302 Found", "Location: file:///etc/passwd")


def to_itself(r):
    r.say(b"", "302 Found", "Location: /broken.%s?%s" % (r.kind, r.query))


# ---- DDS, DAS, DMR

def endless(r):
    piece = {"dds": b"    Int32 a%d;\n" * 4096, "das": b"    a { String b \"c\"; }\n" * 4096}.get(r.kind, b'<Int32 name="a"/>' * 4096)
    return r.stream({"dds": b"Dataset {\n", "das": b"Attributes {\n"}.get(r.kind, b'<Dataset name="x" dapVersion="4.0">'), piece.replace(b"%d", b"1"))


def one_endless_string(r):
    first = {"dds": b"Dataset {\n Int32 ", "das": b'Attributes { a { String b "'}.get(r.kind, b'<Dataset name="')
    return r.stream(first, b"c" * 65536)


def deep(r):
    n = 200000
    if r.kind == "dds":
        return r.say(b"Dataset {" + b"Structure {" * n + b"Int32 a;" + b"} s;" * n + b"} d;")
    if r.kind == "das":
        return r.say(b"Attributes {" + b"a {" * n + b"}" * n + b"}")
    return r.say(b'<Dataset name="x" dapVersion="4.0">' + b'<Group name="g">' * n + b"</Group>" * n + b"</Dataset>")


def deep_structures(r):
    n = 100000
    r.say(b'<Dataset name="x" dapVersion="4.0">' + b'<Structure name="g">' * n + b'<Int32 name="v"/>' + b"</Structure>" * n + b"</Dataset>")


def huge_dimensions(r):
    if r.kind == "dds":
        return r.say(b"Dataset { Float32 v[a = 2147483647][b = 2147483647][c = 2147483647]; Int32 w[4294967295]; } d;")
    return r.say(b'<Dataset name="x" dapVersion="4.0"><Dimension name="n" size="18446744073709551615"/><Float32 name="v"><Dim name="/n"/><Dim name="/n"/></Float32></Dataset>')


def negative_dimension(r):
    r.say(r.body.replace(b"= %d]" % N, b"= -%d]" % N).replace(b'size="%d"' % N, b'size="-%d"' % N))


def no_such_type(r):
    r.say(r.body.replace(b"Float32", b"Float31"))


def a_thousand_dimensions(r):
    r.say(b"Dataset { Float32 v" + b"[1]" * 100000 + b"; } d;")


def long_name(r):
    name = b"x" * 1000000
    r.say(b"Dataset { Float32 %s[2]; } d;" % name if r.kind == "dds" else b'<Dataset name="x" dapVersion="4.0"><Float32 name="%s"/></Dataset>' % name)


def million_of_entities(r):
    r.say(b'<?xml version="1.0"?><!DOCTYPE d [<!ENTITY a "aaaaaaaaaa">' + b"".join(b'<!ENTITY a%d "%s">' % (n, b"&a%s;" % (b"%d" % (n - 1) if n else b"") * 10) for n in range(9)) + b']>'
          b'<Dataset name="&a8;" dapVersion="4.0"/>')  # fmt: skip


def entity_of_a_file(r):
    r.say(b'<?xml version="1.0"?><!DOCTYPE d [<!ENTITY a SYSTEM "file:///etc/passwd">]><Dataset name="x" dapVersion="4.0"><String name="&a;"/></Dataset>')


def dimension_of_nobody(r):
    r.say(r.body.replace(b'name="/n"', b'name="/nobody"'))


def attribute_of_no_number(r):
    r.say(b"Attributes { v { Int32 n nothing; } }")


# ---- DAP2 data

def longer(r):
    r.say(r.body + bytes(4096))


def endless_values(r):
    return r.stream(r.body, b"\x3f\x80\0\0" * 16384)


def endless_values_told_short(r):
    """As many as were declared, and the connection goes on with what nobody asked for."""
    return r.stream(r.body[: r.begins + 8], b"\x3f\x80\0\0" * 16384)


def other_count(r):
    r.say(r.values(0, np.array([N - 1, N - 1], ">u4").tobytes()))


def two_counts(r):
    r.say(r.values(4, np.array([N + 1], ">u4").tobytes()))


def huge_count(r):
    r.say(r.values(0, b"\xff" * 8))


def zero_count(r):
    r.say(r.values(0, bytes(8)))


def other_type(r):
    r.say(r.body.replace(b"Float32 v", b"Int32 v"))


def other_shape(r):
    r.say(r.body.replace(b"n = %d" % N, b"n = %d" % (N - 1)))


def more_dimensions(r):
    r.say(r.body.replace(b"[n = %d]" % N, b"[n = %d][2]" % (N // 2)))


def other_name(r):
    r.say(r.body.replace(b"Float32 v[", b"Float32 x["))


def no_values_line(r):
    r.say(r.body.replace(b"\nData:\n", b"\n\n\n\n\n\n\n"))


def error_in_values(r):
    r.say(r.body[: len(r.body) // 2] + error2(MESSAGE, 500))


def two_of_it(r):
    r.say(r.body + r.body)


# ---- DAP4 data

def pieces(r):
    return list(wire4.chunks(r.body))


def joined(parts):
    return b"".join(wire4.chunk(flags, data) for flags, data in parts)


def changed(r, change):
    """The values, by chunks as before, with some bytes changed."""
    first, *rest = pieces(r)
    data = bytearray(b"".join(data for _, data in rest))
    change(data)
    out, at = [first], 0
    for flags, old in rest:
        out.append((flags, bytes(data[at : at + len(old)])))
        at += len(old)
    r.say(joined(out))


def wrong_checksum(r):
    changed(r, lambda data: data.__setitem__(len(data) - 1, data[-1] ^ 1))


def one_bit(r):
    changed(r, lambda data: data.__setitem__(len(data) // 2, data[len(data) // 2] ^ 16))


def error_chunk(r):
    first, *rest = pieces(r)
    r.say(joined([first, *rest[: len(rest) // 2], (wire4.ERROR | wire4.LAST | wire4.LITTLE, error4(MESSAGE, 500))]))


def error_chunk_first(r):
    r.say(joined([(wire4.ERROR | wire4.LAST | wire4.LITTLE, error4(MESSAGE, 500))]))


def no_last_chunk(r):
    r.say(joined([(flags & ~wire4.LAST, data) for flags, data in pieces(r)]))


def last_too_early(r):
    parts = pieces(r)
    r.say(joined([(flags | (wire4.LAST if n == 1 else 0), data) for n, (flags, data) in enumerate(parts)]))


def chunk_says_more(r):
    *rest, (flags, data) = pieces(r)
    r.say(joined(rest) + (flags << 24 | 0xFFFFFF).to_bytes(4, "big") + data)


def chunk_says_less(r):
    first, (flags, data), *rest = pieces(r)
    r.say(joined([first]) + (flags << 24 | len(data) - 9).to_bytes(4, "big") + data + joined(rest))


def empty_chunks_for_ever(r):
    first, *_ = pieces(r)
    return r.stream(joined([first]), wire4.chunk(wire4.LITTLE, b"") * 4096)


def chunks_for_ever(r):
    first, *_ = pieces(r)
    return r.stream(joined([first]), wire4.chunk(wire4.LITTLE, b"\0\0\x80\x3f" * 4096))


def more_behind_the_last(r):
    r.say(r.body + wire4.chunk(wire4.LAST | wire4.LITTLE, bytes(4096)))


def values_too_many(r):
    *rest, (flags, data) = pieces(r)
    r.say(joined([*rest, (flags, data + bytes(64))]))


def dmr_says_more(r):
    (flags, data), *rest = pieces(r)
    r.say((flags << 24 | 0xFFFFFF).to_bytes(4, "big") + data + joined(rest))


def other_dmr(r):
    (flags, data), *rest = pieces(r)
    r.say(joined([(flags, data.replace(b"Float32", b"Float64")), *rest]))


def other_size(r):
    (flags, data), *rest = pieces(r)
    r.say(joined([(flags, data.replace(b'size="%d"' % N, b'size="%d"' % (N // 2))), *rest]))


def no_dmr(r):
    r.say(joined(pieces(r)[1:]))


def other_order_said(r):
    first, *rest = pieces(r)
    r.say(joined([(first[0] ^ wire4.LITTLE, first[1]), *[(flags ^ wire4.LITTLE, data) for flags, data in rest]]))


def unknown_flags(r):
    r.say(joined([(flags | 0xF0, data) for flags, data in pieces(r)]))


def row(version, where, act, codes, only_open=False, message=""):
    return version, where if isinstance(where, tuple) else (where,), act, codes, only_open, message


DMR = ("dmr", "dmr.xml")
# What DAP2 and the reference open without attributes.
LENIENT = (page, error_document, error_with_its_status)
OF = {"dds": (2, "dds", DDS), "das": (2, "das", DAS), "dods": (2, "dods", DATA), "dmr": (4, DMR, DDS), "dap": (4, "dap", DATA)}
BREAKS = []
for version, where, code in OF.values():
    # DAP4 calls a request that failed an error of the server, and what is no text at all data.
    codes = (code, *NET) if version == 2 else (code, SERVICE, DATA, DDS, *NET)
    BREAKS += [row(version, where, act, codes) for act in (half, half_of_what_was_declared, garbage, zipped, to_a_file, to_itself)]
    # That something else came is the document's code, or that of a server with an error of its own.
    BREAKS += [row(version, where, act, (code, SERVICE, *NET), where == "das" and act in LENIENT) for act in (nothing, page)]
    BREAKS += [row(version, where, act, (SERVICE, code), where == "das", MESSAGE) for act in (error_document, error_with_its_status)]
    BREAKS += [row(version, where, error_page, (SERVICE, code, *NET)), row(version, where, dripping, codes), row(version, where, silence, codes)]
for version, where, code in (OF["dds"], OF["das"], OF["dmr"]):
    BREAKS += [row(version, where, act, (code, *LIMITS)) for act in (endless, one_endless_string, deep)]
for version, where, code in (OF["dds"], OF["dmr"]):
    BREAKS += [row(version, where, long_name, (code, *LIMITS)), row(version, where, negative_dimension, (code,)), row(version, where, no_such_type, (code,)),
               row(version, where, huge_dimensions, (code, *LIMITS), only_open=True)]  # fmt: skip
BREAKS += [row(2, "dds", a_thousand_dimensions, (DDS, *LIMITS)), row(2, "das", attribute_of_no_number, (DAS,), only_open=True)]
BREAKS += [row(4, DMR, act, (DDS, *LIMITS)) for act in (deep_structures, million_of_entities, entity_of_a_file, dimension_of_nobody)]
BREAKS += [row(2, "dods", act, (DATA, *NET)) for act in (longer, endless_values, endless_values_told_short, other_count, two_counts, huge_count, zero_count, other_type, other_shape,
                                                        more_dimensions, other_name, no_values_line, two_of_it)]  # fmt: skip
BREAKS += [row(2, "dods", error_in_values, (SERVICE, DATA), message=MESSAGE)]
BREAKS += [row(4, "dap", act, (DATA, DDS, SERVICE, *NET)) for act in (wrong_checksum, one_bit, no_last_chunk, last_too_early, chunk_says_more, chunk_says_less, empty_chunks_for_ever, chunks_for_ever,
                                                       more_behind_the_last, values_too_many, dmr_says_more, other_dmr, other_size, no_dmr, other_order_said, unknown_flags)]  # fmt: skip
BREAKS += [row(4, "dap", act, (SERVICE, DATA), message=MESSAGE) for act in (error_chunk, error_chunk_first)]


# What takes as long as a client waits.
SLOW = (silence, dripping, endless, one_endless_string, endless_values, endless_values_told_short, empty_chunks_for_ever, chunks_for_ever)


# ---- What is to be got over

def busy_once(r):
    if r.number == 1:
        r.say(b"", "503 Service Unavailable", "Retry-After: 1")
    else:
        r.say(r.body)


def broken_once(r):
    return False if r.number == 1 else r.say(r.body)


def without_length(r):
    r.connection.sendall(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + r.body)
    return False


def in_chunks(r):
    r.connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"".join(r.chunk(r.body[at : at + 1000]) for at in range(0, len(r.body), 1000)) + b"0\r\n\r\n")


def line_of_carriage_return(r):
    r.say(r.body.replace(b"\nData:\n", b"\nData:\r\n"))


def spaces(r):
    r.say(b"  " + r.body.replace(b"{", b"\n {\r\n").replace(b";", b" ;\t"))


def many_small_chunks(r):
    first, *rest = pieces(r)
    data, flags = b"".join(data for _, data in rest), rest[0][0] & ~wire4.LAST
    parts = [(flags, data[at : at + 777]) for at in range(0, len(data), 777)]
    r.say(joined([first, *parts, (flags | wire4.LAST, b"")]))


HOLDS = [(version, where if isinstance(where, tuple) else (where,), act) for version, where in ((2, ("dds", "das", "dods")), (4, ("dmr", "dmr.xml", "dap")))
         for act in (busy_once, broken_once, without_length, in_chunks)]  # fmt: skip
HOLDS += [(2, ("dods",), line_of_carriage_return), (2, ("dds",), spaces), (4, ("dap",), many_small_chunks)]

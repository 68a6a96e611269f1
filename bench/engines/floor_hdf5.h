/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The least that a reader by hand has to know of HDF5: one dataset found by its name, where its values are, and the sum
 * over metadata. For files as netCDF-C 4.9 makes them (superblock 2, object headers 2, layout 3); anything else ends the
 * program. HDF5 File Format Specification 3.0, the sections by the names in the comments. */
#ifndef FLOOR_HDF5_H
#define FLOOR_HDF5_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_RANK = 3, HEADER = 8192, NODE = 4096, MOST_CHUNKS = 1 << 16 };
#define UNDEFINED UINT64_MAX

static _Noreturn void stop(const char *why)
{
    fprintf(stderr, "floors: %s\n", why);
    exit(1);
}

static uint64_t number(const uint8_t *p, int bytes)
{
    uint64_t n = 0;
    for (int i = bytes; i-- > 0;) n = n << 8 | p[i];
    return n;
}

static uint32_t word(const uint8_t *p)
{
    uint32_t w;
    memcpy(&w, p, 4);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    w = __builtin_bswap32(w);
#endif
    return w;
}

/* How many bytes hold numbers up to `most`. */
static int width(uint64_t most)
{
    int bytes = 1;
    while (most >>= 8) bytes++;
    return bytes;
}

static size_t read_some(int fd, void *to, size_t most, uint64_t at)
{
    ssize_t got = pread(fd, to, most, (off_t)at);
    if (got < 0) stop("pread failed");
    return (size_t)got;
}

static void read_all(int fd, void *to, size_t n, uint64_t at)
{
    if (read_some(fd, to, n, at) != n) stop("the file is too short");
}

/* "Jenkins' lookup3": the sum of all newer structures. */
#define ROTATED(x, k) ((x) << (k) | (x) >> (32 - (k)))
static uint32_t lookup3(const uint8_t *p, size_t n)
{
    uint32_t a = 0xdeadbeefu + (uint32_t)n, b = a, c = a;
    uint8_t last[12] = {0};
    if (n == 0) return c;
    for (; n > 12; n -= 12, p += 12) {
        a += word(p), b += word(p + 4), c += word(p + 8);
        a -= c, a ^= ROTATED(c, 4), c += b;
        b -= a, b ^= ROTATED(a, 6), a += c;
        c -= b, c ^= ROTATED(b, 8), b += a;
        a -= c, a ^= ROTATED(c, 16), c += b;
        b -= a, b ^= ROTATED(a, 19), a += c;
        c -= b, c ^= ROTATED(b, 4), b += a;
    }
    memcpy(last, p, n);
    a += word(last), b += word(last + 4), c += word(last + 8);
    c ^= b, c -= ROTATED(b, 14);
    a ^= c, a -= ROTATED(c, 11);
    b ^= a, b -= ROTATED(a, 25);
    c ^= b, c -= ROTATED(b, 16);
    a ^= c, a -= ROTATED(c, 4);
    b ^= a, b -= ROTATED(a, 14);
    c ^= b, c -= ROTATED(b, 24);
    return c;
}

static void must_be(const uint8_t *p, const char *signature, size_t n)
{
    if (memcmp(p, signature, 4) != 0) stop("a structure is not where it must be");
    if (word(p + n - 4) != lookup3(p, n - 4)) stop("a sum is wrong");
}

/* ---- object headers ("Version 2 Data Object Header Prefix") ----------------------------------- */

/* The bytes of a header with its sum, and where its messages begin; `have` are there, 0 if it needs more. */
static size_t header_size(const uint8_t *p, size_t have, size_t *first)
{
    if (have < 16 || memcmp(p, "OHDR", 4) != 0 || p[4] != 2) return 0;
    int flags = p[5], of_size = 1 << (flags & 3);
    size_t at = 6 + (flags & 0x20 ? 16u : 0u) + (flags & 0x10 ? 4u : 0u);
    *first = at + (size_t)of_size;
    if (have < *first) return 0;
    uint64_t n = number(p + at, of_size);
    return n < HEADER ? *first + (size_t)n + 4 : 0;
}

/* Shows `visit` the messages of a header until it says that it has what it wants. */
typedef int (*Visit)(void *wanted, int type, const uint8_t *message, size_t size);
static void messages(int fd, uint64_t at, Visit visit, void *wanted)
{
    uint8_t bytes[HEADER + 64], *p = bytes;
    size_t first, have = read_some(fd, bytes, 1024, at), n = header_size(bytes, have, &first);
    if (n > have) read_all(fd, bytes, n, at);
    if (n == 0) stop("not an object header");
    must_be(bytes, "OHDR", n);
    size_t of_message = bytes[5] & 4 ? 6 : 4;
    for (;;) {
        uint64_t more = 0, more_size = 0;
        for (size_t i = first; i + of_message <= n - 4;) {
            size_t size = (size_t)number(p + i + 1, 2);
            const uint8_t *message = p + i + of_message;
            if (i + of_message + size > n - 4) stop("a message is too long");
            if (p[i] == 0x10) more = number(message, 8), more_size = number(message + 8, 8);
            else if (visit(wanted, p[i], message, size)) return;
            i += of_message + size;
        }
        if (!more) return;
        if (more_size < 8 || more_size > sizeof bytes) stop("a continuation is too long");
        read_all(fd, p, more_size, more);
        must_be(p, "OCHK", more_size);
        first = 4, n = more_size;
    }
}

/* ---- links by name ------------------------------------------------------------------------------ */

typedef struct { const char *name; uint64_t object, heap, index; } Link;

/* "Link Message": where its object is, 0 if it has another name. */
static uint64_t link_object(const uint8_t *p, size_t size, const char *name)
{
    int flags = p[1], of_length = 1 << (flags & 3);
    size_t at = 2 + (flags & 8 ? 1u : 0u) + (flags & 4 ? 8u : 0u) + (flags & 0x10 ? 1u : 0u);
    if (size < at + (size_t)of_length) stop("a link is too short");
    size_t n = (size_t)number(p + at, of_length);
    at += (size_t)of_length;
    if (n > size || size - n < at + 8) stop("a link is too short");
    return n == strlen(name) && memcmp(p + at, name, n) == 0 ? number(p + at + n, 8) : 0;
}

static int visit_links(void *wanted, int type, const uint8_t *p, size_t size)
{
    Link *link = wanted;
    if (type == 2 && size >= 18) { /* "Link Info Message" */
        p += 2 + (p[1] & 1 ? 8 : 0);
        link->heap = number(p, 8), link->index = number(p + 8, 8);
        return link->heap != UNDEFINED;
    }
    if (type == 6) link->object = link_object(p, size, link->name);
    return link->object != 0;
}

/* "Fractal Heap": a link out of it, with a root block of direct blocks. */
static uint64_t heap_link(int fd, const Link *link, const uint8_t *id)
{
    uint8_t head[146], block[NODE], object[512];
    read_all(fd, head, sizeof head, link->heap);
    must_be(head, "FRHP", sizeof head);
    int of_offset = (int)(number(head + 128, 2) + 7) / 8, of_size = width(number(head + 120, 8) - 1);
    uint64_t offset = number(id + 1, of_offset), size = number(id + 1 + of_offset, of_size);
    uint64_t n = number(head + 110, 2), bytes = number(head + 112, 8), at = number(head + 132, 8), rows = number(head + 140, 2);
    if (size > sizeof object) stop("a link is too long");
    if (rows > 0) {
        size_t first = 13 + (size_t)of_offset, all = first + 8 * n * rows + 4;
        if (all > sizeof block) stop("the heap is too large");
        read_all(fd, block, all, at);
        must_be(block, "FHIB", all);
        uint64_t child = 0;
        for (uint64_t row = 0; row < rows; row++) {
            if (row > 1) bytes *= 2;
            if (offset < n * bytes) {
                if (bytes > number(head + 120, 8)) stop("the heap is too large");
                child = 1 + row * n + offset / bytes, offset %= bytes;
                break;
            }
            offset -= n * bytes;
        }
        if (!child) stop("no such block");
        at = number(block + first + 8 * (child - 1), 8);
    }
    read_all(fd, object, size, at + offset);
    return link_object(object, size, link->name);
}

/* "Version 2 B-trees", type 5: by the sums of names. Names of one sum may lie in several nodes: not looked for. */
static void look_up(int fd, Link *link)
{
    uint8_t head[38], node[NODE];
    read_all(fd, head, sizeof head, link->index);
    must_be(head, "BTHD", sizeof head);
    size_t node_size = number(head + 6, 4), of_record = number(head + 10, 2), depth = number(head + 12, 2);
    uint64_t at = number(head + 16, 8), n = number(head + 24, 2);
    if (head[5] != 5 || node_size > NODE || depth > 3) stop("an index of another kind");
    /* Most records of a node, and of all below it, at each depth: how wide numbers are depends on them. */
    uint64_t most[4] = {(node_size - 10) / of_record}, all[4] = {most[0]};
    size_t pointer[4] = {0};
    for (size_t d = 1; d <= depth; d++) {
        pointer[d] = 8 + (size_t)width(most[d - 1]) + (d > 1 ? (size_t)width(all[d - 1]) : 0);
        most[d] = (node_size - 10 - pointer[d]) / (of_record + pointer[d]);
        all[d] = (most[d] + 1) * all[d - 1] + most[d];
    }
    uint32_t sum = lookup3((const uint8_t *)link->name, strlen(link->name));
    for (;;) {
        if (n > most[depth]) stop("a node is too full");
        size_t pointers = 6 + n * of_record, size = pointers + (depth ? (n + 1) * pointer[depth] : 0) + 4;
        read_all(fd, node, size, at);
        must_be(node, depth ? "BTIN" : "BTLF", size);
        size_t low = 0, high = n;
        while (low < high) {
            size_t middle = (low + high) / 2;
            if (word(node + 6 + middle * of_record) < sum) low = middle + 1;
            else high = middle;
        }
        if (low < n && word(node + 6 + low * of_record) == sum) {
            link->object = heap_link(fd, link, node + 6 + low * of_record + 4);
            return;
        }
        if (!depth) return;
        const uint8_t *p = node + pointers + low * pointer[depth];
        at = number(p, 8), n = number(p + 8, width(most[depth - 1]));
        depth--;
    }
}

/* The object header of what has a name in the root group. */
static uint64_t object_of(int fd, const char *name)
{
    uint8_t head[48];
    Link link = {name, 0, UNDEFINED, UNDEFINED};
    read_all(fd, head, sizeof head, 0);
    if (memcmp(head, "\211HDF\r\n\032\n\2\10\10", 11) != 0) stop("not a file of superblock 2");
    if (word(head + 44) != lookup3(head, 44)) stop("a sum is wrong");
    messages(fd, number(head + 36, 8), visit_links, &link);
    if (!link.object && link.index != UNDEFINED) look_up(fd, &link);
    if (!link.object) stop("no variable of this name");
    return link.object;
}

/* ---- where values are ("Data Layout Message", version 3) ---------------------------------------- */

typedef struct {
    uint64_t at; /* of values in one run, or of the index of chunks */
    int rank;    /* of chunks; 0: one run */
    size_t chunk[MOST_RANK], shape[MOST_RANK], grid[MOST_RANK], n_chunks;
    uint64_t *chunks; /* where they are, 0: nowhere */
} Layout;

static int visit_layout(void *wanted, int type, const uint8_t *p, size_t size)
{
    Layout *layout = wanted;
    if (type == 1 && size >= 4) { /* "Dataspace Message", version 2 */
        for (int d = 0; d < p[1] && d < MOST_RANK; d++) layout->shape[d] = number(p + 4 + 8 * d, 8);
        return layout->at != 0;
    }
    if (type != 8) return 0;
    if (p[0] != 3 || (p[1] != 1 && p[1] != 2)) stop("a layout of another kind");
    if (p[1] == 1) {
        layout->at = number(p + 2, 8);
    } else {
        layout->rank = p[2] - 1, layout->at = number(p + 3, 8);
        if (layout->rank > MOST_RANK) stop("too many dimensions");
        for (int d = 0; d < layout->rank; d++) layout->chunk[d] = number(p + 11 + 4 * d, 4);
    }
    return layout->shape[0] != 0;
}

/* "Version 1 B-trees" of chunks. */
static void index_node(int fd, Layout *layout, uint64_t at)
{
    uint8_t node[8192];
    size_t of_key = 8 + 8 * ((size_t)layout->rank + 1), of_entry = of_key + 8;
    read_some(fd, node, sizeof node, at);
    size_t n = number(node + 6, 2);
    if (memcmp(node, "TREE\1", 5) != 0 || 24 + n * of_entry > sizeof node) stop("not an index of chunks");
    for (size_t i = 0; i < n; i++) {
        const uint8_t *key = node + 24 + i * of_entry;
        uint64_t child = number(key + of_key, 8);
        if (node[5] > 0) {
            index_node(fd, layout, child);
            continue;
        }
        size_t k = 0;
        for (int d = 0; d < layout->rank; d++) k = k * layout->grid[d] + number(key + 8 + 8 * d, 8) / layout->chunk[d];
        if (k >= layout->n_chunks) stop("a chunk outside of the array");
        layout->chunks[k] = child;
    }
}

static Layout layout_of(int fd, const char *name)
{
    Layout layout = {0};
    messages(fd, object_of(fd, name), visit_layout, &layout);
    if (!layout.at) stop("no layout");
    if (layout.rank == 0) return layout;
    layout.n_chunks = 1;
    for (int d = 0; d < layout.rank; d++) {
        layout.grid[d] = (layout.shape[d] + layout.chunk[d] - 1) / layout.chunk[d];
        layout.n_chunks *= layout.grid[d];
    }
    if (layout.n_chunks > MOST_CHUNKS) stop("too many chunks");
    layout.chunks = calloc(layout.n_chunks, sizeof *layout.chunks);
    if (!layout.chunks) stop("no memory");
    index_node(fd, &layout, layout.at);
    return layout;
}

#endif

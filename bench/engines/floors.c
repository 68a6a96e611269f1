/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* floors: the work of each row of rows.c by hand, with no library between: what a program written for this one file could
 * do. Same options, files, values and digests; what is written is a file that netCDF-C reads. Each call is a call, with its
 * bounds checked; nothing is kept for errors, other formats, other threads or the next program.
 */
#define _POSIX_C_SOURCE 200809L
#define _FILE_OFFSET_BITS 64
#include "rows.h"
#include "floor_classic.h"
#include "floor_hdf5.h"
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>

enum { WINDOW = 256 * 1024, OUTSIDE = 1 };
#define CALL __attribute__((noinline)) static int

static void must(int ok, const char *what)
{
    if (ok) return;
    fprintf(stderr, "floors: %s: %s\n", what, strerror(errno));
    exit(1);
}

#define DO(call) must((call) == 0, #call)

static int open_file(const char *path, int flags)
{
    int fd = open(path, flags | O_CLOEXEC, 0666);
    must(fd >= 0, path);
    return fd;
}

static void write_all(int fd, const void *bytes, size_t n, uint64_t at)
{
    must(pwrite(fd, bytes, n, (off_t)at) == (ssize_t)n, "pwrite");
}

/* ---- one variable of a classic file: a window of the file in memory, each value turned round --------- */

/* Where values come to lie, of one thread. What is put goes over all of the window: nothing has to be read before. */
typedef struct {
    int fd, writes;
    uint64_t begin, n;   /* of the variable: place in the file, values */
    uint64_t first, end; /* values in the window */
    uint64_t window[WINDOW / 8];
} Line;

static Line *line;
static double *values;
static size_t *places;

static void flush_line(Line *l)
{
    if (l->end > l->first) write_all(l->fd, l->window, (l->end - l->first) * 8, l->begin + 8 * l->first);
    l->first = l->end;
}

static void move_window(Line *l, uint64_t to)
{
    uint64_t most = WINDOW / 8;
    if (l->writes) flush_line(l), l->first = l->end = to;
    else {
        if (most > l->n - to) most = l->n - to;
        read_all(l->fd, l->window, most * 8, l->begin + 8 * to);
        l->first = to, l->end = to + most;
    }
}

CALL put_line(Line *l, uint64_t at, uint64_t count, const double *from)
{
    if (at > l->n || count > l->n - at) return OUTSIDE;
    while (count > 0) {
        if (at != l->end || l->end - l->first == WINDOW / 8) move_window(l, at);
        uint64_t room = WINDOW / 8 - (l->end - l->first), some = count < room ? count : room;
        uint64_t *to = l->window + (l->end - l->first);
        for (uint64_t i = 0; i < some; i++) {
            uint64_t bits;
            memcpy(&bits, from + i, 8);
            to[i] = swapped(bits);
        }
        l->end += some, at += some, from += some, count -= some;
    }
    return 0;
}

CALL get_line(Line *l, uint64_t at, uint64_t count, double *to)
{
    if (at > l->n || count > l->n - at) return OUTSIDE;
    while (count > 0) {
        if (at < l->first || at >= l->end) move_window(l, at);
        uint64_t have = l->end - at, some = count < have ? count : have;
        const uint64_t *from = l->window + (at - l->first);
        for (uint64_t i = 0; i < some; i++) {
            uint64_t bits = swapped(from[i]);
            memcpy(to + i, &bits, 8);
        }
        at += some, to += some, count -= some;
    }
    return 0;
}

/* One value is not a loop. */
CALL put_one(Line *l, const size_t *at, const double *from)
{
    uint64_t i = l->end - l->first, bits;
    if (*at >= l->n) return OUTSIDE;
    if (*at != l->end || i == WINDOW / 8) {
        move_window(l, *at);
        i = 0;
    }
    memcpy(&bits, from, 8);
    l->window[i] = swapped(bits);
    l->end++;
    return 0;
}

CALL get_one(Line *l, const size_t *at, double *to)
{
    uint64_t bits;
    if (*at >= l->n) return OUTSIDE;
    if (*at - l->first >= l->end - l->first) move_window(l, *at);
    bits = swapped(l->window[*at - l->first]);
    memcpy(to, &bits, 8);
    return 0;
}

static void open_line(int writes, size_t n_values)
{
    int fd = open_file(the_file, writes ? O_RDWR : O_RDONLY);
    Header h = take_header(fd);
    const Var *var = NULL;
    for (uint32_t v = 0; v < h.n_vars; v++)
        if (h.vars[v].name_length == strlen(LINE) && memcmp(h.vars[v].name, LINE, strlen(LINE)) == 0) var = &h.vars[v];
    if (!var || var->rank != 1 || h.dims[h.ids[var->first_dim]].length < n_values) stop("not the file that is meant");
    if (!line) line = touched(2 * sizeof *line);
    for (int k = 0; k < 2; k++) {
        line[k].fd = fd, line[k].writes = writes, line[k].begin = var->begin;
        line[k].n = h.dims[h.ids[var->first_dim]].length, line[k].first = line[k].end = 0;
    }
    drop_header(&h);
    if (!values) values = values_of(n_values);
    if (!writes) memset(values, 0, n_values * sizeof *values);
    else for (size_t i = 0; i < n_values; i++) values[i] = -value_of(i);
}

static void prepare_put1(size_t calls) { open_line(1, calls); }
static void prepare_get1(size_t calls) { open_line(0, calls); }
static void prepare_put10(size_t calls) { open_line(1, calls * SOME); }
static void prepare_get10(size_t calls) { open_line(0, calls * SOME); }

static void put1(size_t calls)
{
    for (size_t i = 0; i < calls; i++) DO(put_one(line, &i, &values[i]));
    flush_line(line);
}

static void get1(size_t calls)
{
    for (size_t i = 0; i < calls; i++) DO(get_one(line, &i, &values[i]));
}

static void put10(size_t calls)
{
    for (size_t i = 0; i < calls * SOME; i += SOME) DO(put_line(line, i, SOME, &values[i]));
    flush_line(line);
}

static void get10(size_t calls)
{
    for (size_t i = 0; i < calls * SOME; i += SOME) DO(get_line(line, i, SOME, &values[i]));
}

static uint64_t closed(size_t calls)
{
    (void)calls;
    close(line->fd);
    return 0;
}

static uint64_t closed_got1(size_t calls)
{
    closed(calls);
    return digest_bytes(DIGEST_START, values, calls * sizeof *values);
}

static uint64_t closed_got10(size_t calls) { return closed_got1(calls * SOME); }

/* ---- halves of it --------------------------------------------------------------------------------- */

typedef struct { size_t first, end, piece; Line *line; } Part;

static void *move_part(void *argument)
{
    const Part *part = argument;
    for (size_t i = part->first; i < part->end; i += part->piece) {
        size_t n = part->end - i < part->piece ? part->end - i : part->piece;
        if (part->line->writes) DO(put_line(part->line, i, n, &values[i]));
        else DO(get_line(part->line, i, n, &values[i]));
    }
    if (part->line->writes) flush_line(part->line);
    return NULL;
}

static void halves(size_t n, size_t piece, int n_threads)
{
    Part parts[2] = {{0, n / 2, piece, &line[0]}, {n / 2, n, piece, &line[1]}};
    pthread_t thread;
    if (n_threads == 2) must(pthread_create(&thread, NULL, move_part, &parts[1]) == 0, "pthread_create");
    move_part(&parts[0]);
    if (n_threads == 2) pthread_join(thread, NULL);
    else move_part(&parts[1]);
}

static void prepare_put_halves(size_t calls) { open_line(1, calls * PIECE); }
static void prepare_get_halves(size_t calls) { open_line(0, calls * PIECE); }
static void halves1(size_t calls) { halves(calls * PIECE, PIECE, 1); }
static void halves2(size_t calls) { halves(calls * PIECE, PIECE, 2); }
static void one_halves1(size_t calls) { halves(calls, 1, 1); }
static void one_halves2(size_t calls) { halves(calls, 1, 2); }
static uint64_t closed_halves(size_t calls) { return closed_got1(calls * PIECE); }

/* ---- inquiries: out of arrays --------------------------------------------------------------------- */

static Header asked;
static uint64_t told;

CALL ask_dimlen(const Header *h, uint32_t dim, size_t *length)
{
    if (dim >= h->n_dims) return OUTSIDE;
    *length = h->dims[dim].length;
    return 0;
}

CALL ask_var(const Header *h, uint32_t id, char *name, int *type, int *rank, int *dims, int *n_atts)
{
    if (id >= h->n_vars) return OUTSIDE;
    const Var *var = &h->vars[id];
    memcpy(name, var->name, var->name_length);
    name[var->name_length] = '\0';
    memcpy(dims, h->ids + var->first_dim, var->rank * sizeof *dims);
    *type = (int)var->type, *rank = (int)var->rank, *n_atts = (int)var->n_atts;
    return 0;
}

CALL ask_att(const Header *h, uint32_t id, const char *name, void *to)
{
    if (id >= h->n_vars) return OUTSIDE;
    size_t length = strlen(name);
    const Att *att = h->atts + h->vars[id].first_att, *end = att + h->vars[id].n_atts;
    for (; att < end; att++) {
        if (att->name_length != length || memcmp(att->name, name, length) != 0) continue;
        memcpy(to, att->values, att->n * 8);
        return 0;
    }
    return OUTSIDE;
}

static void prepare_inquiries(size_t calls)
{
    (void)calls;
    int fd = open_file(the_file, O_RDONLY);
    told = 0;
    asked = take_header(fd);
    close(fd);
}

static void dimlen(size_t calls)
{
    for (size_t i = 0; i < calls; i++) {
        size_t length;
        DO(ask_dimlen(&asked, (uint32_t)(i % DIMS), &length));
        told += length * (i + 1);
    }
}

static void var(size_t calls)
{
    for (size_t i = 0; i < calls; i++) {
        char name[NC_MAX_NAME + 1];
        int type, rank, dims[NC_MAX_VAR_DIMS], n_atts;
        DO(ask_var(&asked, (uint32_t)(i % HEADER_VARS), name, &type, &rank, dims, &n_atts));
        told += (uint64_t)(name[16] + type + rank + dims[2] + n_atts) * (i + 1);
    }
}

/* Of a file of netCDF-4 all attributes are in memory once they were read, with values in the machine's order: as those of
 * the header in which the same was defined, turned round. */
static void prepare_att4(size_t calls)
{
    prepare_inquiries(calls);
    for (uint32_t a = 0; a < asked.n_atts; a++) {
        Att *att = &asked.atts[a];
        for (uint32_t i = 0; att->type == NC_DOUBLE && i < att->n; i++) {
            uint8_t *at = asked.bytes + (att->values - asked.bytes) + 8 * i;
            uint64_t bits;
            memcpy(&bits, at, 8);
            bits = swapped(bits);
            memcpy(at, &bits, 8);
        }
    }
}

static void att4(size_t calls)
{
    for (size_t i = 0; i < calls; i++) {
        double range[2];
        DO(ask_att(&asked, (uint32_t)(i % HEADER_VARS), ATTRIBUTE, range));
        told += (uint64_t)(range[0] + 3 * range[1]) * (i + 1);
    }
}

static uint64_t closed_told(size_t calls)
{
    (void)calls;
    drop_header(&asked);
    return told;
}

/* ---- one element in chunks ------------------------------------------------------------------------ */

static Layout layout;
static int chunks_fd;
/* Chunks that were put into, and the one that is in hand: where it begins, and its values. */
static double **memory, *here;
static size_t hand[RANK];

/* The chunk of an element, by number; `within` is the element's place in it. */
static size_t chunk_of(const size_t *at, size_t *within)
{
    size_t chunk = 0, place = 0;
    for (int d = 0; d < RANK; d++) {
        size_t k = (uint32_t)at[d] / (uint32_t)layout.chunk[d];
        chunk = chunk * layout.grid[d] + k;
        place = place * layout.chunk[d] + (at[d] - k * layout.chunk[d]);
    }
    *within = place;
    return chunk;
}

CALL put_chunk(const size_t *at, double value)
{
    if (at[0] >= layout.shape[0] || at[1] >= layout.shape[1] || at[2] >= layout.shape[2]) return OUTSIDE;
    if (here && at[0] - hand[0] < layout.chunk[0] && at[1] - hand[1] < layout.chunk[1] && at[2] - hand[2] < layout.chunk[2]) {
        here[((at[0] - hand[0]) * layout.chunk[1] + (at[1] - hand[1])) * layout.chunk[2] + (at[2] - hand[2])] = value;
        return 0;
    }
    size_t within, k = chunk_of(at, &within);
    if (!memory[k]) {
        size_t n = layout.chunk[0] * layout.chunk[1] * layout.chunk[2];
        memory[k] = array(n, sizeof(double));
        for (size_t i = 0; i < n; i++) memory[k][i] = NC_FILL_DOUBLE;
    }
    here = memory[k];
    for (int d = 0; d < RANK; d++) hand[d] = at[d] - at[d] % layout.chunk[d];
    here[within] = value;
    return 0;
}

static int ascending(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Copies what lies at [from, end). */
static void copy_range(int like, uint64_t from, uint64_t end)
{
    uint8_t bytes[65536];
    while (from < end) {
        size_t n = end - from < sizeof bytes ? (size_t)(end - from) : sizeof bytes;
        read_all(like, bytes, n, from);
        write_all(chunks_fd, bytes, n, from);
        from += n;
    }
}

/* A copy of what the reference left, with holes where chunks are. */
static void prepare_put_chunks(size_t calls, int anywhere)
{
    int like = open_file(the_like, O_RDONLY);
    if (!values) {
        layout = layout_of(like, CHUNKED);
        if (layout.rank != RANK) stop("not the file that is meant");
        memory = array(layout.n_chunks, sizeof *memory);
        values = values_of(calls), places = places_of(calls, layout.shape, anywhere);
    }
    memset(memory, 0, layout.n_chunks * sizeof *memory);
    here = NULL;
    chunks_fd = open_file(the_file, O_RDWR | O_CREAT | O_TRUNC);
    uint64_t *sorted = array(layout.n_chunks, sizeof *sorted), at = 0;
    memcpy(sorted, layout.chunks, layout.n_chunks * sizeof *sorted);
    qsort(sorted, layout.n_chunks, sizeof *sorted, ascending);
    for (size_t k = 0; k < layout.n_chunks; k++) {
        if (!sorted[k]) continue;
        copy_range(like, at, sorted[k]);
        at = sorted[k] + 8 * layout.chunk[0] * layout.chunk[1] * layout.chunk[2];
    }
    copy_range(like, at, (uint64_t)lseek(like, 0, SEEK_END));
    free(sorted);
    close(like);
}

static void prepare_in_order(size_t calls) { prepare_put_chunks(calls, 0); }
static void prepare_at_random(size_t calls) { prepare_put_chunks(calls, 1); }

static void put_chunks(size_t calls)
{
    size_t chunk_bytes = 8 * layout.chunk[0] * layout.chunk[1] * layout.chunk[2];
    for (size_t i = 0; i < calls; i++) DO(put_chunk(&places[i * RANK], values[i]));
    for (size_t k = 0; k < layout.n_chunks; k++) {
        if (!memory[k]) continue;
        if (!layout.chunks[k]) stop("a chunk that the reference has not");
        write_all(chunks_fd, memory[k], chunk_bytes, layout.chunks[k]);
        free(memory[k]);
    }
    close(chunks_fd);
}

CALL get_chunk(const size_t *at, double *to)
{
    size_t within;
    if (at[0] >= layout.shape[0] || at[1] >= layout.shape[1] || at[2] >= layout.shape[2]) return OUTSIDE;
    uint64_t chunk = layout.chunks[chunk_of(at, &within)];
    if (!chunk) {
        *to = NC_FILL_DOUBLE;
        return 0;
    }
    return pread(chunks_fd, to, 8, (off_t)(chunk + 8 * within)) == 8 ? 0 : OUTSIDE;
}

static void prepare_get_chunks(size_t calls)
{
    chunks_fd = open_file(the_file, O_RDONLY);
    if (!values) {
        layout = layout_of(chunks_fd, CHUNKED);
        if (layout.rank != RANK) stop("not the file that is meant");
        values = values_of(calls), places = places_of(calls, layout.shape, 1);
    }
    memset(values, 0, calls * sizeof *values);
}

static void get_chunks(size_t calls)
{
    for (size_t i = 0; i < calls; i++) DO(get_chunk(&places[i * RANK], &values[i]));
}

static uint64_t closed_chunks(size_t calls)
{
    close(chunks_fd);
    return digest_bytes(DIGEST_START, values, calls * sizeof *values);
}

/* ---- whole files ---------------------------------------------------------------------------------- */

static void nothing(size_t calls) { (void)calls; }

static uint64_t no_digest(size_t calls)
{
    (void)calls;
    return 0;
}

typedef struct { uint8_t bytes[8192]; size_t at; } Buffer;

static uint8_t *room_in(Buffer *b, size_t n)
{
    if (n > sizeof b->bytes - b->at) stop("the header is too long");
    uint8_t *p = b->bytes + b->at;
    b->at += n;
    return p;
}

static void add4(Buffer *b, uint32_t w)
{
    uint32_t bits = swapped4(w);
    memcpy(room_in(b, 4), &bits, 4);
}

static void add8(Buffer *b, uint64_t w)
{
    uint64_t bits = swapped(w);
    memcpy(room_in(b, 8), &bits, 8);
}

static void add_text(Buffer *b, const char *text)
{
    size_t n = strlen(text);
    add4(b, (uint32_t)n);
    uint8_t *to = room_in(b, padded(n));
    memset(to, 0, padded(n));
    memcpy(to, text, n);
}

/* As rows.c defines it: the lengths of dimensions 2, 3 and 4, a variable's values behind those of the one before it. */
static void create_one(void)
{
    enum { SIZE = 2 * 3 * 4 * sizeof(float) };
    Buffer b;
    size_t begins[CREATED_VARS];
    char name[32];
    b.at = 0;
    memcpy(room_in(&b, 4), "CDF\2", 4);
    add4(&b, 0);
    add4(&b, 10), add4(&b, DIMS);
    for (int d = 0; d < DIMS; d++) {
        snprintf(name, sizeof name, "dim%d", d);
        add_text(&b, name);
        add4(&b, (uint32_t)d + 2);
    }
    add8(&b, 0);
    add4(&b, 11), add4(&b, CREATED_VARS);
    for (int v = 0; v < CREATED_VARS; v++) {
        snprintf(name, sizeof name, "variable_%d", v);
        add_text(&b, name);
        add4(&b, DIMS);
        for (uint32_t d = 0; d < DIMS; d++) add4(&b, d);
        add4(&b, 12), add4(&b, CREATED_ATTS);
        for (int a = 0; a < CREATED_ATTS; a++) {
            double value = v + 0.5 * a;
            uint64_t bits;
            snprintf(name, sizeof name, "attribute_%d", a);
            add_text(&b, name);
            if (a % 2 == 0) {
                add4(&b, NC_CHAR);
                add_text(&b, "some text ok");
            } else {
                memcpy(&bits, &value, 8);
                add4(&b, NC_DOUBLE), add4(&b, 1), add8(&b, bits);
            }
        }
        add4(&b, NC_FLOAT), add4(&b, SIZE);
        begins[v] = b.at;
        add8(&b, 0);
    }
    for (size_t v = 0; v < CREATED_VARS; v++) {
        uint64_t begin = swapped(b.at + v * SIZE);
        memcpy(b.bytes + begins[v], &begin, 8);
    }
    int fd = open_file(the_file, O_RDWR | O_CREAT | O_TRUNC);
    write_all(fd, b.bytes, b.at, 0);
    must(ftruncate(fd, (off_t)(b.at + CREATED_VARS * SIZE)) == 0, "ftruncate");
    close(fd);
}

static void create(size_t calls)
{
    for (size_t i = 0; i < calls; i++) create_one();
}

/* A file of netCDF-4: the bytes of the one that the reference left, piece by piece, each object header with the sum over
 * it, and one write. What stands in the headers is not made anew. */
static uint8_t *model;
static size_t model_length;

static void prepare_create4(size_t calls)
{
    (void)calls;
    if (model) return;
    int fd = open_file(the_like, O_RDONLY);
    model_length = (size_t)lseek(fd, 0, SEEK_END);
    model = array(model_length, 1);
    read_all(fd, model, model_length, 0);
    close(fd);
}

static void create4(size_t calls)
{
    for (size_t i = 0; i < calls; i++) {
        uint8_t *bytes = array(model_length, 1);
        size_t at = 0, first;
        while (at < model_length) {
            size_t n = header_size(model + at, model_length - at, &first);
            if (n > 0 && n <= model_length - at) {
                memcpy(bytes + at, model + at, n - 4);
                uint32_t sum = lookup3(bytes + at, n - 4);
                for (int k = 0; k < 4; k++) bytes[at + n - 4 + (size_t)k] = (uint8_t)(sum >> 8 * k);
                at += n;
                continue;
            }
            const uint8_t *next = memchr(model + at + 1, 'O', model_length - at - 1);
            n = next ? (size_t)(next - (model + at)) : model_length - at;
            memcpy(bytes + at, model + at, n);
            at += n;
        }
        int fd = open_file(the_file, O_RDWR | O_CREAT | O_TRUNC);
        write_all(fd, bytes, model_length, 0);
        close(fd);
        free(bytes);
    }
}

static void open_many(size_t calls)
{
    told = 0;
    for (size_t i = 0; i < calls; i++) {
        int fd = open_file(the_file, O_RDONLY);
        Header h = take_header(fd);
        told = h.n_vars;
        drop_header(&h);
        close(fd);
    }
}

static void open_one(size_t calls)
{
    told = 0;
    for (size_t i = 0; i < calls; i++) {
        int fd = open_file(the_file, O_RDONLY);
        Layout one = layout_of(fd, WANTED);
        float value;
        read_all(fd, &value, sizeof value, one.at);
        close(fd);
        told = (uint64_t)value;
    }
}

static uint64_t only_told(size_t calls)
{
    (void)calls;
    return told;
}

static const Row rows[] = {
    {"put1", 0, 300000, prepare_put1, put1, closed},
    {"get1", 0, 300000, prepare_get1, get1, closed_got1},
    {"put10", 0, 100000, prepare_put10, put10, closed},
    {"get10", 0, 100000, prepare_get10, get10, closed_got10},
    {"dimlen", 0, 300000, prepare_inquiries, dimlen, closed_told},
    {"var", 0, 300000, prepare_inquiries, var, closed_told},
    {"att4", 0, 300000, prepare_att4, att4, closed_told},
    {"put1-chunks", 0, 300000, prepare_in_order, put_chunks, no_digest},
    {"put1-chunks-random", 0, 100000, prepare_at_random, put_chunks, no_digest},
    {"get1-chunks-random", 0, 20000, prepare_get_chunks, get_chunks, closed_chunks},
    {"put-halves-1", 1, 31250, prepare_put_halves, halves1, closed},
    {"put-halves-2", 1, 31250, prepare_put_halves, halves2, closed},
    {"get-halves-1", 1, 31250, prepare_get_halves, halves1, closed_halves},
    {"get-halves-2", 1, 31250, prepare_get_halves, halves2, closed_halves},
    {"put1-halves-1", 1, 1000000, prepare_put1, one_halves1, closed},
    {"put1-halves-2", 1, 1000000, prepare_put1, one_halves2, closed},
    {"get1-halves-1", 1, 1000000, prepare_get1, one_halves1, closed_got1},
    {"get1-halves-2", 1, 1000000, prepare_get1, one_halves2, closed_got1},
    {"create", 0, 1000, nothing, create, no_digest},
    {"create4", 0, 300, prepare_create4, create4, no_digest},
    {"create4-1", 0, 500, prepare_create4, create4, no_digest},
    {"open", 0, 100, nothing, open_many, only_told},
    {"open4-one", 0, 5, nothing, open_one, only_told},
};

int main(int argc, char **argv)
{
#ifdef COUNTS
    return argc > 1 ? rows_counted(argv + 1, rows, sizeof rows / sizeof *rows) : 2;
#else
    return rows_main(argc, argv, rows, sizeof rows / sizeof *rows);
#endif
}

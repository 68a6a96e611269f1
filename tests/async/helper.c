/* SPDX-License-Identifier: MIT OR Apache-2.0
 * A small model for tests of the helper process: it says each put that has returned.
 *
 *     helper PATH FORMAT STEPS WIDTH WORD...
 *
 * FORMAT is 1, 2, 5, 4 or z (netCDF-4, deflated). Each step puts a record of `u` (float), of `v` (double,
 * from int), one row of the fixed `w` (short), and of netCDF-4 one of the strings `s`, in a group one of
 * `g/u`. Values follow from the step. Words: `loose` leaves out nc_enddef, `gets` reads some back, `redef`
 * adds an attribute or variable every seventh step, `pause=US` waits after each step, `sync` syncs every
 * fifth step, `hold=N` says `holds` behind step N and waits for a byte on standard input, `end=exit`, `end=_exit`, `end=abort` (SIGABRT) and `end=wait` do so in place of nc_close,
 * `two` puts the same into PATH.2, `fork` forks a child that lives for a second at the third step. */
#define _GNU_SOURCE
#include <netcdf.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int n_words;
static char **words;

static const char *word(const char *name)
{
    size_t n = strlen(name);
    for (int k = 0; k < n_words; k++)
        if (!strncmp(words[k], name, n) && (words[k][n] == 0 || words[k][n] == '='))
            return words[k] + n + (words[k][n] == '=');
    return NULL;
}

static void say(const char *format, ...)
{
    char line[200];
    va_list list;
    va_start(list, format);
    int n = vsnprintf(line, sizeof line - 1, format, list);
    va_end(list);
    line[n++] = '\n';
    if (write(1, line, n) != n)
        exit(3);
}

static void must(int code, const char *what)
{
    if (code) {
        say("failed %s %d %s", what, code, nc_strerror(code));
        exit(1);
    }
}

typedef struct {
    int nc, t, x, r, u, v, w, s, group, gu, is_nc4;
} File;

static void define(File *f, const char *path, char format, size_t steps, size_t width)
{
    const int flags[] = {['1'] = 0, ['2'] = NC_64BIT_OFFSET, ['5'] = NC_64BIT_DATA, ['4'] = NC_NETCDF4, ['z'] = NC_NETCDF4};
    f->is_nc4 = format == '4' || format == 'z';
    must(nc_create(path, NC_CLOBBER | flags[(int)format], &f->nc), "create");
    must(nc_def_dim(f->nc, "t", NC_UNLIMITED, &f->t), "t");
    must(nc_def_dim(f->nc, "x", width, &f->x), "x");
    must(nc_def_dim(f->nc, "r", steps, &f->r), "r");
    int record[] = {f->t, f->x}, rows[] = {f->r, f->x};
    must(nc_def_var(f->nc, "u", NC_FLOAT, 2, record, &f->u), "u");
    must(nc_def_var(f->nc, "v", NC_DOUBLE, 2, record, &f->v), "v");
    must(nc_def_var(f->nc, "w", NC_SHORT, 2, rows, &f->w), "w");
    if (f->is_nc4) {
        must(nc_def_var(f->nc, "s", NC_STRING, 1, record, &f->s), "s");
        /* Groups that are found in another order than they are made in. */
        int a, b;
        must(nc_def_grp(f->nc, "zz", &a), "zz");
        must(nc_def_grp(f->nc, "g", &f->group), "g");
        must(nc_def_grp(a, "below", &b), "below");
        must(nc_def_var(f->group, "u", NC_FLOAT, 2, record, &f->gu), "g/u");
        must(nc_def_var(b, "u", NC_FLOAT, 2, record, &a), "below/u");
    }
    if (format == 'z') {
        must(nc_def_var_deflate(f->nc, f->u, 1, 1, 1), "deflate");
        must(nc_def_var_deflate(f->nc, f->v, 0, 1, 4), "deflate");
        size_t chunk[] = {3, (width + 1) / 2};
        must(nc_def_var_chunking(f->nc, f->v, NC_CHUNKED, chunk), "chunks");
    }
    must(nc_put_att_text(f->nc, NC_GLOBAL, "title", 4, "test"), "title");
    if (!word("loose"))
        must(nc_enddef(f->nc), "enddef");
}

static void step(File *f, size_t n, size_t width, int number)
{
    size_t start[] = {n, 0}, count[] = {1, width};
    float *u = malloc(width * sizeof *u);
    int *v = malloc(width * sizeof *v);
    short *w = malloc(width * sizeof *w);
    for (size_t k = 0; k < width; k++) {
        u[k] = n * 1000.0f + k % 1000;
        v[k] = (int)(n * 7 + k % 77);
        w[k] = (short)((n * 3 + k) % 30000);
    }
    must(nc_put_vara_float(f->nc, f->u, start, count, u), "put u");
    say("put %d u %zu", number, n);
    must(nc_put_vara_int(f->nc, f->v, start, count, v), "put v");
    say("put %d v %zu", number, n);
    must(nc_put_vara_short(f->nc, f->w, start, count, w), "put w");
    say("put %d w %zu", number, n);
    if (f->is_nc4) {
        char text[60];
        const char *texts[] = {text};
        snprintf(text, sizeof text, "step %zu", n);
        must(nc_put_vara_string(f->nc, f->s, start, count, texts), "put s");
        say("put %d s %zu", number, n);
        must(nc_put_vara_float(f->group, f->gu, start, count, u), "put g/u");
        say("put %d g %zu", number, n);
    }
    if (word("gets") && n % 3 == 1) {
        start[0] = n - 1;
        must(nc_get_vara_float(f->nc, f->u, start, count, u), "get u");
        if (u[0] != (n - 1) * 1000.0f)
            say("failed get %f", u[0]);
    }
    if (word("sync") && n % 5 == 4) {
        must(nc_sync(f->nc), "sync");
    }
    if (word("redef") && n % 7 == 6) {
        char name[40];
        int var, record[] = {f->t};
        snprintf(name, sizeof name, "more%zu", n);
        must(nc_redef(f->nc), "redef");
        must(nc_put_att_text(f->nc, NC_GLOBAL, name, 4, "text"), "more");
        must(nc_def_var(f->nc, name, NC_INT, 1, record, &var), "more");
        must(nc_enddef(f->nc), "enddef");
    }
    free(u), free(v), free(w);
}

int main(int argc, char **argv)
{
    File files[2];
    if (argc < 5)
        return 2;
    size_t steps = strtoul(argv[3], NULL, 10), width = strtoul(argv[4], NULL, 10);
    words = argv + 5, n_words = argc - 5;
    int n_files = word("two") ? 2 : 1;
    for (int k = 0; k < n_files; k++) {
        char path[4096];
        snprintf(path, sizeof path, k ? "%s.2" : "%s", argv[1]);
        define(&files[k], path, argv[2][0], steps, width);
    }
    say("defined");
    for (size_t n = 0; n < steps; n++) {
        for (int k = 0; k < n_files; k++)
            step(&files[k], n, width, k);
        if (word("fork") && n == 2 && fork() == 0) {
            close(1), close(2);
            sleep(1);
            _exit(0);
        }
        if (word("hold") && n == strtoul(word("hold"), NULL, 10)) {
            char byte;
            say("holds");
            if (read(0, &byte, 1) != 1)
                exit(4);
        }
        if (word("pause"))
            usleep(strtoul(word("pause"), NULL, 10));
    }
    const char *end = word("end") ? word("end") : "close";
    say("all");
    if (!strcmp(end, "wait"))
        for (;;)
            pause();
    if (!strcmp(end, "exit"))
        exit(0);
    if (!strcmp(end, "_exit"))
        _exit(0);
    if (!strcmp(end, "abort"))
        abort();
    for (int k = 0; k < n_files; k++)
        must(nc_close(files[k].nc), "close");
    say("closed");
    return 0;
}

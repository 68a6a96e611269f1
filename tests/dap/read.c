/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * read URL: what a C program gets of a dataset, by lines on standard input.
 *
 *   list                              "NAME TYPE RANK LENGTH..." of each variable of each group, then an empty line
 *   var NAME                          nc_get_var
 *   var1|vara|vars|varm NAME NUMBERS  start, and then count, stride, map, as many numbers each as it has dimensions
 *
 * A get is answered by "CODE BYTES", and as many bytes: values in the form of memory, a string as its length in four bytes and itself, a
 * sequence of fixed-size elements as their number in four bytes and themselves.
 * NAME is a path ("/g/v"); spaces in it are written as %20. The first line of output is the code of nc_open, the last that of nc_close.
 */
#include <netcdf.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST 32

static void *memory(size_t n)
{
    void *p = calloc(n ? n : 1, 1);
    if (!p) {
        fprintf(stderr, "no memory for %zu bytes\n", n);
        exit(2);
    }
    return p;
}

static void show_name(const char *name)
{
    for (; *name; name++) *name == ' ' ? fputs("%20", stdout) : putchar(*name);
}

static void list(int ncid, const char *path)
{
    int n = 0, ids[NC_MAX_VAR_DIMS];
    if (nc_inq_nvars(ncid, &n)) return;
    for (int v = 0; v < n; v++) {
        char name[NC_MAX_NAME + 1];
        nc_type type;
        int rank;
        if (nc_inq_var(ncid, v, name, &type, &rank, ids, NULL)) continue;
        show_name(path);
        putchar('/');
        show_name(name);
        printf(" %d %d", type, rank);
        for (int d = 0; d < rank; d++) {
            size_t len = 0;
            nc_inq_dimlen(ncid, ids[d], &len);
            printf(" %zu", len);
        }
        putchar('\n');
    }
    if (nc_inq_grps(ncid, &n, NULL) || !n) return;
    int *groups = memory((size_t)n * sizeof(int));
    nc_inq_grps(ncid, &n, groups);
    for (int g = 0; g < n; g++) {
        char name[NC_MAX_NAME + 1], below[4096];
        nc_inq_grpname(groups[g], name);
        snprintf(below, sizeof below, "%s/%s", path, name);
        list(groups[g], below);
    }
    free(groups);
}

/* The group and the variable of a path; the code. */
static int find(int ncid, char *path, int *group, int *varid)
{
    char *last = strrchr(path, '/');
    *group = ncid;
    if (!last) return nc_inq_varid(ncid, path, varid);
    *last = 0;
    for (char *name = strtok(path, "/"); name; name = strtok(NULL, "/")) {
        int code = nc_inq_ncid(*group, name, group);
        if (code) return code;
    }
    return nc_inq_varid(*group, last + 1, varid);
}

static void unescape(char *name)
{
    char *to = name;
    for (; *name; name++) {
        if (!strncmp(name, "%20", 3)) {
            *to++ = ' ';
            name += 2;
        } else {
            *to++ = *name;
        }
    }
    *to = 0;
}

static void answer(int code, const void *values, size_t bytes)
{
    printf("%d %zu\n", code, code ? 0 : bytes);
    if (!code) fwrite(values, 1, bytes, stdout);
}

/* The class of a type; of a sequence the size of its elements. */
static int class_of(int ncid, nc_type type, size_t *size)
{
    int class = 0;
    nc_type base;
    if (type > NC_STRING && (nc_inq_user_type(ncid, type, NULL, NULL, &base, NULL, &class) || class != NC_VLEN || nc_inq_type(ncid, base, NULL, size))) return 0;
    return class;
}

static void get(int ncid, const char *call, char *path, const char *numbers)
{
    int group, varid, rank, ids[NC_MAX_VAR_DIMS], code;
    nc_type type;
    size_t start[MOST] = {0}, count[MOST], size, n = 1;
    ptrdiff_t stride[MOST], map[MOST];
    if ((code = find(ncid, path, &group, &varid)) || (code = nc_inq_var(group, varid, NULL, &type, &rank, ids, NULL)) || (code = nc_inq_type(group, type, NULL, &size))) {
        answer(code, NULL, 0);
        return;
    }
    for (int d = 0; d < rank && d < MOST; d++) {
        nc_inq_dimlen(group, ids[d], &count[d]);
        stride[d] = 1;
    }
    long long *all[4] = {0}, given[4 * MOST];
    int k = 0, used = 0;
    for (long long value; k < 4 * MOST && sscanf(numbers, "%lld%n", &value, &used) == 1; numbers += used) given[k++] = value;
    for (int which = 0; which < 4 && (which + 1) * rank <= k; which++) all[which] = given + which * rank;
    for (int d = 0; d < rank && d < MOST; d++) {
        if (all[0]) start[d] = (size_t)all[0][d];
        if (all[1]) count[d] = (size_t)all[1][d];
        if (all[2]) stride[d] = (ptrdiff_t)all[2][d];
        if (all[3]) map[d] = (ptrdiff_t)all[3][d];
        n *= strcmp(call, "var1") ? count[d] : 1;
    }
    char *values = memory(n * size);
    if (!strcmp(call, "var"))
        code = nc_get_var(group, varid, values);
    else if (!strcmp(call, "var1"))
        code = nc_get_var1(group, varid, start, values);
    else if (!strcmp(call, "vara"))
        code = nc_get_vara(group, varid, start, count, values);
    else if (!strcmp(call, "vars"))
        code = nc_get_vars(group, varid, start, count, stride, values);
    else
        code = nc_get_varm(group, varid, start, count, stride, all[3] ? map : NULL, values);
    if (type == NC_STRING && !code) {
        char **strings = (char **)(void *)values;
        size_t bytes = 0;
        for (size_t i = 0; i < n; i++) bytes += 4 + (strings[i] ? strlen(strings[i]) : 0);
        printf("0 %zu\n", bytes);
        for (size_t i = 0; i < n; i++) {
            uint32_t len = strings[i] ? (uint32_t)strlen(strings[i]) : 0;
            fwrite(&len, 4, 1, stdout);
            fwrite(strings[i], 1, len, stdout);
        }
        nc_free_string(n, strings);
    } else if (!code && class_of(group, type, &size) == NC_VLEN) {
        nc_vlen_t *each = (nc_vlen_t *)(void *)values;
        size_t bytes = 0;
        for (size_t i = 0; i < n; i++) bytes += 4 + each[i].len * size;
        printf("0 %zu\n", bytes);
        for (size_t i = 0; i < n; i++) {
            uint32_t len = (uint32_t)each[i].len;
            fwrite(&len, 4, 1, stdout);
            fwrite(each[i].p, size, len, stdout);
        }
        nc_free_vlens(n, each);
    } else {
        answer(code, values, n * size);
    }
    free(values);
}

int main(int argc, char **argv)
{
    int ncid, code = argc == 2 ? nc_open(argv[1], NC_NOWRITE, &ncid) : 99;
    static char line[1 << 16];
    printf("%d\n", code);
    if (code) return 0;
    while (fgets(line, sizeof line, stdin)) {
        char call[16] = "", path[4096] = "";
        int used = 0;
        if (sscanf(line, "%15s%n %4095s%n", call, &used, path, &used) < 1) continue;
        unescape(path);
        if (!strcmp(call, "list")) {
            list(ncid, "");
            putchar('\n');
        } else {
            get(ncid, call, path, line + used);
        }
    }
    printf("%d\n", nc_close(ncid));
    return 0;
}

/* SPDX-License-Identifier: MIT OR Apache-2.0
 * The netCDF-2 interface: results, messages on standard error, ncopts, ncerr, exit. */
#include "harness.h"
#include <sys/wait.h>

#define V(call) value_of(__LINE__, #call, (call))

static int value_of(int line, const char *source, int value) {
    printf("%d: %s -> %d, ncerr %d\n", line, source, value, ncerr);
    return value;
}

static void fatal(int options) {
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        ncopts = options;
        ncopen("missing.nc", NC_NOWRITE);
        _exit(77);
    }
    int status = 0;
    waitpid(child, &status, 0);
    note("ncopts %d: exit %d", options, WEXITSTATUS(status));
}

static void failures(int nc) {
    long start[3] = {0, 0, 0}, count[3] = {1, 1, 1}, big[3] = {99, 99, 99};
    int n = 5, ids[20], type;
    long len;
    char name[300];
    void *data[20] = {0};
    V(ncopen("missing.nc", NC_NOWRITE));
    V(nccreate("no/folder/x.nc", NC_CLOBBER));
    V(ncredef(nc));
    V(ncendef(nc));
    V(ncdimdef(nc, "late", 3));
    V(ncdimdef(nc, "neg", -3));
    V(ncdimid(nc, "nope"));
    V(ncdiminq(nc, 99, name, &len));
    V(ncdimrename(nc, 99, "x"));
    V(ncvardef(nc, "late", NC_INT, 0, NULL));
    V(ncvarid(nc, "nope"));
    V(ncvarinq(nc, 99, name, &type, &n, ids, &n));
    V(ncvarput1(nc, 99, start, &n));
    V(ncvarget1(nc, 99, start, &n));
    V(ncvarput1(nc, 0, big, &n));
    V(ncvarget1(nc, 0, big, &n));
    V(ncvarput(nc, 0, start, big, &n));
    V(ncvarget(nc, 0, start, big, &n));
    V(ncvarputs(nc, 0, start, big, count, &n));
    V(ncvargets(nc, 0, start, big, count, &n));
    V(ncvarputg(nc, 0, start, big, count, count, &n));
    V(ncvargetg(nc, 0, start, big, count, count, &n));
    V(ncvarputg(nc, 99, start, count, NULL, count, &n));
    V(ncvargetg(nc, 99, start, count, NULL, count, &n));
    V(ncvarrename(nc, 99, "x"));
    V(ncattput(nc, 99, "a", NC_INT, 1, &n));
    V(ncattput(nc, 0, "a", NC_INT, -1, &n));
    V(ncattinq(nc, 0, "nope", &type, &n));
    V(ncattget(nc, 0, "nope", &n));
    V(ncattcopy(nc, 0, "nope", nc, 1));
    V(ncattname(nc, 0, 99, name));
    V(ncattrename(nc, 0, "nope", "b"));
    V(ncattdel(nc, 0, "nope"));
    V(ncsetfill(nc, 77));
    V(ncrecput(nc, -1, data));
    V(ncinquire(99, &n, &n, &n, &n));
    V(ncrecinq(99, &n, ids, NULL));
    V(ncrecget(99, 0, data));
    V(ncsync(99));
    V(ncclose(99));
    V(ncabort(99));
    printf("   ncerr %d\n", ncerr);
}

static void use(const char *path, int flags) {
    int nc, dims[3], v[4], n = -77, m = -77, o = -77, p = -77, ids[20], type = -77;
    long start[2] = {0, 0}, count[2] = {2, 3}, stride[2] = {1, 2}, len = 77, recsizes[20];
    long map[2] = {4, 8};
    int data[6] = {1, 2, 3, 4, 5, 6}, got[12];
    short shorts[3] = {7, 8, 9};
    char name[300];
    nc = V(nccreate(path, flags));
    dims[0] = V(ncdimdef(nc, "t", NC_UNLIMITED));
    dims[1] = V(ncdimdef(nc, "x", 3));
    V(ncdimdef(nc, "z", 2000000000));
    v[0] = V(ncvardef(nc, "v", NC_INT, 2, dims));
    v[1] = V(ncvardef(nc, "s", NC_SHORT, 1, dims));
    v[2] = V(ncvardef(nc, "f", NC_DOUBLE, 1, dims + 1));
    V(ncattput(nc, v[0], "a", NC_SHORT, 3, shorts));
    V(ncattput(nc, NC_GLOBAL, "title", NC_CHAR, 5, "hello"));
    V(ncattcopy(nc, v[0], "a", nc, v[1]));
    V(ncattname(nc, v[0], 0, name));
    text("name", name, 20);
    V(ncattrename(nc, v[1], "a", "b"));
    V(ncattinq(nc, v[1], "b", &type, &n));
    note("type %d len %d", type, n);
    V(ncattinq(nc, v[1], "b", NULL, NULL));
    V(ncattget(nc, v[1], "b", shorts));
    V(ncsetfill(nc, NC_NOFILL));
    V(ncsetfill(nc, NC_FILL));
    V(ncendef(nc));
    V(ncvarput(nc, v[0], start, count, data));
    V(ncvarput1(nc, v[1], start, shorts));
    V(ncvarputs(nc, v[0], start, (long[]){2, 2}, stride, data));
    V(ncvarputs(nc, v[0], start, count, NULL, data));
    V(ncvarputg(nc, v[0], start, count, NULL, map, data));
    V(ncvarputg(nc, v[0], start, count, NULL, NULL, data));
    poison(got);
    V(ncvarget(nc, v[0], start, count, got));
    ints("got", got, 7);
    poison(got);
    V(ncvargets(nc, v[0], start, (long[]){2, 2}, stride, got));
    ints("got", got, 7);
    V(ncvargetg(nc, v[0], start, count, NULL, map, got));
    ints("got", got, 7);
    V(ncvarget1(nc, v[0], start, got));
    ints("got", got, 7);
    V(ncinquire(nc, &n, &m, &o, &p));
    ints("inquire", (int[]){n, m, o, p}, 4);
    V(ncinquire(nc, NULL, NULL, NULL, NULL));
    V(ncdimid(nc, "x"));
    V(ncdiminq(nc, 1, name, &len));
    note("len %ld", len);
    V(ncdiminq(nc, 2, NULL, NULL));
    V(ncvarid(nc, "s"));
    V(ncvarinq(nc, v[0], name, &type, &n, ids, &m));
    ints("var", (int[]){type, n, m}, 3);
    V(ncvarinq(nc, v[0], NULL, NULL, NULL, NULL, NULL));
    poison(ids);
    poison(recsizes);
    n = -77;
    V(ncrecinq(nc, &n, ids, recsizes));
    ints("records", &n, 1);
    ints("ids", ids, 3);
    note("sizes %ld %ld", recsizes[0], recsizes[1]);
    V(ncrecinq(nc, NULL, NULL, NULL));
    void *records[2] = {data, shorts};
    V(ncrecput(nc, 3, records));
    records[0] = NULL;
    V(ncrecput(nc, 4, records));
    poison(got);
    records[0] = got;
    records[1] = NULL;
    V(ncrecget(nc, 3, records));
    ints("got", got, 4);
    V(ncrecget(nc, 99, records));
    V(ncsync(nc));
    V(ncredef(nc));
    V(ncdimrename(nc, 1, "longer"));
    V(ncvarrename(nc, v[0], "w"));
    V(ncattdel(nc, v[1], "b"));
    V(ncendef(nc));
    failures(nc);
    V(ncclose(nc));
    describe_file(path);
    nc = V(ncopen(path, NC_WRITE));
    V(ncredef(nc));
    V(ncabort(nc));
    note("without a record dimension");
    nc = V(nccreate("plain.nc", NC_CLOBBER));
    V(ncendef(nc));
    n = -77;
    V(ncrecinq(nc, &n, ids, recsizes));
    ints("records", &n, 1);
    V(ncrecput(nc, 0, records));
    V(ncrecget(nc, 0, records));
    V(ncclose(nc));
}

int main(void) {
    printf("%d: ncopts %d ncerr %d\n", __LINE__, ncopts, ncerr);
    fatal(0);
    fatal(NC_FATAL);
    fatal(NC_VERBOSE);
    fatal(NC_FATAL | NC_VERBOSE);
    ncopts = NC_VERBOSE;
    use("v2.nc", NC_CLOBBER);
    use("v2_64.nc", NC_CLOBBER | NC_64BIT_OFFSET);
    nc_advise("routine", NC_EBADID, "with %d and %s", 5, "text");
    nc_advise("routine", 2, "a system error");
    nc_advise("routine", NC_NOERR, "no error");
    printf("%d: ncerr %d\n", __LINE__, ncerr);
    return 0;
}

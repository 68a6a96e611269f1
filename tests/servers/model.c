/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 *   model PATH FORMAT STEPS ROWS [kill STEP]
 *
 * A model's output: four record variables of ROWS rows of 256 floats, one text. FORMAT is 1, 2, 5 or 4. Values follow from where they are. With
 * `kill` it ends itself by SIGKILL after so many steps; with MODEL_SLEEPS in its environment it sleeps so many seconds after each. Each call that fails is a line on standard output with its code, and the program goes on;
 * a put that fails is made once more.
 */
#include <netcdf.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zonda.h>

static int failures;

static void check(int status, const char *call) {
    if (status == NC_NOERR) return;
    failures++;
    printf("%s %d %s\n", call, status, nc_zonda_last_error());
    fflush(stdout);
}
#define CHECK(call) check(call, #call)

int main(int argc, char **argv) {
    if (argc < 5) return 64;
    const char *format = argv[2];
    int steps = atoi(argv[3]), rows = atoi(argv[4]), last = argc > 6 ? atoi(argv[6]) : -1;
    int mode = format[0] == '2' ? NC_64BIT_OFFSET : format[0] == '5' ? NC_64BIT_DATA : format[0] == '4' ? NC_NETCDF4 : 0;
    int file, dims[3], vars[4];
    float *values = malloc((size_t)rows * 256 * sizeof *values);
    if (!values) return 65;
    CHECK(nc_create(argv[1], NC_CLOBBER | mode, &file));
    CHECK(nc_def_dim(file, "time", NC_UNLIMITED, &dims[0]));
    CHECK(nc_def_dim(file, "y", rows, &dims[1]));
    CHECK(nc_def_dim(file, "x", 256, &dims[2]));
    for (int v = 0; v < 4; v++) {
        char name[9];
        snprintf(name, sizeof name, "v%d", v);
        CHECK(nc_def_var(file, name, NC_FLOAT, 3, dims, &vars[v]));
        if (mode == NC_NETCDF4 && v % 2) CHECK(nc_def_var_deflate(file, vars[v], 1, 1, 1));
    }
    CHECK(nc_put_att_text(file, NC_GLOBAL, "title", 5, "model"));
    CHECK(nc_enddef(file));
    for (int step = 0; step < steps; step++) {
        for (int v = 0; v < 4; v++) {
            for (int i = 0; i < rows * 256; i++) values[i] = (float)(1000 * step + 10 * v + i % 7);
            size_t start[] = {(size_t)step, 0, 0}, count[] = {1, (size_t)rows, 256};
            int status = nc_put_vara_float(file, vars[v], start, count, values);
            check(status, "nc_put_vara_float");
            /* What went wrong with an earlier put is the error of this one, which was not taken. */
            if (status) CHECK(nc_put_vara_float(file, vars[v], start, count, values));
        }
        size_t length = 0;
        CHECK(nc_inq_dimlen(file, dims[0], &length));
        if (!failures && length != (size_t)step + 1) printf("the length is %zu after step %d\n", length, step);
        if (getenv("MODEL_SLEEPS")) sleep((unsigned)atoi(getenv("MODEL_SLEEPS")));
        if (step == last) {
            kill(getpid(), SIGKILL);
        }
    }
    CHECK(nc_close(file));
    return failures ? 1 : 0;
}

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A small model: warm air that the wind carries round the earth. */
#include <math.h>
#include <netcdf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LATS = 180, LONS = 360, STEPS = 48 };
static float temp[LATS][LONS], next[LATS][LONS];

static void check(int status) {
    if (status == NC_NOERR) return;
    fprintf(stderr, "%s\n", nc_strerror(status));
    exit(1);
}

static void step_model(void) {
    for (int i = 0; i < LATS; i++)
        for (int j = 0; j < LONS; j++) {
            float from = temp[i][(j + LONS - 3) % LONS], north = temp[i ? i - 1 : 0][j], south = temp[i < LATS - 1 ? i + 1 : i][j];
            next[i][j] = 0.8f * from + 0.1f * (north + south);
        }
    memcpy(temp, next, sizeof temp);
}

int main(void) {
    int file, dims[3], time, lat, lon, t2m;
    for (int i = 0; i < LATS; i++)
        for (int j = 0; j < LONS; j++)
            temp[i][j] = 273 + 30 * cosf((i - 89.5f) / 57.3f) + 8 * expf(-((i - 120) * (i - 120) + (j - 90) * (j - 90)) / 400.0f);

    check(nc_create("model.nc", NC_NETCDF4, &file));
    check(nc_def_dim(file, "time", NC_UNLIMITED, &dims[0]));
    check(nc_def_dim(file, "lat", LATS, &dims[1]));
    check(nc_def_dim(file, "lon", LONS, &dims[2]));
    check(nc_def_var(file, "time", NC_DOUBLE, 1, &dims[0], &time));
    check(nc_def_var(file, "lat", NC_DOUBLE, 1, &dims[1], &lat));
    check(nc_def_var(file, "lon", NC_DOUBLE, 1, &dims[2], &lon));
    check(nc_def_var(file, "t2m", NC_FLOAT, 3, dims, &t2m));
    check(nc_put_att_text(file, time, "units", strlen("hours since 2026-01-01"), "hours since 2026-01-01"));
    check(nc_put_att_text(file, lat, "units", strlen("degrees_north"), "degrees_north"));
    check(nc_put_att_text(file, lon, "units", strlen("degrees_east"), "degrees_east"));
    check(nc_put_att_text(file, t2m, "units", strlen("K"), "K"));
    check(nc_enddef(file));
    for (size_t i = 0; i < LATS; i++) check(nc_put_var1_double(file, lat, &i, &(double){i - 89.5}));
    for (size_t j = 0; j < LONS; j++) check(nc_put_var1_double(file, lon, &j, &(double){j + 0.5}));

    for (size_t step = 0; step < STEPS; step++) {
        double hours = step;
        size_t start[] = {step, 0, 0}, count[] = {1, LATS, LONS};
        check(nc_put_var1_double(file, time, &step, &hours));
        check(nc_put_vara_float(file, t2m, start, count, temp[0]));
        step_model();
    }
    check(nc_close(file));
    return 0;
}

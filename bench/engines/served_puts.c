/* served_puts: what a put costs the program that makes it, beside a memcpy of the same bytes. `bench/servers.py` runs it with I/O servers and
 * without.
 *
 *   --file PATH --format F --bytes N --calls N --burst N --pause SECONDS --idle SECONDS
 *
 * Puts N bytes of floats, `burst` times in a row, then does nothing for a while: whoever writes the file keeps up. Around each put a memcpy of
 * the same source goes to memory that was written before and is as large as a burst, turn by turn first or last. Times are the calls' own; of each kind come the median,
 * and the quartiles of put over memcpy, pair by pair. The first burst warms up.
 *
 * With --calls 0 it creates the file, does nothing for `idle` seconds, and closes it. With --busy SECONDS a burst is followed by so long a
 * computation instead of a pause: that of a model, on one core. */
#define _POSIX_C_SOURCE 200809L
#include "engine.h"
#include <sys/resource.h>

static double thread_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void rest(double seconds)
{
    struct timespec t = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
    while (nanosleep(&t, &t) != 0) {}
}

static volatile float sink;

/* Arithmetic on a grid that fits the first cache. */
static void compute(double seconds)
{
    static float grid[2048];
    double until = now() + seconds;
    while (now() < until)
        for (int sweep = 0; sweep < 20; sweep++)
            for (int i = 1; i < 2047; i++) grid[i] = 0.25f * (grid[i - 1] + 2.0f * grid[i] + grid[i + 1]) + 0.1f;
    sink = grid[1000];
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double quantile(double *sorted, size_t n, double q)
{
    return n ? sorted[(size_t)(q * (double)(n - 1) + 0.5)] : 0;
}

int main(int argc, char **argv)
{
    static const char *const known[] = {"--file", "--format", "--bytes", "--calls", "--burst", "--pause", "--busy", "--idle", NULL};
    known_options(argc, argv, known);
    const char *file = option(argc, argv, "--file", NULL);
    size_t bytes = option_size(argc, argv, "--bytes", "65536"), calls = option_size(argc, argv, "--calls", "1000");
    size_t burst = option_size(argc, argv, "--burst", "8");
    double pause = atof(option(argc, argv, "--pause", "0.005")), busy = atof(option(argc, argv, "--busy", "0"));
    double idle = atof(option(argc, argv, "--idle", "0"));
    int ncid, dimid, varid, flag = format_flag(argc, argv);
    size_t n = bytes / sizeof(float), rounds = burst ? calls / burst : 0;
    if (n == 0 || (calls > 0 && rounds < 2)) return 2;
    float *values = malloc(n * sizeof *values);
    char *memory = malloc(n * sizeof *values * (burst ? burst : 1));
    double *put = malloc((calls + 1) * sizeof *put), *copy = malloc((calls + 1) * sizeof *copy);
    double *ratio = malloc((calls + 1) * sizeof *ratio);
    if (!values || !memory || !put || !copy || !ratio) return 3;
    for (size_t i = 0; i < n; i++) values[i] = (float)i;
    memset(memory, 1, n * sizeof *values * (burst ? burst : 1));

    NC(nc_create(file, NC_CLOBBER | flag, &ncid));
    NC(nc_set_fill(ncid, NC_NOFILL, NULL));
    NC(nc_def_dim(ncid, "x", n * (burst ? burst : 1), &dimid));
    NC(nc_def_var(ncid, "v", NC_FLOAT, 1, &dimid, &varid));
    NC(nc_enddef(ncid));
    if (idle > 0) rest(idle);

    size_t done = 0;
    double in_puts = 0, in_copies = 0, processor = 0, began = 0;
    for (size_t round = 0; round < rounds; round++) {
        if (round == 1) began = now();
        for (size_t b = 0; b < burst; b++) {
            size_t start[] = {b * n}, count[] = {n};
            char *to = memory + b * n * sizeof *values;
            double t[4], cpu = 0;
            values[0] = (float)(round + b);
            if ((round + b) % 2) {
                t[0] = now();
                memcpy(to, values, n * sizeof *values);
                t[1] = now();
                cpu = thread_seconds();
                t[2] = now();
                NC(nc_put_vara_float(ncid, varid, start, count, values));
                t[3] = now();
                cpu = thread_seconds() - cpu;
            } else {
                cpu = thread_seconds();
                t[2] = now();
                NC(nc_put_vara_float(ncid, varid, start, count, values));
                t[3] = now();
                cpu = thread_seconds() - cpu;
                t[0] = now();
                memcpy(to, values, n * sizeof *values);
                t[1] = now();
            }
            if (round == 0) continue;
            copy[done] = t[1] - t[0];
            put[done] = t[3] - t[2];
            ratio[done] = put[done] / (copy[done] > 0 ? copy[done] : 1e-9);
            in_copies += copy[done];
            in_puts += put[done];
            processor += cpu;
            done++;
        }
        if (busy > 0) compute(busy);
        else if (pause > 0) rest(pause);
    }
    double all = now() - began;
    NC(nc_close(ncid));
    qsort(put, done, sizeof *put, ascending);
    qsort(copy, done, sizeof *copy, ascending);
    qsort(ratio, done, sizeof *ratio, ascending);
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    printf("{\"workload\": \"served puts\", \"params\": {\"put\": %.9g, \"memcpy\": %.9g, \"ratio\": [%.4g, %.4g, %.4g], \"put99\": %.9g, \"puts\": %.9g, \"copies\": %.9g, "
           "\"processor\": %.9g, \"loop\": %.9g, \"resident_kib\": %ld}, \"seconds\": %.9g, \"bytes\": %zu, \"calls\": %zu, \"digest\": null}\n",
           quantile(put, done, 0.5), quantile(copy, done, 0.5), quantile(ratio, done, 0.25), quantile(ratio, done, 0.5), quantile(ratio, done, 0.75),
           quantile(put, done, 0.99), in_puts, in_copies, processor, all, used.ru_maxrss, in_puts, n * sizeof(float) * done, done);
    return 0;
}

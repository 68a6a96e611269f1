/* history_model: the history file of a climate model, written the hard way.
 *
 * The model computes one latitude at a time, and its latitudes finish in no fixed order. For each
 * time step it therefore writes 62 record variables slice by slice: one latitude of one variable
 * per call. In the file a time step ("record") holds the variables one after the other, so these
 * small writes land all over it. This is the case study of NCAR's 1995 work on netCDF over a
 * flexible I/O layer, and still the pattern that makes classic netCDF output slow.
 *
 * Only the public netCDF C interface is used; any netCDF library can be linked. Only the library's
 * calls are timed: computing the fields and checking what was read back is not.
 *
 *     cc -std=c99 -O2 history_model.c -o history_model -lnetcdf -lm
 *     ./history_model history.nc            (see --help)
 */
#define _POSIX_C_SOURCE 200809L /* clock_gettime */

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <netcdf.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* ---- what the model writes ------------------------------------------------------------------ */

/* A field is  base + pole sin^2(lat) + top (1 - p/ps)  plus a travelling wave of size `wave` with
 * `number` crests around the globe, strongest in mid-latitudes. `base` exceeds what the others can
 * take away wherever the quantity cannot be negative. */
typedef struct {
    const char *name, *units, *long_name;
    bool levels; /* (time, lev, lat, lon), else (time, lat, lon) */
    double base, pole, top, wave;
    int number;
} Field;

static const Field fields[] = {
    {"CLDHGH", "fraction", "high cloud cover", false, 0.35, 0.05, 0, 0.25, 5},
    {"CLDICE", "kg/kg", "grid box averaged cloud ice", true, 6e-6, 2e-6, 4e-6, 4e-6, 6},
    {"CLDLIQ", "kg/kg", "grid box averaged cloud liquid", true, 4e-5, -1e-5, -2e-5, 5e-6, 6},
    {"CLDLOW", "fraction", "low cloud cover", false, 0.40, 0.15, 0, 0.20, 4},
    {"CLDMED", "fraction", "mid-level cloud cover", false, 0.25, 0.10, 0, 0.15, 5},
    {"CLDTOT", "fraction", "total cloud cover", false, 0.60, 0.10, 0, 0.25, 5},
    {"CLOUD", "fraction", "cloud fraction", true, 0.30, 0.10, -0.10, 0.10, 5},
    {"DTCOND", "K/s", "heating by moist processes", true, 2e-5, -1e-5, -5e-6, 3e-5, 7},
    {"DTV", "K/s", "heating by vertical diffusion", true, 1e-5, -5e-6, -1e-5, 5e-6, 3},
    {"FLDS", "W/m2", "downwelling longwave flux at surface", false, 400, -220, 0, 25, 3},
    {"FLNS", "W/m2", "net longwave flux at surface", false, 70, -20, 0, 15, 4},
    {"FLNSC", "W/m2", "clear-sky net longwave flux at surface", false, 95, -15, 0, 10, 4},
    {"FLNT", "W/m2", "net longwave flux at top of model", false, 260, -90, 0, 25, 5},
    {"FLNTC", "W/m2", "clear-sky net longwave flux at top of model", false, 290, -90, 0, 12, 3},
    {"FLUT", "W/m2", "upwelling longwave flux at top of model", false, 262, -90, 0, 25, 5},
    {"FLUTC", "W/m2", "clear-sky upwelling longwave flux at top", false, 292, -90, 0, 12, 3},
    {"FSDS", "W/m2", "downwelling solar flux at surface", false, 260, -200, 0, 40, 5},
    {"FSDSC", "W/m2", "clear-sky downwelling solar flux at surface", false, 330, -250, 0, 10, 2},
    {"FSNS", "W/m2", "net solar flux at surface", false, 230, -190, 0, 30, 5},
    {"FSNSC", "W/m2", "clear-sky net solar flux at surface", false, 290, -240, 0, 10, 2},
    {"FSNT", "W/m2", "net solar flux at top of model", false, 330, -260, 0, 35, 5},
    {"FSNTC", "W/m2", "clear-sky net solar flux at top of model", false, 370, -280, 0, 12, 2},
    {"ICEFRAC", "fraction", "fraction covered by sea ice", false, 0.05, 0.75, 0, 0.04, 3},
    {"LHFLX", "W/m2", "surface latent heat flux", false, 130, -110, 0, 40, 6},
    {"O3", "mol/mol", "ozone volume mixing ratio", true, 1e-7, 5e-8, 6e-6, 2e-8, 2},
    {"OMEGA", "Pa/s", "vertical velocity (pressure)", true, 0, 0, 0, 0.35, 7},
    {"PBLH", "m", "height of the boundary layer", false, 900, -450, 0, 250, 6},
    {"PRECC", "m/s", "convective precipitation rate", false, 6e-8, -3e-8, 0, 2e-8, 8},
    {"PRECL", "m/s", "large-scale precipitation rate", false, 3e-8, -5e-9, 0, 2e-8, 6},
    {"PRECSC", "m/s", "convective snow rate (water equivalent)", false, 2e-9, 1e-9, 0, 1e-9, 8},
    {"PRECSL", "m/s", "large-scale snow rate (water equivalent)", false, 6e-9, 5e-9, 0, 4e-9, 6},
    {"PRECTMX", "m/s", "maximum precipitation rate", false, 2e-7, -1e-7, 0, 9e-8, 8},
    {"PS", "Pa", "surface pressure", false, 98500, -2500, 0, 1800, 5},
    {"PSL", "Pa", "sea level pressure", false, 101300, -900, 0, 2200, 5},
    {"Q", "kg/kg", "specific humidity", true, 0.016, -0.008, -0.006, 0.001, 4},
    {"QFLX", "kg/m2/s", "surface water flux", false, 5e-5, -4e-5, 0, 8e-6, 6},
    {"QREFHT", "kg/kg", "specific humidity at 2 m", false, 0.017, -0.014, 0, 0.002, 4},
    {"QRL", "K/s", "longwave heating rate", true, -2e-5, 5e-6, 0, 4e-6, 5},
    {"QRS", "K/s", "solar heating rate", true, 1e-5, -5e-6, 1e-5, 3e-6, 1},
    {"RELHUM", "percent", "relative humidity", true, 75, -5, -35, 18, 5},
    {"SHFLX", "W/m2", "surface sensible heat flux", false, 35, -30, 0, 20, 5},
    {"SNOWHLND", "m", "snow depth over land (water equivalent)", false, 0.02, 0.6, 0, 0.015, 3},
    {"SOLIN", "W/m2", "insolation at top of atmosphere", false, 420, -240, 0, 0, 0},
    {"SST", "K", "sea surface temperature", false, 302, -30, 0, 2, 3},
    {"T", "K", "temperature", true, 300, -35, -75, 8, 5},
    {"TAUX", "N/m2", "zonal surface stress", false, -0.02, 0.05, 0, 0.12, 4},
    {"TAUY", "N/m2", "meridional surface stress", false, 0, 0, 0, 0.10, 5},
    {"TGCLDIWP", "kg/m2", "grid box cloud ice water path", false, 0.02, 0.01, 0, 0.01, 6},
    {"TGCLDLWP", "kg/m2", "grid box cloud liquid water path", false, 0.09, 0.03, 0, 0.05, 6},
    {"TKE", "m2/s2", "turbulent kinetic energy", true, 1.0, -0.2, -0.5, 0.2, 4},
    {"TMQ", "kg/m2", "precipitable water", false, 45, -38, 0, 6, 4},
    {"TREFHT", "K", "temperature at 2 m", false, 299, -48, 0, 6, 4},
    {"TREFHTMN", "K", "minimum temperature at 2 m", false, 296, -50, 0, 6, 4},
    {"TREFHTMX", "K", "maximum temperature at 2 m", false, 303, -46, 0, 6, 4},
    {"TS", "K", "surface temperature (radiative)", false, 300, -50, 0, 7, 4},
    {"TSMN", "K", "minimum surface temperature", false, 296, -52, 0, 7, 4},
    {"TSMX", "K", "maximum surface temperature", false, 305, -47, 0, 7, 4},
    {"U", "m/s", "zonal wind", true, -3, 10, 25, 14, 5},
    {"U10", "m/s", "wind speed at 10 m", false, 7, 3, 0, 4, 5},
    {"USTAR", "m/s", "friction velocity", false, 0.28, 0.05, 0, 0.12, 5},
    {"V", "m/s", "meridional wind", true, 0, 0, 0, 12, 5},
    {"Z3", "m", "geopotential height", true, 50, -30, 30000, 20, 5},
};
enum { FIELDS = sizeof fields / sizeof fields[0] };

/* ---- options -------------------------------------------------------------------------------- */

typedef enum { ORDER_RANDOM, ORDER_SORTED, ORDER_SCATTERED } Order;
static const char *const order_names[] = {"random", "sorted", "scattered"};

typedef struct {
    const char *path;
    bool write, read, fill, share, fsync, progress;
    nc_type type; /* in the file: NC_DOUBLE or NC_FLOAT */
    int format;   /* 1, 2 or 5 */
    Order order;
    double size_mb; /* used unless `steps` is given */
    size_t steps, lat, lon, lev;
    uint64_t seed;
} Options;

static const char help[] =
    "usage: history_model [options] FILE\n"
    "Writes a climate model's history file slice by slice, reads it back slice by slice, checks\n"
    "every value, and prints one JSON line for each of the two.\n"
    "\n"
    "  --phase both|write|read   what to do (both); read takes shape and type from FILE\n"
    "  --order random|sorted|scattered\n"
    "                            random: latitudes shuffled, all variables of each (default);\n"
    "                            sorted: south to north; scattered: all slices shuffled\n"
    "  --type double|float       type in the file (double); in memory it is always double\n"
    "  --format 1|2|5            classic, 64-bit offset, 64-bit data (1)\n"
    "  --fill | --nofill         fill mode of the file (nofill)\n"
    "  --share | --no-share      open with NC_SHARE (no-share)\n"
    "  --fsync                   fsync the file after nc_close, as part of it\n"
    "  --size MB                 millions of bytes to write, to the nearest time step (200)\n"
    "  --steps N                 number of time steps instead of a size\n"
    "  --lat N --lon N --lev N   grid (64 x 128 x 18)\n"
    "  --seed N                  seed of the order (1995)\n"
    "  --progress                percentage on standard error\n"
    "\n"
    "Exit status: 0 done, 1 failed or a value differed, 2 wrong usage.\n";

static void usage_error(const char *what, const char *which)
{
    fprintf(stderr, "history_model: %s '%s' (--help lists the options)\n", what, which);
    exit(2);
}

/* The position of `value` in a list of words; ends the program if it is not there. */
static int word(const char *value, const char *const words[], int n)
{
    for (int i = 0; i < n; i++)
        if (strcmp(value, words[i]) == 0) return i;
    usage_error("unknown value", value);
    return -1;
}

/* A number >= 1. */
static double number(const char *value)
{
    char *end;
    double x = strtod(value, &end);
    if (end == value || *end != '\0' || !(x >= 1) || x > 1e15) usage_error("not a size", value);
    return x;
}

static Options parse(int argc, char **argv)
{
    static const char *const phases[] = {"both", "write", "read"};
    static const char *const types[] = {"double", "float"};
    static const char *const formats[] = {"1", "2", "5"};
    Options o = {.write = true, .read = true, .type = NC_DOUBLE, .format = 1, .size_mb = 200,
                 .lat = 64, .lon = 128, .lev = 18, .seed = 1995};

    for (int i = 1; i < argc; i++) {
        const char *a = argv[i];
        if (strcmp(a, "--help") == 0) { fputs(help, stdout); exit(0); }
        else if (strcmp(a, "--fill") == 0) o.fill = true;
        else if (strcmp(a, "--nofill") == 0) o.fill = false;
        else if (strcmp(a, "--share") == 0) o.share = true;
        else if (strcmp(a, "--no-share") == 0) o.share = false;
        else if (strcmp(a, "--fsync") == 0) o.fsync = true;
        else if (strcmp(a, "--progress") == 0) o.progress = true;
        else if (a[0] != '-') {
            if (o.path) usage_error("a second file name", a);
            o.path = a;
        } else {
            static const char *const names[] = {"--phase", "--order", "--type", "--format",
                "--size", "--steps", "--lat", "--lon", "--lev", "--seed"};
            int option = word(a, names, sizeof names / sizeof names[0]);
            if (++i == argc) usage_error("no value for", a);
            const char *v = argv[i];
            switch (option) {
            case 0: { int p = word(v, phases, 3); o.write = p != 2; o.read = p != 1; break; }
            case 1: o.order = (Order)word(v, order_names, 3); break;
            case 2: o.type = word(v, types, 2) ? NC_FLOAT : NC_DOUBLE; break;
            case 3: o.format = atoi(formats[word(v, formats, 3)]); break;
            case 4: o.size_mb = number(v); break;
            case 5: o.steps = (size_t)number(v); break;
            case 6: o.lat = (size_t)number(v); break;
            case 7: o.lon = (size_t)number(v); break;
            case 8: o.lev = (size_t)number(v); break;
            default: o.seed = (uint64_t)number(v); break;
            }
        }
    }
    if (!o.path) { fputs(help, stderr); exit(2); }
    return o;
}

/* ---- small helpers -------------------------------------------------------------------------- */

/* Every netCDF call returns a status; a program that ignores one loses data silently. */
#define NC(call)                                                                                   \
    do {                                                                                           \
        int status_ = (call);                                                                      \
        if (status_ != NC_NOERR) {                                                                 \
            fprintf(stderr, "history_model: %s: %s\n", #call, nc_strerror(status_));               \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void *allocate(size_t n, size_t size)
{
    void *p = calloc(n, size);
    if (!p) {
        fprintf(stderr, "history_model: no memory for %zu x %zu bytes\n", n, size);
        exit(1);
    }
    return p;
}

/* Splitmix64: small, and the same on every machine. */
static uint64_t next_random(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static void shuffle(uint32_t *items, size_t n, uint64_t *state)
{
    for (size_t i = n; i > 1; i--) {
        size_t j = (size_t)(next_random(state) % i);
        uint32_t t = items[i - 1];
        items[i - 1] = items[j];
        items[j] = t;
    }
}

static void progress(const Options *o, const char *what, size_t done, size_t all)
{
    if (!o->progress) return;
    fprintf(stderr, "\r%s %3zu %%", what, 100 * done / all);
    if (done == all) fputs("\r                    \r", stderr);
}

/* ---- the model ------------------------------------------------------------------------------ */

/* One time step in memory, as such a model holds it: latitude by latitude, and in a latitude one
 * variable after the other, each (lev, lon) or (lon). */
typedef struct {
    size_t steps, lat, lon, lev;
    size_t row;            /* values of one latitude, all variables */
    size_t offset[FIELDS]; /* of a variable inside that */
    double *values;        /* lat * row */
    double *wave;          /* lev * lon, scratch */
} Model;

static const double pi = 3.14159265358979323846;
static double latitude(const Model *m, size_t j) { return -90 + 180 * (j + 0.5) / m->lat; }
static double longitude(const Model *m, size_t i) { return 360.0 * i / m->lon; }
static double pressure(const Model *m, size_t k) { return 1000.0 * (k + 0.5) / m->lev; }

static size_t slice_len(const Model *m, int f) { return (fields[f].levels ? m->lev : 1) * m->lon; }

static Model model_new(size_t steps, size_t lat, size_t lon, size_t lev)
{
    Model m = {.steps = steps, .lat = lat, .lon = lon, .lev = lev};
    for (int f = 0; f < FIELDS; f++) {
        m.offset[f] = m.row;
        m.row += slice_len(&m, f);
    }
    m.values = allocate(lat * m.row, sizeof(double));
    m.wave = allocate(lev * lon, sizeof(double));
    return m;
}

static void model_free(Model *m)
{
    free(m->values);
    free(m->wave);
}

/* Computes time step `t`; rounds to float if that is what the file can give back. */
static void model_step(Model *m, size_t t, nc_type type)
{
    for (int f = 0; f < FIELDS; f++) {
        const Field *q = &fields[f];
        size_t levels = q->levels ? m->lev : 1;

        for (size_t k = 0; k < levels; k++)
            for (size_t i = 0; i < m->lon; i++) {
                double phase = q->number * (pi / 180) * longitude(m, i) - 0.3 * t + 0.1 * k;
                m->wave[k * m->lon + i] = q->wave * cos(phase);
            }

        for (size_t j = 0; j < m->lat; j++) {
            double s = sin(pi / 180 * latitude(m, j));
            double envelope = 4 * s * s * (1 - s * s); /* 0 at equator and poles, 1 at 45 degrees */
            double *out = m->values + j * m->row + m->offset[f];
            for (size_t k = 0; k < levels; k++) {
                double mean = q->base + q->pole * s * s;
                if (q->levels) mean += q->top * (1 - pressure(m, k) / 1000);
                for (size_t i = 0; i < m->lon; i++) {
                    double x = mean + envelope * m->wave[k * m->lon + i];
                    *out++ = type == NC_FLOAT ? (double)(float)x : x;
                }
            }
        }
    }
}

/* The order in which the slices of a time step come: each entry is latitude * FIELDS + field. */
static void slice_order(const Options *o, size_t lat, uint32_t *slices, uint64_t *random)
{
    uint32_t *lats = allocate(lat, sizeof *lats);
    for (size_t j = 0; j < lat; j++) lats[j] = (uint32_t)j;
    if (o->order == ORDER_RANDOM) shuffle(lats, lat, random);
    for (size_t j = 0; j < lat; j++)
        for (int f = 0; f < FIELDS; f++) slices[j * FIELDS + f] = lats[j] * FIELDS + (uint32_t)f;
    if (o->order == ORDER_SCATTERED) shuffle(slices, lat * FIELDS, random);
    free(lats);
}

/* The hyperslab of a slice; gives the rank. */
static int hyperslab(const Model *m, int f, size_t t, size_t j, size_t start[4], size_t count[4])
{
    int d = 0;
    start[d] = t, count[d++] = 1;
    if (fields[f].levels) start[d] = 0, count[d++] = m->lev;
    start[d] = j, count[d++] = 1;
    start[d] = 0, count[d++] = m->lon;
    return d;
}

/* Continues a digest over the values of a time step. */
static uint64_t digest(uint64_t h, const double *values, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint64_t bits;
        memcpy(&bits, &values[i], sizeof bits);
        h = (h ^ bits) * 0x9e3779b97f4a7c15u;
        h ^= h >> 29;
    }
    return h;
}

static void report(const Options *o, const Model *m, const char *name, const double seconds[3],
                   const char *const phase[3], uint64_t sum)
{
    size_t size = o->type == NC_FLOAT ? 4 : 8;
    int n3d = 0;
    for (int f = 0; f < FIELDS; f++) n3d += fields[f].levels;
    printf("{\"workload\": \"%s\", \"params\": {\"type\": \"%s\", \"format\": %d, \"order\": \"%s\", "
           "\"fill\": %s, \"share\": %s, \"steps\": %zu, \"lat\": %zu, \"lon\": %zu, \"lev\": %zu, "
           "\"fields2d\": %d, \"fields3d\": %d, \"record_bytes\": %zu}, ",
           name, size == 4 ? "float" : "double", o->format, order_names[o->order],
           o->fill ? "true" : "false", o->share ? "true" : "false", m->steps, m->lat, m->lon,
           m->lev, FIELDS - n3d, n3d, m->lat * m->row * size);
    printf("\"seconds\": %.6f, \"%s\": %.6f, \"%s\": %.6f, \"%s\": %.6f, \"bytes\": %zu, "
           "\"calls\": %zu, \"digest\": \"%016llx\", \"library\": \"%s\"}\n",
           seconds[0] + seconds[1] + seconds[2], phase[0], seconds[0], phase[1], seconds[1],
           phase[2], seconds[2], m->steps * m->lat * m->row * size, m->steps * m->lat * FIELDS,
           (unsigned long long)sum, nc_inq_libvers());
    fflush(stdout);
}

/* ---- writing -------------------------------------------------------------------------------- */

static void put_text(int ncid, int varid, const char *name, const char *value)
{
    NC(nc_put_att_text(ncid, varid, name, strlen(value), value));
}

static int define_coordinate(int ncid, const char *name, size_t len, const char *units,
                             const char *long_name, const char *axis, int *dimid)
{
    int varid;
    NC(nc_def_dim(ncid, name, len, dimid));
    NC(nc_def_var(ncid, name, NC_DOUBLE, 1, dimid, &varid));
    put_text(ncid, varid, "units", units);
    put_text(ncid, varid, "long_name", long_name);
    put_text(ncid, varid, "axis", axis);
    return varid;
}

/* Creates the file, defines everything in it and writes the coordinates that do not change. */
static int create(const Options *o, const Model *m, int *time_var, int field_vars[FIELDS])
{
    int ncid, time_dim, lev_dim, lat_dim, lon_dim;
    int mode = NC_CLOBBER | (o->share ? NC_SHARE : 0);
    if (o->format == 2) mode |= NC_64BIT_OFFSET;
    if (o->format == 5) mode |= NC_64BIT_DATA;

    NC(nc_create(o->path, mode, &ncid));
    if (!o->fill) NC(nc_set_fill(ncid, NC_NOFILL, NULL));
    put_text(ncid, NC_GLOBAL, "Conventions", "CF-1.8");
    put_text(ncid, NC_GLOBAL, "title", "history file of a model of a climate model");
    put_text(ncid, NC_GLOBAL, "source", "history_model: idealised waves on smooth fields");

    *time_var = define_coordinate(ncid, "time", NC_UNLIMITED, "days since 1995-01-01 00:00:00",
                                  "time", "T", &time_dim);
    put_text(ncid, *time_var, "calendar", "noleap");
    int lev_var = define_coordinate(ncid, "lev", m->lev, "hPa", "pressure", "Z", &lev_dim);
    put_text(ncid, lev_var, "positive", "down");
    int lat_var = define_coordinate(ncid, "lat", m->lat, "degrees_north", "latitude", "Y", &lat_dim);
    put_text(ncid, lat_var, "standard_name", "latitude");
    int lon_var = define_coordinate(ncid, "lon", m->lon, "degrees_east", "longitude", "X", &lon_dim);
    put_text(ncid, lon_var, "standard_name", "longitude");

    for (int f = 0; f < FIELDS; f++) {
        int dims4[4] = {time_dim, lev_dim, lat_dim, lon_dim};
        int dims3[3] = {time_dim, lat_dim, lon_dim};
        bool levels = fields[f].levels;
        NC(nc_def_var(ncid, fields[f].name, o->type, levels ? 4 : 3, levels ? dims4 : dims3,
                      &field_vars[f]));
        put_text(ncid, field_vars[f], "units", fields[f].units);
        put_text(ncid, field_vars[f], "long_name", fields[f].long_name);
    }
    NC(nc_enddef(ncid));

    size_t most = m->lev + m->lat + m->lon;
    double *values = allocate(most, sizeof *values);
    for (size_t k = 0; k < m->lev; k++) values[k] = pressure(m, k);
    NC(nc_put_var_double(ncid, lev_var, values));
    for (size_t j = 0; j < m->lat; j++) values[j] = latitude(m, j);
    NC(nc_put_var_double(ncid, lat_var, values));
    for (size_t i = 0; i < m->lon; i++) values[i] = longitude(m, i);
    NC(nc_put_var_double(ncid, lon_var, values));
    free(values);
    return ncid;
}

/* Has the device take what the system still holds of a file. */
static void sync_file(const char *path)
{
    int fd = open(path, O_RDWR);
    if (fd < 0 || fsync(fd) != 0 || close(fd) != 0) {
        fprintf(stderr, "history_model: %s: %s\n", path, strerror(errno));
        exit(1);
    }
}

static void write_history(const Options *o)
{
    Model m = model_new(o->steps, o->lat, o->lon, o->lev);
    if (o->steps == 0) {
        double step_bytes = (double)(m.lat * m.row) * (o->type == NC_FLOAT ? 4 : 8);
        m.steps = (size_t)(o->size_mb * 1e6 / step_bytes + 0.5);
        if (m.steps == 0) m.steps = 1;
    }
    uint32_t *slices = allocate(m.lat * FIELDS, sizeof *slices);
    uint64_t random = o->seed, sum = 0;
    int time_var, field_vars[FIELDS];

    double seconds[3] = {0}, from = now();
    int ncid = create(o, &m, &time_var, field_vars);
    seconds[0] = now() - from;

    for (size_t t = 0; t < m.steps; t++) {
        /* The values are handed over as they are: rounding to the file's type is the library's. */
        model_step(&m, t, NC_DOUBLE);
        slice_order(o, m.lat, slices, &random);

        from = now();
        double day = 0.25 * (double)t;
        NC(nc_put_var1_double(ncid, time_var, &t, &day));
        for (size_t s = 0; s < m.lat * FIELDS; s++) {
            int f = (int)(slices[s] % FIELDS);
            size_t j = slices[s] / FIELDS, start[4], count[4];
            hyperslab(&m, f, t, j, start, count);
            NC(nc_put_vara_double(ncid, field_vars[f], start, count,
                                  m.values + j * m.row + m.offset[f]));
        }
        seconds[1] += now() - from;

        if (o->type == NC_FLOAT) model_step(&m, t, NC_FLOAT);
        sum = digest(sum, m.values, m.lat * m.row);
        progress(o, "write", t + 1, m.steps);
    }

    from = now();
    NC(nc_close(ncid)); /* what a library still holds in its buffers is written here */
    if (o->fsync) sync_file(o->path);
    seconds[2] = now() - from;

    static const char *const phases[] = {"create_s", "put_s", "close_s"};
    report(o, &m, "history write", seconds, phases, sum);
    free(slices);
    model_free(&m);
}

/* ---- reading back --------------------------------------------------------------------------- */

static size_t dim_len(int ncid, const char *name)
{
    int dimid;
    size_t len;
    NC(nc_inq_dimid(ncid, name, &dimid));
    NC(nc_inq_dimlen(ncid, dimid, &len));
    return len;
}

/* Reads every slice and compares it; gives the number of values that differ. */
static size_t read_history(Options o)
{
    int ncid, time_var, field_vars[FIELDS], format;
    double seconds[3] = {0}, from = now();
    NC(nc_open(o.path, NC_NOWRITE | (o.share ? NC_SHARE : 0), &ncid));
    size_t steps = dim_len(ncid, "time"), lev = dim_len(ncid, "lev");
    size_t lat = dim_len(ncid, "lat"), lon = dim_len(ncid, "lon");
    NC(nc_inq_varid(ncid, "time", &time_var));
    for (int f = 0; f < FIELDS; f++) NC(nc_inq_varid(ncid, fields[f].name, &field_vars[f]));
    NC(nc_inq_vartype(ncid, field_vars[0], &o.type));
    NC(nc_inq_format(ncid, &format));
    seconds[0] = now() - from;
    o.format = format == NC_FORMAT_CLASSIC ? 1 : format == NC_FORMAT_64BIT_OFFSET ? 2 : 5;

    Model m = model_new(steps, lat, lon, lev);
    double *got = allocate(lat * m.row, sizeof *got);
    uint32_t *slices = allocate(lat * FIELDS, sizeof *slices);
    uint64_t random = o.seed + 1, sum = 0; /* not the order in which it was written */
    size_t wrong = 0;

    for (size_t t = 0; t < steps; t++) {
        model_step(&m, t, o.type);
        slice_order(&o, lat, slices, &random);
        memset(got, 0xff, lat * m.row * sizeof *got); /* NaN: a slice left out is noticed */

        from = now();
        double day = -1;
        NC(nc_get_var1_double(ncid, time_var, &t, &day));
        for (size_t s = 0; s < lat * FIELDS; s++) {
            int f = (int)(slices[s] % FIELDS);
            size_t j = slices[s] / FIELDS, start[4], count[4];
            hyperslab(&m, f, t, j, start, count);
            NC(nc_get_vara_double(ncid, field_vars[f], start, count,
                                  got + j * m.row + m.offset[f]));
        }
        seconds[1] += now() - from;

        wrong += day != 0.25 * (double)t;
        for (size_t i = 0; i < lat * m.row; i++) {
            if (got[i] == m.values[i]) continue;
            if (wrong++ == 0) {
                int f = FIELDS - 1;
                while (m.offset[f] > i % m.row) f--;
                fprintf(stderr, "history_model: %s: %s, step %zu, latitude %zu: %.17g, not %.17g\n",
                        o.path, fields[f].name, t, i / m.row, got[i], m.values[i]);
            }
        }
        sum = digest(sum, got, lat * m.row);
        progress(&o, "read", t + 1, steps);
    }

    from = now();
    NC(nc_close(ncid));
    seconds[2] = now() - from;

    static const char *const phases[] = {"open_s", "get_s", "close_s"};
    report(&o, &m, "history read", seconds, phases, sum);
    free(got);
    free(slices);
    model_free(&m);
    return wrong;
}

int main(int argc, char **argv)
{
    Options o = parse(argc, argv);
    if (o.write) write_history(&o);
    size_t wrong = o.read ? read_history(o) : 0;
    if (wrong > 0) fprintf(stderr, "history_model: %zu values differ\n", wrong);
    return wrong > 0;
}

/* replay: the reads and writes of a change, and nothing between them: open, each pread and pwrite of
 * --list (lines "r|w OFFSET BYTES"), close. What a library could save is what it takes longer. */
#define _POSIX_C_SOURCE 200809L
#define _FILE_OFFSET_BITS 64
#include "engine.h"
#include <fcntl.h>
#include <unistd.h>

struct step {
    char kind;
    long long at;
    size_t bytes;
};

int main(int argc, char **argv)
{
    known_options(argc, argv, (const char *const[]){"--file", "--list", NULL});
    const char *file = option(argc, argv, "--file", NULL);
    FILE *list = fopen(option(argc, argv, "--list", NULL), "r");
    struct step *steps = NULL, step;
    size_t n = 0, most = 0, bytes = 0, total = 0;
    while (list && fscanf(list, " %c %lld %zu", &step.kind, &step.at, &step.bytes) == 3) {
        if (n % 1024 == 0) steps = realloc(steps, (n + 1024) * sizeof *steps);
        steps[n++] = step;
        most = step.bytes > most ? step.bytes : most;
    }
    char *buffer = touched(most);
    double start = now();
    int fd = open(file, O_RDWR);
    if (fd < 0) return perror(file), 1;
    for (size_t i = 0; i < n; i++) {
        ssize_t got = steps[i].kind == 'w' ? pwrite(fd, buffer, steps[i].bytes, steps[i].at)
                                           : pread(fd, buffer, steps[i].bytes, steps[i].at);
        if (got < 0) return perror("replay"), 1;
        total += (size_t)got;
        bytes += steps[i].kind == 'w' ? (size_t)got : 0;
    }
    close(fd);
    double seconds = now() - start;
    char params[96];
    snprintf(params, sizeof params, "{\"steps\": %zu, \"written\": %zu}", n, bytes);
    result("replay", params, seconds, total, n, NULL);
    return 0;
}

/* SPDX-License-Identifier: MIT OR Apache-2.0
 * A signal handler calls exit while a call is under way, on its own thread or on another one: batch
 * systems end programs so. The program ends, and what was synced is there. */
#include "during.h"
#include <pthread.h>

static const Case *running;

static void handler(int number) {
    (void)number;
    exit(0);
}

static void *work(void *unused) {
    (void)unused;
    for (int step = 1;; step++) running->once(step);
    return NULL;
}

/* Variants: even ones on this thread, odd ones on another; at several moments. */
static void ends_in_handler(const Case *c, int variant) {
    int delay = 20000 + 45000 * (variant / 2);
    set_up(c);
    running = c;
    signal(SIGALRM, handler);
    if (variant % 2) {
        sigset_t mask;
        pthread_t thread;
        sigemptyset(&mask);
        sigaddset(&mask, SIGALRM);
        pthread_sigmask(SIG_BLOCK, &mask, NULL);
        CHECK(pthread_create(&thread, NULL, work, NULL) == 0);
        pthread_sigmask(SIG_UNBLOCK, &mask, NULL);
    }
    setitimer(ITIMER_REAL, &(struct itimerval){.it_value = {0, delay}}, NULL);
    if (variant % 2)
        for (;;) pause();
    work(NULL);
}

int main(void) {
    CHECK(all_cases(ends_in_handler, 6) == 0);
    return 0;
}

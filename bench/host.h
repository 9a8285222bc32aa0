/* What the programs here ask of the system. On Linux _GNU_SOURCE is to be defined before the first include. */
#ifndef BENCH_HOST_H
#define BENCH_HOST_H

#include <sched.h>
#include <stdio.h>
#include <unistd.h>

/* Cores that this program may use: taskset and containers leave it fewer than there are. */
static inline int host_cores(void) {
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
#ifdef __linux__
    cpu_set_t usable;
    if (!sched_getaffinity(0, sizeof usable, &usable))
        cores = CPU_COUNT(&usable);
#endif
    return cores > 0 ? (int)cores : 1;
}

/* Asked before the work; what is there stays as it is. 0 and errno if not. */
static inline int host_can_write(const char *path) {
    const int is_new = access(path, F_OK) != 0;
    FILE *file = fopen(path, "a");
    if (!file)
        return 0;
    fclose(file);
    if (is_new)
        remove(path);
    return 1;
}

#endif

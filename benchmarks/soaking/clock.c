/* A clock that can be moved while a program runs: wall-clock time plus the milliseconds in the file that SOAK_CLOCK names.
   For LD_PRELOAD. The monotonic clock is left alone, as it is when a machine's clock is set. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile long long nowhere, *moved_ms = &nowhere;

__attribute__((constructor)) static void open_clock(void) {
    const char *path = getenv("SOAK_CLOCK");
    int handle = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (handle < 0) return;
    void *mapped = mmap(NULL, sizeof *moved_ms, PROT_READ, MAP_SHARED, handle, 0);
    if (mapped != MAP_FAILED) moved_ms = mapped;
    close(handle);
}

int clock_gettime(clockid_t id, struct timespec *told) {
    int failed = syscall(SYS_clock_gettime, id, told);
    if (!failed && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE)) {
        long long ms = *moved_ms, ns = told->tv_nsec + (ms % 1000) * 1000000;
        told->tv_sec += ms / 1000 + ns / 1000000000;
        ns %= 1000000000;
        if (ns < 0) { ns += 1000000000; told->tv_sec -= 1; }
        told->tv_nsec = ns;
    }
    return failed;
}

int gettimeofday(struct timeval *restrict told, void *restrict zone) {
    struct timespec now;
    (void)zone;
    if (clock_gettime(CLOCK_REALTIME, &now)) return -1;
    told->tv_sec = now.tv_sec;
    told->tv_usec = now.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *told) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (told) *told = now.tv_sec;
    return now.tv_sec;
}

/* A system clock that a test sets, for processes that preload this library: the true time plus the nanoseconds in the file that
   FRAZIL_TEST_CLOCK names. The monotonic clock stays true. Only the functions that the tests' programs call are replaced. */
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const int64_t second_ns = 1000000000;
static const int64_t *ahead_ns;

__attribute__((constructor)) static void map_file(void) {
    const char *path = getenv("FRAZIL_TEST_CLOCK");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    void *page = mmap(NULL, sizeof *ahead_ns, PROT_READ, MAP_SHARED, file, 0);
    if (page == MAP_FAILED) abort();
    ahead_ns = page;
    close(file);
}

int clock_gettime(clockid_t clock, struct timespec *at) {
    int failed = (int)syscall(SYS_clock_gettime, clock, at);
    if (failed || (clock != CLOCK_REALTIME && clock != CLOCK_REALTIME_COARSE)) return failed;
    /* A constructor that runs before this library's constructor sees the true time. */
    int64_t ns = at->tv_nsec + (ahead_ns ? __atomic_load_n(ahead_ns, __ATOMIC_RELAXED) : 0);
    int64_t seconds = ns / second_ns - (ns % second_ns < 0);
    at->tv_sec += seconds;
    at->tv_nsec = ns - seconds * second_ns;
    return 0;
}

int gettimeofday(struct timeval *at, void *zone) {
    struct timespec exact;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &exact);
    at->tv_sec = exact.tv_sec;
    at->tv_usec = exact.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *at) {
    struct timespec exact;
    clock_gettime(CLOCK_REALTIME, &exact);
    if (at) *at = exact.tv_sec;
    return exact.tv_sec;
}

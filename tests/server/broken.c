/* Makes a Rust program panic: in the thread that reads PANIC from a socket, and in a thread that accepts a connection while the file
   $BREAKS exists. The monotonic clock then fails, and std panics. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static _Thread_local int breaks;

ssize_t recv(int socket, void *buffer, size_t length, int flags) {
    ssize_t (*real)(int, void *, size_t, int) = dlsym(RTLD_NEXT, "recv");
    ssize_t came = real(socket, buffer, length, flags);
    if (came > 0 && memmem(buffer, came, "PANIC", 5)) breaks = 1;
    return came;
}

int accept4(int socket, struct sockaddr *address, socklen_t *length, int flags) {
    int (*real)(int, struct sockaddr *, socklen_t *, int) = dlsym(RTLD_NEXT, "accept4");
    if (access(getenv("BREAKS"), F_OK) == 0) {
        breaks = 1;
        errno = EMFILE;
        return -1;
    }
    return real(socket, address, length, flags);
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    int (*real)(clockid_t, struct timespec *) = dlsym(RTLD_NEXT, "clock_gettime");
    if (breaks && clock == CLOCK_MONOTONIC) {
        breaks = 0;
        errno = EINVAL;
        return -1;
    }
    return real(clock, now);
}

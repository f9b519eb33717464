/* Helpers of the cases in C. The first line of a file that includes it defines _GNU_SOURCE. */
#include <frazil.h>

#include "suite.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#ifdef __linux__
#include <linux/fs.h>
#include <sys/syscall.h>
#endif

#define NOW INT64_C(1800000000000)
/* A layout with two node numbers; generators do not share one. */
#define TWO "layout='time:41@1ms node:1 sequence:12 epoch:2025-01-01' store=memory window=8s renew=2s rollback=error detached=true"

/* Ends the case if a call does not return the expected status. */
#define STATUS(call, expected) CHECK((call) == (expected))
#define OK(call) STATUS(call, FRAZIL_OK)

#define REFUSED(call, argument)                                                                                        \
    do {                                                                                                               \
        STATUS(call, FRAZIL_WRONG_TYPE);                                                                               \
        CHECK(error_has(argument " is NULL"));                                                                         \
    } while (0)

static inline bool says(const char *const *words) {
    for (; *words != NULL; ++words) {
        if (strstr(frazil_last_error(), *words) == NULL) return false;
    }
    return true;
}

static inline bool error_has(const char *word) {
    const char *words[] = {word, NULL};
    return says(words);
}

static inline bool ascending(const int64_t *ids, size_t count) {
    for (size_t i = 1; i < count; ++i) {
        if (ids[i - 1] >= ids[i]) return false;
    }
    return true;
}

static inline int compare(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static inline int64_t wall_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Ends a forked child by a signal that shows its outcome. An exit status would not do: valgrind makes each a failure, because memory that only
   the stacks of the parent's threads refer to is leaked in the child. */
__attribute__((noreturn)) static inline void end_child(int failed) {
    if (failed != 0) printf("# child: %d: %s\n", failed, frazil_last_error());
    fflush(stdout);
    kill(getpid(), failed == 0 ? SIGUSR1 : SIGTERM);
    for (;;) pause();
}

/* Waits for a child, and returns whether it succeeded. */
static inline bool ended_well(pid_t child) {
    int status = 0;
    return child > 0 && waitpid(child, &status, 0) == child && WIFSIGNALED(status) && WTERMSIG(status) == SIGUSR1;
}

static inline void pause_ms(int ms) {
    struct timespec pause = {ms / 1000, ms % 1000 * 1000000L};
    nanosleep(&pause, NULL);
}

/* A barrier for processes. It is made before the forks, and each process waits at it once. */
struct barrier {
    int ends[2];
};

static inline struct barrier make_barrier(void) {
    struct barrier barrier;
    if (pipe(barrier.ends) != 0) abort();
    return barrier;
}

/* Waits until each process has come here or has ended. The read returns when no process has the pipe's writing end open. */
static inline void meet(struct barrier barrier) {
    char none;
    close(barrier.ends[1]);
    while (read(barrier.ends[0], &none, 1) < 0) {}
    close(barrier.ends[0]);
}

/* A server that accepts connections but never answers. */
struct server {
    int socket;
    unsigned port;
};

static inline struct server make_silent_server(void) {
    struct sockaddr_in address = {0};
    socklen_t size = sizeof address;
    const int listening = socket(AF_INET, SOCK_STREAM, 0);
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (bind(listening, (struct sockaddr *)&address, size) != 0 || listen(listening, 5) != 0) abort();
    if (getsockname(listening, (struct sockaddr *)&address, &size) != 0) abort();
    return (struct server){listening, ntohs(address.sin_port)};
}

/* A folder for the `store=file:` of one case. */
struct folder {
    char path[64];
};

static inline struct folder make_folder(void) {
    struct folder folder;
    /* In memory, if the runner has such a folder: on a busy disk, an fsync can take longer than a start may. */
    const char *place = getenv("FRAZIL_TEST_SERVERS");
    if (place == NULL) place = getenv("TMPDIR");
    if (place == NULL || strlen(place) > 40) place = "/tmp";
    snprintf(folder.path, sizeof folder.path, "%s/frazil-c-XXXXXX", place);
    if (mkdtemp(folder.path) == NULL) abort();
    return folder;
}

/* Atomically exchanges the folder with another beside it. A plain rename would not do: a thread that writes just then would recreate the folder. */
static inline bool exchange_folder(struct folder folder, const char *with) {
#ifdef __APPLE__
    return renamex_np(folder.path, with, RENAME_SWAP) == 0;
#else
    /* musl has no function for this system call. */
    return syscall(SYS_renameat2, AT_FDCWD, folder.path, AT_FDCWD, with, RENAME_EXCHANGE) == 0;
#endif
}

/* Removes the folder, and what a case has put beside it. Retries, because the thread of a freed handle may write once more. */
static inline void remove_folder(struct folder folder) {
    char command[100];
    snprintf(command, sizeof command, "rm -rf '%s'* 2>/dev/null", folder.path);
    for (int i = 0; system(command) != 0; ++i) {
        if (i == 500) abort();
        pause_ms(10);
    }
}

/* Returns whether a number is free in the folder's store. The newer half of its record then begins with "1 free". */
static inline bool is_free(struct folder folder, const char *namespace, uint64_t node) {
    unsigned char bytes[8192] = {0};
    char path[160];
    snprintf(path, sizeof path, "%s/%s/%" PRIu64, folder.path, namespace, node);
    FILE *file = fopen(path, "rb");
    if (file == NULL) return false;
    size_t got = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    uint64_t sequence[2] = {0, 0};
    for (int half = 0; half < 2; ++half) {
        for (int i = 7; i >= 0; --i) sequence[half] = sequence[half] << 8 | bytes[half * 4096 + 24 + i];
    }
    return got == sizeof bytes && memcmp(bytes + (sequence[1] > sequence[0]) * 4096 + 36, "1 free ", 7) == 0;
}

/* Returns whether a number is released within a minute, because frazil_snowflake_free() may return before the release. */
static inline bool is_released(struct folder folder, const char *namespace, uint64_t node) {
    for (int i = 0; i < 6000 && !is_free(folder, namespace, node); ++i) pause_ms(10);
    return is_free(folder, namespace, node);
}

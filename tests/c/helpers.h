/* What the cases in C have in common. The first line of a file that includes it defines _GNU_SOURCE. */
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
/* Two node numbers, and generators that share none. */
#define TWO "layout='time:41@1ms node:1 sequence:12 epoch:2025-01-01' store=memory window=8s renew=2s rollback=error detached=true"

/* Ends the case when a call does not return the status. */
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

/* Ends a forked child, which failed or not: by a signal that nobody else sends, because valgrind makes a failure of any exit status, for what the stacks of the
   parent's threads held is lost in the child. */
__attribute__((noreturn)) static inline void end_child(int failed) {
    if (failed != 0) printf("# child: %d: %s\n", failed, frazil_last_error());
    fflush(stdout);
    kill(getpid(), failed == 0 ? SIGUSR1 : SIGTERM);
    for (;;) pause();
}

/* Waits for a child, and whether it ended well. */
static inline bool ended_well(pid_t child) {
    int status = 0;
    return child > 0 && waitpid(child, &status, 0) == child && WIFSIGNALED(status) && WTERMSIG(status) == SIGUSR1;
}

static inline void pause_ms(int ms) {
    struct timespec pause = {ms / 1000, ms % 1000 * 1000000L};
    nanosleep(&pause, NULL);
}

/* Where processes meet: made before they are forked, and each of them goes there once. */
struct barrier {
    int ends[2];
};

static inline struct barrier make_barrier(void) {
    struct barrier barrier;
    if (pipe(barrier.ends) != 0) abort();
    return barrier;
}

/* Waits until each process has come here or has ended: the pipe is at its end when nobody can write any more. */
static inline void meet(struct barrier barrier) {
    char none;
    close(barrier.ends[1]);
    while (read(barrier.ends[0], &none, 1) < 0) {}
    close(barrier.ends[0]);
}

/* It takes connections, and never answers. */
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

/* A folder of this case's own for `store=file:`. */
struct folder {
    char path[64];
};

static inline struct folder make_folder(void) {
    struct folder folder;
    const char *place = getenv("TMPDIR");
    if (place == NULL || strlen(place) > 40) place = "/tmp";
    snprintf(folder.path, sizeof folder.path, "%s/frazil-c-XXXXXX", place);
    if (mkdtemp(folder.path) == NULL) abort();
    return folder;
}

/* Exchanges the folder with what a case has put beside it, at once: somebody may be writing in it just now, and would make it anew. */
static inline bool exchange_folder(struct folder folder, const char *with) {
#ifdef __APPLE__
    return renamex_np(folder.path, with, RENAME_SWAP) == 0;
#else
    /* musl has no function for it. */
    return syscall(SYS_renameat2, AT_FDCWD, folder.path, AT_FDCWD, with, RENAME_EXCHANGE) == 0;
#endif
}

/* Removes it, and what a case has put beside it. The thread behind a handle that was just freed may write once more. */
static inline void remove_folder(struct folder folder) {
    char command[100];
    snprintf(command, sizeof command, "rm -rf '%s'* 2>/dev/null", folder.path);
    for (int i = 0; system(command) != 0; ++i) {
        if (i == 500) abort();
        pause_ms(10);
    }
}

/* Whether the folder's store says that a number is free: the newer half of its record begins "1 free". */
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

/* Whether a number is given back; who frees a handle waits for that only as long as a destructor may. */
static inline bool is_given_back(struct folder folder, const char *namespace, uint64_t node) {
    for (int i = 0; i < 6000 && !is_free(folder, namespace, node); ++i) pause_ms(10);
    return is_free(folder, namespace, node);
}

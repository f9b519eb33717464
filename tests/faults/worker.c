/* Mints until FOLDER/stop exists, and writes down every ID at once: worker KIND SPEC FOLDER NAME (see worker.py) */
#define _POSIX_C_SOURCE 200809L
#include <fcntl.h>
#include <frazil.h>
#include <glob.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MANY = 5000, POLLS_S = 1, PAUSE_MS = 4 };

/* A thread's generator or segment, and the files of its IDs. */
struct source {
    char part[32];
    int out, log;
    unsigned seed;
    int64_t newest;
    /* Only one of these two is used. */
    frazil_snowflake *ids;
    frazil_numbers *numbers;
    int64_t buffer[MANY];
};

static const char *spec, *folder, *name;
static unsigned rare, few, child_limit_s;
static bool segment;
/* True while a visitor runs in this process. Threads do not survive a fork. */
static bool visited;

static void die(const char *what) {
    perror(what);
    _exit(1);
}

static unsigned setting(const char *variable) {
    const char *value = getenv(variable);
    if (!value) die(variable);
    return (unsigned)atoi(value);
}

static int append_to(const char *part, const char *ending) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s.%ld.%s%s", folder, name, (long)getpid(), part, ending);
    int file = open(path, O_WRONLY | O_CREAT | O_APPEND, 0644);
    if (file < 0) die(path);
    return file;
}

static void own_files(struct source *self) {
    self->out = append_to(self->part, "ids");
    self->log = append_to(self->part, "log");
    /* Without the factor, processes with neighbouring IDs would draw similar numbers. */
    self->seed = (unsigned)getpid() * 2654435761u;
}

static void note(struct source *self, const char *code, const char *text) {
    char line[2048];
    int length = snprintf(line, sizeof line - 1, "%s %s", code, text);
    if (length > (int)sizeof line - 2) length = (int)sizeof line - 2;
    line[length] = '\n';
    if (write(self->log, line, (size_t)length + 1) < 0) die("write");
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void sleep_ms(long ms) {
    struct timespec time = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&time, NULL);
}

static unsigned draw_below(struct source *self, unsigned limit) {
    self->seed = self->seed * 1664525u + 1013904223u;
    return (unsigned)((uint64_t)self->seed * limit >> 32);
}

static bool stopped(void) {
    char path[4096];
    snprintf(path, sizeof path, "%s/stop", folder);
    return access(path, F_OK) == 0;
}

static bool done(struct source *self, frazil_status status) {
    if (status == FRAZIL_OK) return true;
    note(self, frazil_error_name(status), frazil_last_error());
    return false;
}

static bool is_open(const struct source *self) { return self->ids || self->numbers; }

static frazil_status open_once(struct source *self, bool waits) {
    if (segment) return waits ? frazil_segment_open(spec, &self->numbers) : frazil_segment_open_for(spec, 0, &self->numbers);
    return waits ? frazil_snowflake_open(spec, &self->ids) : frazil_snowflake_open_for(spec, 0, &self->ids);
}

/* Opens again, with waits or with polls. A visitor that polls gives up after a while. */
static void reopen(struct source *self, bool waits) {
    for (double end = waits ? 1e300 : now() + POLLS_S; !is_open(self) && now() < end && !stopped();) {
        self->newest = -1;
        if (!done(self, open_once(self, waits))) sleep_ms(20);
    }
}

static frazil_status release(struct source *self) {
    return segment ? frazil_numbers_discard(self->numbers) : frazil_snowflake_release_node(self->ids);
}

static void shut(struct source *self) {
    frazil_snowflake_free(self->ids);
    self->ids = NULL;
    frazil_numbers_free(self->numbers);
    self->numbers = NULL;
}

static void mint(struct source *self, size_t count) {
    int64_t *buffer = self->buffer;
    size_t written = 0;
    frazil_status status = segment ? frazil_numbers_fill(self->numbers, buffer, count, &written)
                                   : frazil_snowflake_fill(self->ids, buffer, count, &written);
    size_t bytes = written * sizeof *buffer;
    if (bytes && write(self->out, buffer, bytes) != (ssize_t)bytes) die("write");
    if (written && buffer[0] <= self->newest) note(self, "NOT_ASCENDING", "an ID is not above the one before it");
    if (written) self->newest = buffer[written - 1];
    if (!done(self, status)) sleep_ms(20);
}

/* Returns the last ID that one of the processes has written down, or -1. */
static int64_t somebodys_newest(struct source *self) {
    char pattern[4096];
    snprintf(pattern, sizeof pattern, "%s/*.ids", folder);
    glob_t found;
    if (glob(pattern, 0, NULL, &found)) die(pattern);
    int file = open(found.gl_pathv[draw_below(self, (unsigned)found.gl_pathc)], O_RDONLY);
    globfree(&found);
    if (file < 0) die("open");
    int64_t newest = -1;
    off_t whole = lseek(file, 0, SEEK_END) / 8 * 8;
    if (whole && pread(file, &newest, sizeof newest, whole - 8) != sizeof newest) die("pread");
    close(file);
    return newest;
}

static void observe(struct source *self) {
    int64_t theirs = somebodys_newest(self);
    if (segment || theirs < 0 || !done(self, frazil_snowflake_observe(self->ids, theirs))) return;
    if (theirs > self->newest) self->newest = theirs;
    int file = append_to("", "observed");
    if (write(file, ".", 1) != 1) die("write");
    close(file);
}

static void *stay(void *argument) {
    struct source *self = argument;
    own_files(self);
    reopen(self, self->part[0] == 'w');
    for (double end = now() + draw_below(self, 1000) / 1000.0; is_open(self) && now() < end; sleep_ms(PAUSE_MS)) mint(self, few);
    shut(self);
    close(self->out);
    close(self->log);
    free(self);
    __atomic_store_n(&visited, false, __ATOMIC_RELEASE);
    return NULL;
}

/* Starts a visitor, at most one at a time. Visitors wait and poll in turn. */
static void visit(void) {
    static unsigned visits;
    if (__atomic_exchange_n(&visited, true, __ATOMIC_ACQUIRE)) return;
    struct source *visitor = calloc(1, sizeof *visitor);
    if (!visitor) die("calloc");
    visits++;
    snprintf(visitor->part, sizeof visitor->part, "%s.%u.", visits % 2 ? "polls" : "waits", visits);
    pthread_t thread;
    if (pthread_create(&thread, NULL, stay, visitor) || pthread_detach(thread)) die("pthread");
}

static void run(struct source *self, double end, bool forks);

/* Forks. Both processes continue, the child for a while and with its own files. */
static void branch(struct source *self) {
    static pid_t child;
    int status = 0;
    if (child && waitpid(child, &status, WNOHANG) != child) return;
    if (status) note(self, "CHILD", "ended by a signal or an error");
    child = fork();
    if (child < 0) die("fork");
    if (child > 0) return;
    alarm(child_limit_s);
    visited = false;
    own_files(self);
    /* Before the child leases its own number, another thread may open, and the inherited handle may be closed. */
    if (draw_below(self, 2)) visit();
    if (!draw_below(self, 4)) shut(self);
    run(self, now() + 0.5 + draw_below(self, 2500) / 1000.0, false);
    _exit(0);
}

static void run(struct source *self, double end, bool forks) {
    while (now() < end) {
        unsigned draw = draw_below(self, rare);
        if (draw < 2) shut(self);
        if (!is_open(self)) reopen(self, true);
        if (!is_open(self) || (draw % 16 == 0 && stopped())) break;
        if (draw == 2) done(self, release(self));
        if (draw == 3 && forks) branch(self);
        if (draw == 4) observe(self);
        if (draw == 5) visit();
        mint(self, draw < 6 ? MANY : few);
        sleep_ms(PAUSE_MS);
    }
    /* Half of the children exit without a close, like crashed processes. */
    if (forks || draw_below(self, 2)) shut(self);
}

int main(int argc, char **argv) {
    if (argc != 5) return 2;
    static struct source self = {.newest = -1};
    segment = strcmp(argv[1], "Segment") == 0, spec = argv[2], folder = argv[3], name = argv[4];
    rare = setting("FRAZIL_WORKER_RARE"), few = setting("FRAZIL_WORKER_FEW");
    child_limit_s = setting("FRAZIL_WORKER_CHILD_LIMIT");
    own_files(&self);
    run(&self, 1e300, setting("FRAZIL_WORKER_FORKS") == 1);
    while (__atomic_load_n(&visited, __ATOMIC_ACQUIRE)) sleep_ms(1);
    return 0;
}

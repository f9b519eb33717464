/* Mints until told to stop, and writes down every ID before anything else happens: worker KIND SPEC FOLDER NAME (see worker.py) */
#define _POSIX_C_SOURCE 200809L
#include <fcntl.h>
#include <frazil.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MANY = 5000, CHILD_LIMIT_S = 30 };

static const char *spec, *folder, *name;
static int out, errors;
static unsigned seed, rare, few;
static int64_t newest = -1;
static bool segment;
/* One of the two. */
static frazil_snowflake *ids;
static frazil_numbers *numbers;

static void die(const char *what) {
    perror(what);
    _exit(1);
}

static unsigned setting(const char *variable) {
    const char *value = getenv(variable);
    if (!value) die(variable);
    return (unsigned)atoi(value);
}

static int append_to(const char *ending) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s.%ld.%s", folder, name, (long)getpid(), ending);
    int file = open(path, O_WRONLY | O_CREAT | O_APPEND, 0644);
    if (file < 0) die(path);
    return file;
}

static void own_files(void) {
    out = append_to("ids");
    errors = append_to("log");
    seed = (unsigned)getpid();
}

static void note(const char *code, const char *text) {
    char line[2048];
    int length = snprintf(line, sizeof line - 1, "%s %s", code, text);
    if (length > (int)sizeof line - 2) length = (int)sizeof line - 2;
    line[length] = '\n';
    if (write(errors, line, (size_t)length + 1) < 0) die("write");
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

static unsigned draw_below(unsigned limit) {
    seed = seed * 1664525u + 1013904223u;
    return (unsigned)((uint64_t)seed * limit >> 32);
}

static bool stopped(void) {
    char path[4096];
    snprintf(path, sizeof path, "%s/stop", folder);
    return access(path, F_OK) == 0;
}

static bool done(frazil_status status) {
    if (status == FRAZIL_OK) return true;
    note(frazil_error_name(status), frazil_last_error());
    return false;
}

static bool is_open(void) { return ids || numbers; }

static void reopen(void) {
    while (!is_open() && !stopped()) {
        newest = -1;
        if (!done(segment ? frazil_segment_open(spec, &numbers) : frazil_snowflake_open(spec, &ids))) sleep_ms(20);
    }
}

static frazil_status renew(void) { return segment ? frazil_numbers_renew(numbers) : frazil_snowflake_renew(ids); }

static void shut(void) {
    frazil_snowflake_free(ids);
    ids = NULL;
    frazil_numbers_free(numbers);
    numbers = NULL;
}

static void mint(size_t count) {
    static int64_t buffer[MANY];
    size_t written = 0;
    frazil_status status =
        segment ? frazil_numbers_fill(numbers, buffer, count, &written) : frazil_snowflake_fill(ids, buffer, count, &written);
    size_t bytes = written * sizeof *buffer;
    if (bytes && write(out, buffer, bytes) != (ssize_t)bytes) die("write");
    if (written && buffer[0] <= newest) note("NOT_ASCENDING", "an ID is not above the one before it");
    if (written) newest = buffer[written - 1];
    if (!done(status)) sleep_ms(20);
}

static void run(double end, bool forks);

/* Both go on: the child for a while, with files of its own. */
static void branch(void) {
    static pid_t child;
    if (child && waitpid(child, NULL, WNOHANG) == child) child = 0;
    if (child) return;
    child = fork();
    if (child < 0) die("fork");
    if (child > 0) return;
    alarm(CHILD_LIMIT_S);
    own_files();
    run(now() + 0.5 + draw_below(2500) / 1000.0, false);
    _exit(0);
}

static void run(double end, bool forks) {
    while (now() < end) {
        unsigned draw = draw_below(rare);
        if (draw < 2) shut();
        if (!is_open()) reopen();
        if (!is_open() || (draw % 16 == 0 && stopped())) break;
        if (draw == 2) done(renew());
        if (draw == 3 && forks) branch();
        mint(draw < 6 ? MANY : few);
        sleep_ms(1);
    }
    /* Half of the children just vanish, as crashed processes do. */
    if (forks || draw_below(2)) shut();
}

int main(int argc, char **argv) {
    if (argc != 5) return 2;
    segment = strcmp(argv[1], "Segment") == 0, spec = argv[2], folder = argv[3], name = argv[4];
    rare = setting("FRAZIL_WORKER_RARE"), few = setting("FRAZIL_WORKER_FEW");
    own_files();
    run(1e300, setting("FRAZIL_WORKER_FORKS") == 1);
    return 0;
}

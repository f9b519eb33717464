/* The time that each wait takes to end after close() in another thread, or after its own limit. Worst of five.
   c-api/build.sh && cc -O2 bench/c/waits.c -Ibuild/c/include -Lbuild/c/lib -Wl,-rpath,build/c/lib -lfrazil -lpthread -o build/c/waits && build/c/waits */
#define _GNU_SOURCE
#include <frazil.h>

#include <arpa/inet.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define ROUNDS 5
#define LIMIT_MS 300
/* Two IDs an hour, and a wait for the next one. */
#define HOURS "layout='time:31@1h node:10 sequence:1 epoch:2025-01-01' exhausted=wait:2h start=zero store=memory detached=true namespace="

static char folder[] = "/tmp/frazil-waits-XXXXXX";
static int silent_port;
static int turn;

/* A waiting call: of a handle, or the opening of a spec line. */
struct call {
    frazil_snowflake *ids;
    frazil_numbers *numbers;
    char line[300];
    int64_t buffer[1000];
    int lock;
    frazil_status status;
    double ended;
};

struct wait {
    const char *name;
    void (*make)(struct call *);
    /* -1: without a limit. */
    frazil_status (*call)(struct call *, int64_t max_wait_ms);
    bool closes;
};

static double now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static void pause_ms(int ms) {
    struct timespec pause = {ms / 1000, ms % 1000 * 1000000L};
    nanosleep(&pause, NULL);
}

static void need(bool well, const char *what) {
    if (well) return;
    fprintf(stderr, "%s: %s\n", what, frazil_last_error());
    exit(1);
}

/* A server that accepts connections and never answers. */
static int silent_server(void) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    int server = socket(AF_INET, SOCK_STREAM, 0);
    need(bind(server, (struct sockaddr *)&address, size) == 0 && listen(server, 100) == 0, "listen");
    getsockname(server, (struct sockaddr *)&address, &size);
    return ntohs(address.sin_port);
}

static void make_hours(struct call *call) {
    snprintf(call->line, sizeof call->line, HOURS "n%d", ++turn);
    need(frazil_snowflake_open(call->line, &call->ids) == FRAZIL_OK, "hours");
    while (frazil_snowflake_next_for(call->ids, 0, call->buffer) == FRAZIL_OK) {}
}

static void make_ring(struct call *call) {
    snprintf(call->line, sizeof call->line, HOURS "n%d size=2 empty=wait:1h", ++turn);
    need(frazil_buffered_open(call->line, &call->numbers) == FRAZIL_OK, "ring");
    for (int i = 0; i < 2; ++i) need(frazil_numbers_next_for(call->numbers, 60000, call->buffer) == FRAZIL_OK, "ring");
}

static void lock(struct call *call, const char *path) {
    call->lock = open(path, O_RDWR);
    need(call->lock >= 0 && flock(call->lock, LOCK_EX) == 0, path);
}

/* A generator whose store no longer answers: another process holds its lock. */
static void make_lost(struct call *call) {
    char path[200];
    snprintf(path, sizeof path, "%s/n%d/.lock", folder, ++turn);
    snprintf(call->line, sizeof call->line, "standard store=file:%s namespace=n%d window=60s renew=10s", folder, turn);
    need(frazil_snowflake_open(call->line, &call->ids) == FRAZIL_OK, "lost");
    lock(call, path);
}

/* A segment whose store no longer answers once its first range is used up. */
static void make_segment(struct call *call) {
    char path[200];
    snprintf(path, sizeof path, "%s/default~orders%d/.lock", folder, ++turn);
    snprintf(call->line, sizeof call->line, "orders%d store=file:%s wait=60s step=1", turn, folder);
    need(frazil_segment_open(call->line, &call->numbers) == FRAZIL_OK, "segment");
    lock(call, path);
    while (frazil_numbers_next_for(call->numbers, 0, call->buffer) == FRAZIL_OK) {}
}

static void make_silent(struct call *call) {
    snprintf(call->line, sizeof call->line, "standard store=etcd://127.0.0.1:%d namespace=n%d", silent_port, ++turn);
}

static void make_silent_tag(struct call *call) {
    snprintf(call->line, sizeof call->line, "orders%d store=etcd://127.0.0.1:%d wait=60s", ++turn, silent_port);
}

static void make_tickets(struct call *call) {
    snprintf(call->line, sizeof call->line, "orders%d store='etcd://127.0.0.1:%d etcd://127.0.0.1:%d' wait=60s", ++turn, silent_port,
             silent_server());
    need(frazil_tickets_open(call->line, &call->numbers) == FRAZIL_OK, "tickets");
}

#define OR_LIMIT(plain, limited) max_wait_ms < 0 ? (plain) : (limited)
static frazil_status open_ids(struct call *call, int64_t max_wait_ms) {
    return OR_LIMIT(frazil_snowflake_open(call->line, &call->ids), frazil_snowflake_open_for(call->line, max_wait_ms, &call->ids));
}
static frazil_status open_segment(struct call *call, int64_t max_wait_ms) {
    return OR_LIMIT(frazil_segment_open(call->line, &call->numbers), frazil_segment_open_for(call->line, max_wait_ms, &call->numbers));
}
static frazil_status next(struct call *call, int64_t max_wait_ms) {
    return OR_LIMIT(frazil_snowflake_next(call->ids, call->buffer), frazil_snowflake_next_for(call->ids, max_wait_ms, call->buffer));
}
static frazil_status fill(struct call *call, int64_t max_wait_ms) {
    return OR_LIMIT(frazil_snowflake_fill(call->ids, call->buffer, 1000, NULL),
                    frazil_snowflake_fill_for(call->ids, max_wait_ms, call->buffer, 1000, NULL));
}
static frazil_status release_node(struct call *call, int64_t max_wait_ms) {
    return OR_LIMIT(frazil_snowflake_release_node(call->ids), frazil_snowflake_release_node_for(call->ids, max_wait_ms));
}
static frazil_status close_ids(struct call *call, int64_t max_wait_ms) {
    return OR_LIMIT(frazil_snowflake_close(call->ids), frazil_snowflake_close_for(call->ids, max_wait_ms));
}
static frazil_status numbers_next(struct call *call, int64_t max_wait_ms) {
    return OR_LIMIT(frazil_numbers_next(call->numbers, call->buffer), frazil_numbers_next_for(call->numbers, max_wait_ms, call->buffer));
}
static frazil_status numbers_fill(struct call *call, int64_t max_wait_ms) {
    return OR_LIMIT(frazil_numbers_fill(call->numbers, call->buffer, 3, NULL),
                    frazil_numbers_fill_for(call->numbers, max_wait_ms, call->buffer, 3, NULL));
}

static const struct wait waits[] = {
    {"open", make_silent, open_ids, false},
    {"next", make_hours, next, true},
    {"fill", make_hours, fill, true},
    {"release_node", make_lost, release_node, true},
    {"close", make_lost, close_ids, false},
    {"segment open", make_silent_tag, open_segment, false},
    {"segment next", make_segment, numbers_next, true},
    {"tickets next", make_tickets, numbers_next, true},
    {"tickets fill", make_tickets, numbers_fill, true},
    {"ring next", make_ring, numbers_next, true},
    {"ring fill", make_ring, numbers_fill, true},
};

static const struct wait *running;

static void *run(void *data) {
    struct call *call = data;
    call->status = running->call(call, -1);
    call->ended = now_ms();
    return NULL;
}

static struct call *made(const struct wait *wait) {
    struct call *call = calloc(1, sizeof *call);
    call->lock = -1;
    wait->make(call);
    return call;
}

static void end(struct call *call) {
    if (call->lock >= 0) close(call->lock);
    frazil_snowflake_free(call->ids);
    frazil_numbers_free(call->numbers);
    free(call);
}

static void by_close(const struct wait *wait) {
    double worst = 0;
    frazil_status status = FRAZIL_OK;
    for (int round = 0; round < ROUNDS; ++round) {
        struct call *call = made(wait);
        pthread_t thread;
        running = wait;
        need(pthread_create(&thread, NULL, run, call) == 0, "thread");
        pause_ms(100);
        double since = now_ms();
        /* The release may reach the store later. */
        frazil_status closed = call->ids != NULL ? frazil_snowflake_close_for(call->ids, 0) : FRAZIL_OK;
        if (call->numbers != NULL) closed = frazil_numbers_close_for(call->numbers, 0);
        need(closed == FRAZIL_OK || closed == FRAZIL_WOULD_BLOCK, "close");
        pthread_join(thread, NULL);
        status = call->status;
        if (call->ended - since > worst) worst = call->ended - since;
        end(call);
    }
    printf(" %s %.1f ms |", frazil_error_name(status), worst);
}

static void by_limit(const struct wait *wait) {
    double worst = -1e9;
    frazil_status status = FRAZIL_OK;
    for (int round = 0; round < ROUNDS; ++round) {
        struct call *call = made(wait);
        double since = now_ms();
        status = wait->call(call, LIMIT_MS);
        double late = now_ms() - since - LIMIT_MS;
        if (late > worst) worst = late;
        end(call);
    }
    /* A call does not wait if the next ID certainly comes after its limit. */
    if (worst < -LIMIT_MS / 2) printf(" %s at once |\n", frazil_error_name(status));
    else printf(" %s %+.1f ms |\n", frazil_error_name(status), worst);
}

int main(void) {
    need(mkdtemp(folder) != NULL, folder);
    silent_port = silent_server();
    printf("| wait | close() in another thread | a limit of %d ms, and |\n|---|---|---|\n", LIMIT_MS);
    for (size_t at = 0; at < sizeof waits / sizeof *waits; ++at) {
        printf("| %s |", waits[at].name);
        if (waits[at].closes) by_close(&waits[at]);
        else printf(" |");
        by_limit(&waits[at]);
        fflush(stdout);
    }
    char command[100];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return system(command);
}

/* Cases of tests/vectors/cases.json for the C API, in C99: node numbers that are leased, and forks. */
#define _GNU_SOURCE
#include "helpers.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/syscall.h>

/* A process finds out after 1.5 x renew whether another one holds a number. */
#define QUICK "window=4s renew=1s rollback=error"

/* Checks of a child of any kind. Returns 0, or the number of the check that failed. */
static int child_of(frazil_snowflake *ids, frazil_snowflake *leased) {
    int64_t id;
    uint64_t credit, node;
    frazil_lease lease;
    char text[FRAZIL_ID_TEXT_SIZE];
    frazil_snowflake *mine = NULL;
    if (frazil_snowflake_next(ids, &id) != FRAZIL_FORKED) return 1;
    if (frazil_snowflake_fill(ids, &id, 1, NULL) != FRAZIL_FORKED) return 2;
    if (frazil_snowflake_text(ids, FRAZIL_HEX, text, sizeof text) != FRAZIL_FORKED) return 3;
    if (frazil_snowflake_credit(ids, &credit) != FRAZIL_FORKED) return 4;
    if (frazil_snowflake_open("standard node=308", &mine) != FRAZIL_FORKED || mine != NULL) return 5;
    if (frazil_snowflake_next(leased, &id) != FRAZIL_FORKED) return 6;
    if (frazil_snowflake_node(ids, &node) != FRAZIL_FORKED || frazil_snowflake_node(leased, &node) != FRAZIL_FORKED) return 10;
    if (frazil_snowflake_field(leased, "node", &node) != FRAZIL_FORKED) return 11;
    if (frazil_snowflake_lease(leased, &lease, sizeof lease) != FRAZIL_FORKED) return 12;
    frazil_snowflake_free(leased);
    if (frazil_snowflake_open("standard node=309", &mine) != FRAZIL_OK) return 7;
    if (frazil_snowflake_next(mine, &id) != FRAZIL_OK) return 8;
    frazil_snowflake_free(mine);
    frazil_snowflake_free(ids);
    return 0;
}

/* Checks of a copy of the machine, which is not a forked child. Returns 0, or the number of the check that failed. */
static int copy(void) {
    int64_t id;
    uint64_t node;
    frazil_snowflake *ids = NULL;
    if (frazil_snowflake_open("standard node=310", &ids) != FRAZIL_OK || frazil_snowflake_next(ids, &id) != FRAZIL_OK) return 1;
    if (frazil_restored() != FRAZIL_OK || frazil_snowflake_next(ids, &id) != FRAZIL_COPIED) return 2;
    if (frazil_snowflake_node(ids, &node) != FRAZIL_COPIED) return 3;
    if (frazil_snowflake_field(ids, "node", &node) != FRAZIL_COPIED) return 4;
    frazil_snowflake_free(ids);
    return 0;
}

CASE(fork) {
    frazil_snowflake *ids, *leased;
    int64_t before, id;
    OK(frazil_snowflake_open("standard node=308", &ids));
    OK(frazil_snowflake_open("standard store=memory namespace=c-fork", &leased));
    OK(frazil_snowflake_next(ids, &before));
    fflush(stdout);
    for (int raw = 0; raw < 2; ++raw) {
        pid_t child = raw ? (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL) : fork();
        CHECK(child >= 0);
        if (child == 0) end_child(child_of(ids, leased));
        CHECK(ended_well(child));
        OK(frazil_snowflake_next(ids, &id));
        CHECK(id > before);
        OK(frazil_snowflake_next(leased, &id));
    }
    pid_t copied = fork();
    CHECK(copied >= 0);
    if (copied == 0) end_child(copy());
    CHECK(ended_well(copied));
    frazil_snowflake_free(leased);
    frazil_snowflake_free(ids);
}

CASE(memory_store) {
    const char *spec = "standard store=memory namespace=c-memory detached=true " QUICK;
    frazil_snowflake *one, *two, *given, *again = NULL;
    uint64_t a, b;
    int64_t before, id;
    OK(frazil_snowflake_open(spec, &one));
    OK(frazil_snowflake_open(spec, &two));
    OK(frazil_snowflake_node(one, &a));
    OK(frazil_snowflake_node(two, &b));
    CHECK(a != b);
    OK(frazil_snowflake_next(one, &before));
    OK(frazil_snowflake_release_node(one));
    OK(frazil_snowflake_next(one, &id));
    CHECK(id > before);
    OK(frazil_snowflake_node(one, &a));
    CHECK(a != b);
    frazil_snowflake_free(two);

    char line[160];
    snprintf(line, sizeof line, "%s node=%" PRIu64, spec, a);
    STATUS(frazil_snowflake_open(line, &again), FRAZIL_NODE_IN_USE);
    CHECK(again == NULL);
    OK(frazil_snowflake_close(one));
    OK(frazil_snowflake_open(line, &again));
    OK(frazil_snowflake_next(again, &before));
    CHECK(before > id);
    frazil_snowflake_free(again);
    frazil_snowflake_free(one);

    OK(frazil_snowflake_open("standard node=310", &given));
    STATUS(frazil_snowflake_release_node(given), FRAZIL_SPEC);
    frazil_snowflake_free(given);
}

/* Opens a generator of the folder's store, with `rest` at the end of the spec line. */
static frazil_status open_in(struct folder folder, const char *rest, frazil_snowflake **ids) {
    char line[300];
    snprintf(line, sizeof line, "standard store=file:%s %s", folder.path, rest);
    return frazil_snowflake_open(line, ids);
}

CASE(lease_info) {
    struct folder folder = make_folder();
    frazil_snowflake *ids, *given, *counted;
    frazil_lease lease, later;
    char store[80];
    uint64_t node;
    OK(frazil_snowflake_open("standard node=320", &given));
    memset(&lease, 7, sizeof lease);
    OK(frazil_snowflake_lease(given, &lease, sizeof lease));
    CHECK(!lease.leased && lease.healthy && lease.node == 320 && lease.bound_ms == INT64_MAX && lease.left == -1);
    CHECK(lease.last_status == FRAZIL_OK && *lease.last_error == '\0' && *lease.store == '\0' && *lease.store_namespace == '\0');
    frazil_snowflake_free(given);

    int64_t before = wall_ms();
    OK(open_in(folder, "namespace=eu-items_2.1", &ids));
    OK(frazil_snowflake_lease(ids, &lease, sizeof lease));
    OK(frazil_snowflake_node(ids, &node));
    snprintf(store, sizeof store, "file:%s", folder.path);
    CHECK(lease.leased && lease.healthy && lease.node == node && lease.left == -1);
    CHECK(strcmp(lease.store, store) == 0 && strcmp(lease.store_namespace, "eu-items_2.1") == 0);
    CHECK(lease.last_status == FRAZIL_OK && *lease.last_error == '\0');
    CHECK(lease.bound_ms > before + 2000 && lease.bound_ms < wall_ms() + 5000);
    /* The lease is extended all the time. */
    later = lease;
    for (int i = 0; i < 6000 && later.bound_ms <= lease.bound_ms; ++i) {
        pause_ms(10);
        OK(frazil_snowflake_lease(ids, &later, sizeof later));
    }
    CHECK(later.bound_ms > lease.bound_ms);
    OK(frazil_snowflake_close(ids));
    OK(frazil_snowflake_lease(ids, &lease, sizeof lease));
    CHECK(strcmp(lease.store_namespace, "eu-items_2.1") == 0);
    frazil_snowflake_free(ids);
    remove_folder(folder);

    const char *disposable =
        "layout='time:41@1ms node:1 sequence:12 epoch:2025-01-01' store=memory lease=disposable namespace=c-counted detached=true";
    OK(frazil_snowflake_open(disposable, &counted));
    OK(frazil_snowflake_lease(counted, &lease, sizeof lease));
    CHECK(lease.leased && lease.node == 0 && lease.bound_ms == INT64_MAX && lease.left == 1);
    frazil_snowflake_free(counted);
}

CASE(lease_close_releases) {
    struct folder folder = make_folder();
    frazil_snowflake *one, *two;
    int64_t first, id;
    uint64_t node;
    OK(open_in(folder, "namespace=close", &one));
    OK(open_in(folder, "namespace=close", &two));
    OK(frazil_snowflake_node(one, &node));
    OK(frazil_snowflake_close(one));
    /* The number stays leased, because another handle is open. */
    CHECK(!is_free(folder, "close", node));
    OK(frazil_snowflake_next(two, &first));
    OK(frazil_snowflake_close(two));
    CHECK(is_free(folder, "close", node));
    STATUS(frazil_snowflake_next(two, &id), FRAZIL_CLOSED);
    frazil_snowflake_free(two);
    frazil_snowflake_free(one);

    OK(open_in(folder, "namespace=free", &one));
    OK(frazil_snowflake_node(one, &node));
    frazil_snowflake_free(one);
    CHECK(is_released(folder, "free", node));

    OK(open_in(folder, "namespace=release", &one));
    OK(frazil_snowflake_next(one, &first));
    OK(frazil_snowflake_node(one, &node));
    OK(frazil_snowflake_release_node(one));
    OK(frazil_snowflake_release_node(one));
    CHECK(is_free(folder, "release", node));
    OK(frazil_snowflake_next(one, &id));
    CHECK(id > first);
    OK(frazil_snowflake_node(one, &node));
    CHECK(!is_free(folder, "release", node));
    frazil_snowflake_free(one);

    /* Another process frees its generator and ends. */
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        if (open_in(folder, "namespace=child node=7", &one) != FRAZIL_OK) end_child(__LINE__);
        frazil_snowflake_free(one);
        end_child(is_released(folder, "child", 7) ? 0 : __LINE__);
    }
    CHECK(ended_well(child));
    remove_folder(folder);
}

CASE(lease_named_slot) {
    struct folder folder = make_folder();
    frazil_snowflake *ids = NULL;
    int64_t last = 0, id;
    int up[2], down[2];
    char pid[40];
    CHECK(pipe(up) == 0 && pipe(down) == 0);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        close(down[1]);
        if (open_in(folder, QUICK " node=7", &ids) != FRAZIL_OK || frazil_snowflake_next(ids, &id) != FRAZIL_OK) end_child(__LINE__);
        if (write(up[1], &id, sizeof id) != sizeof id) end_child(__LINE__);
        if (read(down[0], &id, sizeof id) != 0) end_child(__LINE__);
        frazil_snowflake_free(ids);
        end_child(0);
    }
    close(up[1]);
    CHECK(read(up[0], &last, sizeof last) == sizeof last);
    STATUS(open_in(folder, QUICK " node=7", &ids), FRAZIL_NODE_IN_USE);
    snprintf(pid, sizeof pid, ":%d until", (int)child);
    CHECK(ids == NULL && error_has("node number 7 is held by") && error_has(pid) && error_has(folder.path));
    OK(open_in(folder, QUICK " node=8", &ids));
    frazil_snowflake_free(ids);
    close(down[1]);
    CHECK(ended_well(child));
    OK(open_in(folder, QUICK " node=7", &ids));
    OK(frazil_snowflake_next(ids, &id));
    CHECK(id > last);
    frazil_snowflake_free(ids);
    close(down[0]);
    close(up[0]);
    remove_folder(folder);
}

#define EACH 20000

/* The IDs that one of several processes mints, in memory that all of them share. */
struct share {
    frazil_status status;
    uint64_t node;
    int64_t ids[EACH];
};

static void mint_share(frazil_snowflake *ids, struct share *share) {
    size_t half = EACH / 2;
    share->status = frazil_snowflake_fill(ids, share->ids, half, NULL);
    for (size_t i = half; i < EACH && share->status == FRAZIL_OK; ++i) share->status = frazil_snowflake_next(ids, &share->ids[i]);
    if (share->status == FRAZIL_OK) share->status = frazil_snowflake_node(ids, &share->node);
}

static struct share *map_shares(size_t count) {
    void *shares = mmap(NULL, count * sizeof(struct share), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shares == MAP_FAILED) abort();
    return shares;
}

/* Returns whether all shares were minted, with different node numbers and without a duplicate. */
static bool shares_differ(const struct share *shares, size_t count) {
    static int64_t all[4 * EACH];
    frazil_layout *layout;
    bool differ = count <= 4 && frazil_layout_parse("standard", &layout) == FRAZIL_OK;
    for (size_t i = 0; i < count && differ; ++i) {
        differ = shares[i].status == FRAZIL_OK && ascending(shares[i].ids, EACH);
        for (size_t j = 0; j < i; ++j) differ = differ && shares[j].node != shares[i].node;
        for (size_t j = 0; j < EACH && differ; ++j) {
            frazil_parts parts;
            differ = frazil_layout_decode(layout, shares[i].ids[j], &parts, sizeof parts) == FRAZIL_OK && parts.node == shares[i].node;
        }
        memcpy(all + i * EACH, shares[i].ids, sizeof shares[i].ids);
    }
    if (!differ) return false;
    frazil_layout_free(layout);
    qsort(all, count * EACH, sizeof all[0], compare);
    return ascending(all, count * EACH);
}

CASE(lease_file_store) {
    struct folder folder = make_folder();
    struct share *shares = map_shares(3);
    struct barrier all_have_theirs = make_barrier();
    frazil_snowflake *ids;
    pid_t children[2];
    fflush(stdout);
    for (int i = 0; i < 2; ++i) {
        children[i] = fork();
        CHECK(children[i] >= 0);
        if (children[i] == 0) {
            if (open_in(folder, "", &ids) != FRAZIL_OK) end_child(__LINE__);
            mint_share(ids, &shares[i]);
            meet(all_have_theirs);
            frazil_snowflake_free(ids);
            end_child(is_released(folder, "default", shares[i].node) ? 0 : __LINE__);
        }
    }
    OK(open_in(folder, "", &ids));
    mint_share(ids, &shares[2]);
    meet(all_have_theirs);
    for (int i = 0; i < 2; ++i) CHECK(ended_well(children[i]));
    CHECK(shares_differ(shares, 3));
    frazil_snowflake_free(ids);
    munmap(shares, 3 * sizeof *shares);
    remove_folder(folder);
}

/* A child of any kind leases anew on its first use, and both mint at once. */
CASE(fork_leases_anew) {
    struct folder folder = make_folder();
    struct share *shares = map_shares(4);
    struct barrier all_have_theirs = make_barrier();
    frazil_snowflake *ids;
    frazil_lease lease;
    uint64_t node;
    int64_t first, id;
    OK(open_in(folder, "", &ids));
    OK(frazil_snowflake_next(ids, &first));
    OK(frazil_snowflake_node(ids, &node));
    pid_t children[3];
    fflush(stdout);
    for (int i = 0; i < 3; ++i) {
        children[i] = i == 0 ? (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL) : fork();
        CHECK(children[i] >= 0);
        if (children[i] == 0) {
            /* A child that uses nothing does not release its parent's number. */
            if (i == 2) {
                frazil_snowflake_free(ids);
                end_child(0);
            }
            mint_share(ids, &shares[i]);
            if (frazil_snowflake_lease(ids, &lease, sizeof lease) != FRAZIL_OK || lease.node != shares[i].node) end_child(__LINE__);
            meet(all_have_theirs);
            frazil_snowflake_free(ids);
            end_child(is_released(folder, "default", shares[i].node) ? 0 : __LINE__);
        }
    }
    mint_share(ids, &shares[2]);
    meet(all_have_theirs);
    for (int i = 0; i < 3; ++i) CHECK(ended_well(children[i]));
    CHECK(shares[2].node == node);
    CHECK(shares_differ(shares, 3));
    CHECK(!is_free(folder, "default", node));
    OK(frazil_snowflake_next(ids, &id));
    CHECK(id > first);
    frazil_snowflake_free(ids);
    munmap(shares, 4 * sizeof *shares);
    remove_folder(folder);
}

CASE(lease_errors) {
    struct folder folder = make_folder();
    frazil_snowflake *ids = NULL, *one, *two, *thief;
    frazil_lease lease;
    int64_t id;
    STATUS(open_in(folder, "namespace='two words'", &ids), FRAZIL_SPEC);
    CHECK(error_has("namespace") && error_has("a-z"));
    STATUS(open_in(folder, "lease=forever", &ids), FRAZIL_SPEC);
    STATUS(open_in(folder, "renew=99ms", &ids), FRAZIL_OUT_OF_RANGE);
    CHECK(error_has("renew=99ms") && error_has("100ms"));
    STATUS(open_in(folder, "window=2s renew=1s", &ids), FRAZIL_OUT_OF_RANGE);
    CHECK(error_has("window=2s") && error_has("4s"));
    STATUS(open_in(folder, "window=3s lease=disposable", &ids), FRAZIL_SPEC);
    STATUS(frazil_snowflake_open("standard node=1 window=3s", &ids), FRAZIL_SPEC);

    STATUS(frazil_snowflake_open("standard store=redis://:secret@127.0.0.1:1/0 window=4s renew=1s", &ids), FRAZIL_STORE_UNREACHABLE);
    CHECK(error_has("127.0.0.1:1") && !error_has("secret"));

    char line[200];
    struct server silent = make_silent_server();
    /* The refusal contacts no server. */
    snprintf(line, sizeof line, "standard store=redis://u:secret@127.0.0.1:%u/0 lease=disposable", silent.port);
    STATUS(frazil_snowflake_open(line, &ids), FRAZIL_STORE_UNSUITABLE);
    CHECK(error_has("127.0.0.1") && !error_has("secret"));
    CHECK(fcntl(silent.socket, F_SETFL, O_NONBLOCK) == 0 && accept(silent.socket, NULL, NULL) < 0 && errno == EAGAIN);
    snprintf(line, sizeof line, "standard store=redis://127.0.0.1:%u/0 " QUICK, silent.port);
    STATUS(frazil_snowflake_open_for(line, 0, &ids), FRAZIL_WOULD_BLOCK);
    CHECK(frazil_retry_after_ms() > 0);
    STATUS(frazil_snowflake_open(line, &ids), FRAZIL_STORE_UNREACHABLE);
    close(silent.socket);

    OK(open_in(folder, "", &one));
    snprintf(line, sizeof line, "twitter store=file:%s", folder.path);
    STATUS(frazil_snowflake_open(line, &ids), FRAZIL_LAYOUT_MISMATCH);
    STATUS(open_in(folder, "rollback=error", &ids), FRAZIL_CONFLICT);
    frazil_snowflake_free(one);

    OK(frazil_snowflake_open(TWO " namespace=c-errors", &one));
    OK(frazil_snowflake_open(TWO " namespace=c-errors", &two));
    STATUS(frazil_snowflake_open(TWO " namespace=c-errors", &ids), FRAZIL_NO_FREE_NODE);
    CHECK(error_has("all 2 node numbers"));
    /* While another owner has the released number, calls fail and name the reason. Once the number is free, the next call leases it again. */
    OK(frazil_snowflake_release_node(one));
    OK(frazil_snowflake_open(TWO " namespace=c-errors", &thief));
    STATUS(frazil_snowflake_next(one, &id), FRAZIL_LEASE_EXHAUSTED);
    CHECK(error_has("all 2 node numbers"));
    OK(frazil_snowflake_lease(one, &lease, sizeof lease));
    CHECK(!lease.healthy && lease.last_status == FRAZIL_NO_FREE_NODE && strstr(lease.last_error, "all 2 node numbers") != NULL);
    OK(frazil_snowflake_close(thief));
    frazil_snowflake_free(thief);
    for (int i = 0; i < 6000 && frazil_snowflake_next(one, &id) != FRAZIL_OK; ++i) pause_ms(10);
    OK(frazil_snowflake_lease(one, &lease, sizeof lease));
    CHECK(lease.healthy && lease.last_status == FRAZIL_OK && *lease.last_error == '\0');
    frazil_snowflake_free(two);
    frazil_snowflake_free(one);

    /* The store is unreachable when the bound is reached. */
    OK(open_in(folder, "namespace=away " QUICK, &one));
    char away[100], gone[100];
    snprintf(away, sizeof away, "%s/away", folder.path);
    snprintf(gone, sizeof gone, "%s/gone", folder.path);
    CHECK(rename(away, gone) == 0);
    FILE *file = fopen(away, "w");
    CHECK(file != NULL && fclose(file) == 0);
    frazil_status status = FRAZIL_OK;
    for (int i = 0; i < 60000 && status == FRAZIL_OK; ++i) {
        pause_ms(1);
        status = frazil_snowflake_next(one, &id);
    }
    CHECK(status == FRAZIL_LEASE_EXHAUSTED && error_has(" since "));
    OK(frazil_snowflake_lease(one, &lease, sizeof lease));
    CHECK(!lease.healthy && lease.last_status != FRAZIL_OK && *lease.last_error != '\0');
    frazil_snowflake_free(one);
    CHECK(ids == NULL);
    remove_folder(folder);
}

int main(int argc, char **argv) { return run_cases(argc, argv); }

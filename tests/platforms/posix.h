/* The parts of POSIX that the C suites use, on Windows: enough to compile. fork() fails there, and so does the case that calls it. */
#ifndef FRAZIL_TEST_POSIX_H
#define FRAZIL_TEST_POSIX_H

#include <winsock2.h>
#include <ws2tcpip.h>

#include <fcntl.h>
#include <io.h>
#include <process.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/types.h>
#include <unistd.h>

#define SIGUSR1 10
#define SIGKILL 9
#define SIGALRM 14
#define SIGCHLD 17
#define WIFSIGNALED(status) 0
#define WTERMSIG(status) 0
#define WIFEXITED(status) 0
#define WEXITSTATUS(status) 1
#define AT_FDCWD -100
#define RENAME_EXCHANGE 2
#define SYS_renameat2 1
#define SYS_clone 2
#define PROT_READ 1
#define PROT_WRITE 2
#define MAP_SHARED 1
#define MAP_ANONYMOUS 2
#define MAP_FAILED ((void *)-1)

static inline int fork(void) { return -1; }
static inline int waitpid(int child, int *status, int options) { return (void)child, (void)status, (void)options, -1; }
static inline int kill(int process, int number) { return (void)process, (void)number, exit(3), -1; }
static inline int pause(void) { return exit(3), -1; }
static inline int alarm(int seconds) { return (void)seconds, 0; }
static inline long syscall(long number, ...) { return (void)number, -1; }

static inline int test_pipe(int *ends) { return _pipe(ends, 4096, _O_BINARY); }
#define pipe test_pipe

static inline int setenv(const char *name, const char *value, int overwrite) { return (void)overwrite, _putenv_s(name, value); }
static inline int unsetenv(const char *name) { return _putenv_s(name, ""); }

static inline void *mmap(void *at, size_t length, int protection, int flags, int file, long offset) {
    return (void)at, (void)protection, (void)flags, (void)file, (void)offset, calloc(1, length);
}
static inline int munmap(void *at, size_t length) { return (void)length, free(at), 0; }

static inline char *test_mkdtemp(char *template) {
    static char made[600];
    char folder[300];
    GetTempPathA(sizeof folder, folder);
    snprintf(made, sizeof made, "%sfrazil%d_%d", folder, _getpid(), rand());
    CreateDirectoryA(made, NULL);
    return (void)template, made;
}
#define mkdtemp test_mkdtemp

#endif

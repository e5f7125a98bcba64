/* One count for each kind of call. The real functions are the linker's (__real_), the C library's
 * own (__libc_malloc), or the next in the order of libraries. Cost: an atomic addition a call. */
#undef _FILE_OFFSET_BITS /* open and open64 are two names here */
#undef _FORTIFY_SOURCE
#include "failing_calls.h"

#include <errno.h>
#include <stdatomic.h>

static struct {
    atomic_ullong made, first, end; /* those from `first` to before `end` fail */
    atomic_bool failed;
} kinds[FAILING_KINDS] = {{0, UINT64_MAX, UINT64_MAX, false},
                          {0, UINT64_MAX, UINT64_MAX, false},
                          {0, UINT64_MAX, UINT64_MAX, false}};

void fail_calls(enum failing_kind kind, uint64_t first, uint64_t count)
{
    kinds[kind].first = first;
    kinds[kind].end = count < UINT64_MAX - first ? first + count : UINT64_MAX;
    kinds[kind].failed = false;
    kinds[kind].made = 0;
}

void allow_calls(enum failing_kind kind) { fail_calls(kind, UINT64_MAX, 0); }

uint64_t calls_made(enum failing_kind kind) { return kinds[kind].made; }

bool has_call_failed(enum failing_kind kind) { return kinds[kind].failed; }

/* This thread is between the first and the last call of hwloc's in which Tarn reads the machine:
 * calls of hwloc's own are not counted and do not fail (docs/trust.md, "Faults of the past"). */
static _Thread_local bool is_in_hwloc __attribute__((tls_model("initial-exec")));

/* Is this call one to fail? */
static bool is_next(enum failing_kind kind)
{
    if (is_in_hwloc) return false;
    uint64_t number = kinds[kind].made++;
    if (number < kinds[kind].first || number >= kinds[kind].end) return false;
    kinds[kind].failed = true;
    errno = ENOMEM;
    return true;
}

static _Thread_local bool is_openmp_busy __attribute__((tls_model("initial-exec")));

#ifdef FAILING_BY_LINKER

#define REAL(name) __real_##name
#define OURS(name) __wrap_##name
void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *block, size_t size);
void *__real_aligned_alloc(size_t alignment, size_t size);
int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*begin)(void *), void *user);
static bool fails(enum failing_kind kind, const char *name)
{
    (void)name;
    return is_next(kind);
}
#define CALLER NULL
static bool is_of_another(const void *caller)
{
    (void)caller;
    return false; /* the linker's way has no calls of other libraries */
}

#else

#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *block, size_t size);
void *__libc_memalign(size_t alignment, size_t size);
#define __libc_aligned_alloc __libc_memalign
#define REAL(name) __libc_##name
#define OURS(name) name
#define __libc_pthread_create NEXT(pthread_create)
#define CALLER __builtin_return_address(0)

/* The function that a call would have reached without this file. */
#define NEXT(name) ((__typeof__(&name))next(#name))
static void (*next(const char *name))(void)
{
    void (*function)(void);
    *(void **)&function = dlsym(RTLD_NEXT, name);
    return function;
}

/* ---- hwloc, where the library has it ---- */

struct hwloc_topology;
int hwloc_topology_init(struct hwloc_topology **topology);
void hwloc_topology_destroy(struct hwloc_topology *topology);

int hwloc_topology_init(struct hwloc_topology **topology)
{
    is_in_hwloc = true;
    int code = NEXT(hwloc_topology_init)(topology);
    is_in_hwloc = code == 0;
    return code;
}

void hwloc_topology_destroy(struct hwloc_topology *topology)
{
    NEXT(hwloc_topology_destroy)(topology);
    is_in_hwloc = false;
}

/* ---- How a preloaded command is told, and tells ---- */

enum way { FAIL, ALL, AGAIN, PART, KILL, WAYS };
static const char *const kind_words[] = {"memory", "files", "threads"};
static const char *const way_words[] = {"fail", "all", "again", "part", "kill"};
static enum way way;

void interrupt_calls(bool instead) { way = instead ? AGAIN : FAIL; }

static const char *report_path; /* NULL: nobody asks */

static void report(const char *line)
{
    if (!report_path) return;
    long file = syscall(SYS_openat, AT_FDCWD, report_path, O_WRONLY | O_CREAT | O_APPEND, 0666);
    syscall(SYS_write, file, line, strlen(line));
    syscall(SYS_close, file);
}

static void report_failure(const char *name, const char *path)
{
    report("failed ");
    report(name);
    report(" ");
    report(path);
    report("\n");
}

static const char *path_of(int file, char *path, size_t size)
{
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, path, size - 1);
    path[length > 0 ? length : 0] = '\0';
    return path;
}

static void die(void)
{
    if (way == KILL) kill(getpid(), SIGKILL);
}

/* Is the call one of OpenMP's, or made while it creates or ends a thread, or one of jansson's,
 * whose buffer of a token does not survive a failure (docs/trust.md)? */
static bool is_of_another(const void *caller)
{
    Dl_info info;
    return is_openmp_busy ||
           (dladdr(caller, &info) != 0 && info.dli_fname &&
            (strstr(info.dli_fname, "libgomp") || strstr(info.dli_fname, "libomp") ||
             strstr(info.dli_fname, "libjansson")));
}

static bool fails(enum failing_kind kind, const char *name)
{
    if (!is_next(kind)) return false;
    report_failure(name, "");
    die();
    return true;
}

/* ---- Files ---- */

static bool file_fails(const char *name, const char *path, int code)
{
    if (!is_next(FAILING_FILES)) return false;
    report_failure(name, path);
    die();
    errno = code;
    return way != AGAIN && way != PART;
}

static bool descriptor_fails(const char *name, int file, int code)
{
    char path[4096];
    return file_fails(name, path_of(file, path, sizeof path), code);
}

/* How many of the bytes are moved; SIZE_MAX: the call fails. */
static size_t share_of(const char *name, int file, size_t size, int code)
{
    char path[4096];
    if (!is_next(FAILING_FILES)) return size;
    report_failure(name, path_of(file, path, sizeof path));
    bool is_half = way == PART || (way == KILL && strcmp(name, "write") == 0);
    if (size > 1 && is_half) return size / 2;
    die();
    errno = way == AGAIN ? EINTR : code;
    return way == PART ? size : SIZE_MAX;
}

ssize_t read(int file, void *bytes, size_t size)
{
    size_t share = share_of("read", file, size, EIO);
    return share == SIZE_MAX ? -1 : NEXT(read)(file, bytes, share);
}

ssize_t write(int file, const void *bytes, size_t size)
{
    size_t share = share_of("write", file, size, ENOSPC);
    if (share == SIZE_MAX) return -1;
    ssize_t written = NEXT(write)(file, bytes, share);
    if (share < size) die();
    return written;
}

#define OPEN(name)                                                \
    int name(const char *path, int flags, ...)                    \
    {                                                             \
        va_list rest;                                             \
        va_start(rest, flags);                                    \
        mode_t mode = flags & O_CREAT ? va_arg(rest, mode_t) : 0; \
        va_end(rest);                                             \
        if (file_fails("open", path, EIO)) return -1;             \
        return NEXT(name)(path, flags, mode);                     \
    }
OPEN(open)
OPEN(open64)

int close(int file)
{
    bool failed = descriptor_fails("close", file, EIO);
    int code = NEXT(close)(file);
    if (failed) errno = EIO;
    return failed ? -1 : code;
}

int fsync(int file) { return descriptor_fails("fsync", file, EIO) ? -1 : NEXT(fsync)(file); }

int fchmod(int file, mode_t mode)
{
    return descriptor_fails("fchmod", file, EPERM) ? -1 : NEXT(fchmod)(file, mode);
}

int rename(const char *from, const char *to)
{
    return file_fails("rename", to, EACCES) ? -1 : NEXT(rename)(from, to);
}

/* ---- Streams of the C library, which would call their own write ---- */

/* The C library writes on after a part, and the system after a signal. */
static ssize_t write_stream(void *file, const char *bytes, size_t size)
{
    size_t done = 0;
    while (done < size) {
        ssize_t written = write((int)(intptr_t)file, bytes + done, size - done);
        if (written < 0 && (way != AGAIN || errno != EINTR)) break;
        if (written > 0) done += (size_t)written;
    }
    return done == size ? (ssize_t)size : -1;
}

static int close_stream(void *file) { return close((int)(intptr_t)file); }

static FILE *open_stream(int file)
{
    return fopencookie((void *)(intptr_t)file, "w",
                       (cookie_io_functions_t){.write = write_stream, .close = close_stream});
}

#define FOPEN(name)                                                            \
    FILE *name(const char *path, const char *mode)                             \
    {                                                                          \
        if (mode[0] != 'w' || !report_path) return NEXT(name)(path, mode);     \
        int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666); \
        return file < 0 ? NULL : open_stream(file);                            \
    }
FOPEN(fopen)
FOPEN(fopen64)

/* ---- A command's life ---- */

__attribute__((constructor)) static void begin(void)
{
    char kind_word[16], way_word[16];
    unsigned long long number;
    const char *setting = getenv("FAILING_CALLS");
    report_path = getenv("FAILING_REPORT");
    if (!report_path) return;
    stdout = open_stream(STDOUT_FILENO);
    for (unsigned kind = 0; kind < FAILING_KINDS; kind++) allow_calls(kind);
    if (!setting || sscanf(setting, "%15s %15s %llu", kind_word, way_word, &number) != 3) return;
    for (unsigned w = 0; w < WAYS; w++)
        if (strcmp(way_word, way_words[w]) == 0) way = w;
    for (unsigned kind = 0; kind < FAILING_KINDS; kind++)
        if (strcmp(kind_word, kind_words[kind]) == 0)
            fail_calls(kind, number, way == ALL ? UINT64_MAX : 1);
}

__attribute__((destructor)) static void end(void)
{
    char line[64];
    for (unsigned kind = 0; report_path && kind < FAILING_KINDS; kind++) {
        snprintf(line, sizeof line, "%s %llu\n", kind_words[kind],
                 (unsigned long long)calls_made(kind));
        report(line);
    }
}

#endif

/* ---- Memory and threads ---- */

/* Of no bytes the library gets NULL, as C allows: nothing may take that for want of memory. */
static bool gives_nothing(size_t size)
{
#ifdef FAILING_BY_LINKER
    return size == 0;
#else
    (void)size;
    return false;
#endif
}

void *OURS(malloc)(size_t size)
{
    if (is_of_another(CALLER)) return REAL(malloc)(size);
    return fails(FAILING_MEMORY, "malloc") || gives_nothing(size) ? NULL : REAL(malloc)(size);
}

void *OURS(calloc)(size_t count, size_t size)
{
    if (is_of_another(CALLER)) return REAL(calloc)(count, size);
    if (fails(FAILING_MEMORY, "calloc") || gives_nothing(count * size)) return NULL;
    return REAL(calloc)(count, size);
}

void *OURS(realloc)(void *block, size_t size)
{
    if (is_of_another(CALLER)) return REAL(realloc)(block, size);
    return fails(FAILING_MEMORY, "realloc") ? NULL : REAL(realloc)(block, size);
}

void *OURS(aligned_alloc)(size_t alignment, size_t size)
{
    if (is_of_another(CALLER)) return REAL(aligned_alloc)(alignment, size);
    return fails(FAILING_MEMORY, "aligned_alloc") ? NULL : REAL(aligned_alloc)(alignment, size);
}

int OURS(pthread_create)(pthread_t *thread, const pthread_attr_t *attributes,
                         void *(*begin_thread)(void *), void *user)
{
    bool is_its = is_of_another(CALLER);
    if (!is_its && fails(FAILING_THREADS, "pthread_create")) return EAGAIN;
    is_openmp_busy = is_its;
    int code = REAL(pthread_create)(thread, attributes, begin_thread, user);
    is_openmp_busy = false;
    return code;
}

#ifndef FAILING_BY_LINKER

/* Threads of OpenMP's end so, and the C library then loads what unwinds their stacks. */
void pthread_exit(void *result)
{
    is_openmp_busy = true;
    NEXT(pthread_exit)(result);
    __builtin_unreachable();
}

#endif

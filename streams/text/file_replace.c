/* Writes files so that they exist whole or not at all: temporary name in the same folder, fsync,
 * rename. A process that is killed in between leaves the temporary file, which is harmless. Cost:
 * linear. */
#include "file_replace.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "streams/base/memory.h"

/* Maximum bytes of one write call; Linux writes less than 2^31 anyway. */
#define STEP_MAX ((size_t)1 << 30)

/* ---- Writing ---- */

/* Writing to a pipe without a reader, or beyond the file-size limit, sends the thread a signal that
 * ends the process. It must be a write error instead, without changing the host's signal handlers.
 * So the thread blocks the two signals, and consumes those that its own writes have sent.
 */
struct held_signals {
    sigset_t held;   /* not pending before */
    sigset_t before; /* the thread's mask */
};

static void hold_signals(struct held_signals *signals)
{
    static const int numbers[] = {SIGPIPE, SIGXFSZ};
    sigset_t pending;
    sigpending(&pending);
    sigemptyset(&signals->held);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (!sigismember(&pending, numbers[i])) sigaddset(&signals->held, numbers[i]);
    pthread_sigmask(SIG_BLOCK, &signals->held, &signals->before);
}

static void release_signals(const struct held_signals *signals)
{
    static const struct timespec now;
    int why = errno;
    while (sigtimedwait(&signals->held, NULL, &now) > 0) continue; /* it does not wait */
    pthread_sigmask(SIG_SETMASK, &signals->before, NULL);
    errno = why;
}

/* False: errno says why. */
static bool write_bytes(int fd, const char *bytes, size_t size)
{
    struct held_signals signals;
    ssize_t written = 0;
    hold_signals(&signals);
    while (size > 0) {
        written = write(fd, bytes, size < STEP_MAX ? size : STEP_MAX);
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) break;
        bytes += written;
        size -= (size_t)written;
    }
    release_signals(&signals);
    return size == 0;
}

/* ---- Where it goes ---- */

/* The target of a path after following links. */
struct target {
    char *path;
    int descriptor; /* the process's own that the path names, or -1 */
    bool exists;
    struct stat about;
};

/* "/dev/stdout" leads to "/proc/self/fd/1": the descriptor itself, whatever it refers to. */
static int named_descriptor(const char *path)
{
    static const char *const folders[] = {"/proc/self/fd/", "/dev/fd/"};
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        size_t length = strlen(folders[i]);
        const char *digits = path + length;
        if (strncmp(path, folders[i], length) != 0 || strlen(digits) > 9) continue;
        if (*digits && digits[strspn(digits, "0123456789")] == '\0') return atoi(digits);
    }
    return -1;
}

/* The path that the symbolic link at `path` holds, relative to that link's folder; NULL: no
 * memory. */
static char *beside(const char *path, const char *link)
{
    const char *slash = link[0] == '/' ? NULL : strrchr(path, '/');
    int folder = slash ? (int)(slash + 1 - path) : 0;
    size_t size = (size_t)folder + strlen(link) + 1;
    char *joined = tarn_take(size);
    if (joined) snprintf(joined, size, "%.*s%s", folder, path, link);
    return joined;
}

/* Follows links to the end, even if the target does not exist. */
static enum tarn_status find_target(struct target *target, const char *path,
                                    struct tarn_error *error)
{
    enum { LINKS_MAX = 40 };
    char link[PATH_MAX];
    *target = (struct target){.path = tarn_take_string(path), .descriptor = -1};
    if (strcmp(path, "-") == 0) target->descriptor = STDOUT_FILENO;
    for (int links = 0; target->path && target->descriptor < 0; links++) {
        target->descriptor = named_descriptor(target->path);
        ssize_t length = readlink(target->path, link, sizeof link - 1);
        if (target->descriptor >= 0 || length < 0) break;
        errno = ELOOP;
        if (links == LINKS_MAX) return tarn_error_file(error, path, "cannot be opened");
        link[length] = '\0';
        char *next = beside(target->path, link);
        tarn_free(target->path);
        target->path = next;
    }
    if (!target->path) return tarn_error_no_memory(error);
    target->exists = target->descriptor < 0 && stat(target->path, &target->about) == 0;
    return TARN_OK;
}

/* ---- Writing ---- */

/* Writes to a pipe or a device (which cannot be renamed), or to an open descriptor. */
static enum tarn_status write_in_place(const struct target *target, const char *path,
                                       const char *bytes, size_t size, struct tarn_error *error)
{
    bool is_open = target->descriptor >= 0;
    if (strcmp(path, "-") == 0) path = "standard output";
    if (target->descriptor == STDOUT_FILENO) fflush(stdout);
    int fd = is_open ? target->descriptor : open(target->path, O_WRONLY | O_CLOEXEC);
    if (fd < 0) return tarn_error_file(error, path, "cannot be opened");
    enum tarn_status status = TARN_OK;
    if (!write_bytes(fd, bytes, size)) status = tarn_error_file(error, path, "cannot be written");
    if (!is_open && close(fd) != 0 && status == TARN_OK)
        status = tarn_error_file(error, path, "cannot be written");
    return status;
}

/* Opens a new file in the folder of `path`; writes its name to `name`. Not mkstemp: the mode of a
 * new file must follow the umask. */
static int open_temporary(const char *path, char *name, size_t name_size)
{
    const char *slash = strrchr(path, '/');
    int fd = -1, folder = slash ? (int)(slash + 1 - path) : 0;
    for (unsigned attempt = 0; attempt < 1000 && fd < 0; attempt++) {
        snprintf(name, name_size, "%.*starn-%ld-%u.tmp", folder, path, (long)getpid(), attempt);
        fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd < 0 && errno != EEXIST) break;
    }
    return fd;
}

/* The new file takes the mode of the replaced file, and its owner and group as far as the system
 * allows. */
static bool keep_attributes(int fd, const struct target *target)
{
    mode_t mode = target->about.st_mode & 07777;
    if (!target->exists) return true;
    if (fchown(fd, target->about.st_uid, target->about.st_gid) != 0) {
        int group = fchown(fd, (uid_t)-1, target->about.st_gid);
        mode &= group == 0 ? ~(mode_t)S_ISUID : ~(mode_t)(S_ISUID | S_ISGID);
    }
    return fchmod(fd, mode) == 0;
}

/* name: room for a temporary name. */
static enum tarn_status write_and_rename(const struct target *target, const char *path, char *name,
                                         size_t name_size, const char *bytes, size_t size,
                                         struct tarn_error *error)
{
    if (target->exists && faccessat(AT_FDCWD, target->path, W_OK, AT_EACCESS) != 0)
        return tarn_error_file(error, path, "cannot be written");
    int fd = open_temporary(target->path, name, name_size);
    if (fd < 0) return tarn_error_file(error, path, "cannot be created");
    bool ok = write_bytes(fd, bytes, size) && keep_attributes(fd, target) && fsync(fd) == 0;
    int why = errno;
    if (close(fd) != 0 && ok) {
        ok = false;
        why = errno;
    }
    if (ok && rename(name, target->path) == 0) return TARN_OK;
    if (!ok) errno = why;
    enum tarn_status status = tarn_error_file(error, path, "cannot be written");
    unlink(name);
    return status;
}

static enum tarn_status write_regular(const struct target *target, const char *path,
                                      const char *bytes, size_t size, struct tarn_error *error)
{
    size_t name_size = strlen(target->path) + 64;
    char *name = tarn_take(name_size);
    enum tarn_status status =
        name ? write_and_rename(target, path, name, name_size, bytes, size, error)
             : tarn_error_no_memory(error);
    tarn_free(name);
    return status;
}

enum tarn_status tarn_file_replace(const char *path, const char *bytes, size_t size,
                                   struct tarn_error *error)
{
    struct target target;
    enum tarn_status status = find_target(&target, path, error);
    bool is_in_place = target.descriptor >= 0 || (target.exists && !S_ISREG(target.about.st_mode));
    if (status == TARN_OK)
        status = is_in_place ? write_in_place(&target, path, bytes, size, error)
                             : write_regular(&target, path, bytes, size, error);
    tarn_free(target.path);
    return status;
}

/* Compares files: by device and inode if a file exists, else by the name in its folder. */
#include "values.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A place for a file: the folder, and the name in it. */
struct place {
    struct stat folder;
    char name[NAME_MAX + 1];
};

/* Finds the place of a path whose file does not exist yet. */
static bool find_place(const char *path, struct place *place)
{
    char at[PATH_MAX], link[PATH_MAX];
    int length = snprintf(at, sizeof at, "%s", path);
    for (int links = 0; links < 40 && length >= 0 && (size_t)length < sizeof at; links++) {
        char *slash = strrchr(at, '/'), joined[2 * PATH_MAX];
        ssize_t size = readlink(at, link, sizeof link - 1);
        if (size < 0) {
            snprintf(place->name, sizeof place->name, "%.*s", NAME_MAX, slash ? slash + 1 : at);
            if (slash) slash[1] = '\0';
            return stat(slash ? at : ".", &place->folder) == 0;
        }
        link[size] = '\0';
        if (slash) slash[1] = '\0';
        snprintf(joined, sizeof joined, "%s%s", slash && link[0] != '/' ? at : "", link);
        length = snprintf(at, sizeof at, "%s", joined);
    }
    return false;
}

static bool look_at(const char *path, bool is_output, struct stat *about)
{
    if (strcmp(path, "-") == 0) return fstat(is_output ? STDOUT_FILENO : STDIN_FILENO, about) == 0;
    return stat(path, about) == 0;
}

bool tarn_is_same_file(const char *a, bool a_is_output, const char *b, bool b_is_output)
{
    struct stat x, y;
    struct place p, q;
    bool a_exists = look_at(a, a_is_output, &x), b_exists = look_at(b, b_is_output, &y);
    if (a_exists != b_exists) return false;
    if (a_exists) return S_ISREG(x.st_mode) && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
    return find_place(a, &p) && find_place(b, &q) && strcmp(p.name, q.name) == 0 &&
           p.folder.st_dev == q.folder.st_dev && p.folder.st_ino == q.folder.st_ino;
}

/* Idea: a header of one line that says what follows, the bytes of every tensor that is learnt, and
 * a digest. Written to another name, synchronized and renamed: a reader finds the old file or the
 * new one.
 * Cost: one pass over the state. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fail.h"
#include "state.h"

struct header {
    char text[128];
};
static struct header header(const struct options *o, size_t bytes)
{
    struct header h = {{0}};
    snprintf(h.text, sizeof h.text, "tarn-train 1: %s %s width %d, %zu bytes", o->network,
             o->optimizer, o->width, bytes);
    return h;
}

static size_t sum(const struct piece *pieces, int n)
{
    size_t bytes = 0;
    for (int i = 0; i < n; i++) bytes += pieces[i].size;
    return bytes;
}

void checkpoint_write(const char *path, const struct state *state, const struct tape *tape,
                      const struct options *o, uint64_t next)
{
    struct piece pieces[PIECES_MAX];
    char temporary[4096];
    int n = state_pieces(state, tape, pieces);
    struct header h = header(o, sum(pieces, n));
    uint64_t check = digest(0, &next, sizeof next);
    snprintf(temporary, sizeof temporary, "%s.%ld.tmp", path, (long)getpid());
    FILE *file = fopen(temporary, "wb");
    bool well = file && fwrite(&h, sizeof h, 1, file) && fwrite(&next, sizeof next, 1, file);
    for (int i = 0; well && i < n; i++) {
        well = fwrite(pieces[i].at, pieces[i].size, 1, file);
        check = digest(check, pieces[i].at, pieces[i].size);
    }
    well = well && fwrite(&check, sizeof check, 1, file) && !fflush(file) && !fsync(fileno(file));
    if (file) well = !fclose(file) && well;
    if (!well || rename(temporary, path)) {
        unlink(temporary);
        fail(TARN_SYSTEM, "%s: the checkpoint cannot be written", path);
    }
}

static uint64_t read_here(const char *path, const struct piece *pieces, int n,
                          const struct options *o)
{
    struct header is, wanted = header(o, sum(pieces, n));
    uint64_t next = 0, check = 0, found;
    FILE *file = fopen(path, "rb");
    if (!file) fail(TARN_SYSTEM, "%s: cannot be opened", path);
    if (!fread(&is, sizeof is, 1, file) || !memchr(is.text, 0, sizeof is.text) ||
        strncmp(is.text, "tarn-train", 10))
        fail(TARN_BAD_INPUT, "%s: not a checkpoint", path);
    if (strcmp(is.text, wanted.text))
        fail(TARN_BAD_INPUT, "%s: it is of '%s', not of '%s'", path, is.text, wanted.text);
    bool well = fread(&next, sizeof next, 1, file);
    check = digest(0, &next, sizeof next);
    for (int i = 0; well && i < n; i++) {
        well = fread(pieces[i].at, pieces[i].size, 1, file);
        check = digest(check, pieces[i].at, pieces[i].size);
    }
    if (!well || !fread(&found, sizeof found, 1, file) || found != check)
        fail(TARN_BAD_INPUT, "%s: the checkpoint is damaged", path);
    fclose(file);
    return next;
}

uint64_t checkpoint_read(const char *path, const struct state *state, const struct tape *tape,
                         const struct options *o)
{
    struct piece pieces[PIECES_MAX];
    int n = state_pieces(state, tape, pieces);
    uint64_t next = rank == 0 ? read_here(path, pieces, n, o) : 0;
    ranks_send(&next, sizeof next);
    for (int i = 0; i < n; i++) ranks_send(pieces[i].at, pieces[i].size);
    return next;
}

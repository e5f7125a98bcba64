/* Idea: MPI is called by the main thread before and after training, and by the thread of the
 * communication stream during it; so MPI_THREAD_SERIALIZED is enough.
 * Cost: a sum moves each buffer twice, as any all-reduce does. */
#include "ranks.h"

#include <mpi.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fail.h"

int rank, ranks = 1;

void fail(int code, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    char text[1024];
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    fprintf(stderr, "train: rank %d: %s\n", rank, text);
    fflush(NULL);
    int started = 0;
    MPI_Initialized(&started);
    if (started) MPI_Abort(MPI_COMM_WORLD, code);
    _Exit(code);
}

void ranks_begin(int *argc, char ***argv)
{
    int provided;
    MPI_Init_thread(argc, argv, MPI_THREAD_SERIALIZED, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (provided < MPI_THREAD_SERIALIZED)
        fail(TARN_SYSTEM, "this MPI cannot be called from another thread than the first");
}

void ranks_end(void) { MPI_Finalize(); }

void ranks_send(void *data, size_t size)
{
    MPI_Bcast(data, (int)size, MPI_BYTE, 0, MPI_COMM_WORLD);
}

bool ranks_agree(bool here)
{
    int mine = here, everywhere;
    MPI_Allreduce(&mine, &everywhere, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    return everywhere;
}

void ranks_gather(const void *part, size_t size, void *whole)
{
    MPI_Gather(part, (int)size, MPI_BYTE, whole, (int)size, MPI_BYTE, 0, MPI_COMM_WORLD);
}

/* ---- A communication stream ---- */

struct channel {
    MPI_Comm communicator;
};

struct channel *channel_create(void)
{
    struct channel *channel = malloc(sizeof *channel);
    if (!channel) fail(TARN_SYSTEM, "no memory");
    MPI_Comm_dup(MPI_COMM_WORLD, &channel->communicator);
    MPI_Comm_set_errhandler(channel->communicator, MPI_ERRORS_RETURN);
    return channel;
}

void channel_destroy(struct channel *channel)
{
    MPI_Comm_free(&channel->communicator);
    free(channel);
}

size_t channel_scratch(size_t count)
{
    return ranks > 1 ? (count + (size_t)ranks) * sizeof(float) : 0;
}

enum { RANKS_MAX = 64 };

int channel_sum(struct channel *channel, float *buffer, size_t count, float *scratch)
{
    int sizes[RANKS_MAX], begins[RANKS_MAX], mine[RANKS_MAX], places[RANKS_MAX];
    if (ranks == 1) return 0;
    for (int r = 0; r < ranks; r++) {
        begins[r] = (int)(count * (size_t)r / (size_t)ranks);
        sizes[r] = (int)(count * (size_t)(r + 1) / (size_t)ranks) - begins[r];
    }
    for (int r = 0; r < ranks; r++) mine[r] = sizes[rank], places[r] = r * sizes[rank];
    int code = MPI_Alltoallv(buffer, sizes, begins, MPI_FLOAT, scratch, mine, places, MPI_FLOAT,
                             channel->communicator);
    if (code) return code;
    for (int distance = 1; distance < ranks; distance *= 2)
        for (int r = 0; r + distance < ranks; r += 2 * distance)
            for (int i = 0; i < sizes[rank]; i++)
                scratch[places[r] + i] += scratch[places[r + distance] + i];
    memcpy(buffer + begins[rank], scratch, (size_t)sizes[rank] * sizeof *scratch);
    return MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, buffer, sizes, begins, MPI_FLOAT,
                          channel->communicator);
}

/* Idea: MPI is called by the main thread before and after training, and by the thread of the
 * communication stream during it; so MPI_THREAD_SERIALIZED is enough.
 * Cost: a sum sends each buffer once for 2 ranks, twice for 4. */
#include <mpi.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "train.h"

int rank, ranks = 1;
struct tarn_error error;
static MPI_Comm communication; /* of the stream: nobody else's messages are taken for its */

void fail(int code, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    char text[1024];
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    fprintf(stderr, "train: rank %d: %s\n", rank, text);
    fflush(NULL);
    if (ranks > 1) MPI_Abort(MPI_COMM_WORLD, code);
    _Exit(code);
}

void *zeros(size_t count, size_t size)
{
    void *memory = calloc(count, size);
    if (!memory) fail(TARN_SYSTEM, "no memory");
    return memory;
}

const char *named(const char *format, ...)
{
    char *name;
    va_list arguments;
    va_start(arguments, format);
    if (vasprintf(&name, format, arguments) < 0) fail(TARN_SYSTEM, "no memory");
    va_end(arguments);
    return name;
}

void ranks_begin(int *argc, char ***argv)
{
    int provided;
    MPI_Init_thread(argc, argv, MPI_THREAD_SERIALIZED, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Comm_dup(MPI_COMM_WORLD, &communication);
    MPI_Comm_set_errhandler(communication, MPI_ERRORS_RETURN);
    if (provided < MPI_THREAD_SERIALIZED)
        fail(TARN_SYSTEM, "this MPI cannot be called from another thread than the first");
}

void ranks_end(void)
{
    MPI_Comm_free(&communication);
    MPI_Finalize();
}

void ranks_send(void *bytes, size_t size)
{
    MPI_Bcast(bytes, (int)size, MPI_BYTE, 0, MPI_COMM_WORLD);
}

void ranks_gather(void *floats, size_t count)
{
    MPI_Reduce(rank ? floats : MPI_IN_PLACE, floats, (int)count, MPI_FLOAT, MPI_SUM, 0,
               MPI_COMM_WORLD);
}

/* By recursive doubling: first pairs, then pairs of pairs, ((0 + 1) + (2 + 3)). Together with the
 * trees of local shards, the bits are those of one rank that holds all shards. */
int ranks_sum(float *buffer, size_t count, float *scratch)
{
    for (int distance = 1; distance < ranks; distance *= 2) {
        int other = rank ^ distance;
        int code = MPI_Sendrecv(buffer, (int)count, MPI_FLOAT, other, 0, scratch, (int)count,
                                MPI_FLOAT, other, 0, communication, MPI_STATUS_IGNORE);
        if (code) return code;
        for (size_t i = 0; i < count; i++) buffer[i] += scratch[i];
    }
    return 0;
}

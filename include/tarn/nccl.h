/* NCCL's symmetric memory for arenas. Needs no NCCL to build: the library is loaded when it is
 * opened.
 *
 *     tarn_nccl_open(NULL, &nccl, &error);
 *     memory = tarn_nccl_memory(nccl);                        for tarn_cuda_options: ncclMemAlloc
 *     registrar = tarn_nccl_registrar(&communicator);     for a session or an arena
 *
 * All ranks of a communicator create the session, or the arena, together: registering a window is a
 * collective call. Their plans come from one family (tarn_family_plan), or are equal. Kernels then
 * call NCCL as always: it finds the window by the address. */
#ifndef TARN_NCCL_H
#define TARN_NCCL_H

#include "device.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tarn_nccl;

/* library: path or soname; NULL: libnccl.so.2, which a process that uses it already has loaded.
 * TARN_DEVICE: it cannot be loaded, or has no windows (they came with NCCL 2.27). The caller closes
 * it after all that uses it is gone; the library stays loaded. Any thread. */
TARN_API enum tarn_status tarn_nccl_open(const char *library, struct tarn_nccl **nccl,
                                         struct tarn_error *error);
TARN_API void tarn_nccl_close(struct tarn_nccl *nccl);

/* Memory by ncclMemAlloc, which windows need; in use until the device is closed. All zeros for
 * NULL. */
TARN_API struct tarn_memory_source tarn_nccl_memory(struct tarn_nccl *nccl);

/* A communicator as NCCL has it (ncclComm_t), and where its functions are. */
struct tarn_nccl_communicator {
    struct tarn_nccl *nccl;
    void *communicator;
};
/* Registers windows by ncclCommWindowRegister, with NCCL_WIN_COLL_SYMMETRIC. `communicator` lives
 * as long as what uses it. */
TARN_API struct tarn_registrar
tarn_nccl_registrar(const struct tarn_nccl_communicator *communicator);

#ifdef __cplusplus
}
#endif

#endif

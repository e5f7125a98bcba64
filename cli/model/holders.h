/* What lies in the arena; see model.h. */
#ifndef TARN_CLI_MODEL_HOLDERS_H
#define TARN_CLI_MODEL_HOLDERS_H

#include "model.h"

/* Fills in the holders of a model whose launches are there. False: no memory. */
bool tarn_holders_read(struct tarn_model *model);

#endif

/* The effort of the conformance suite in the project's own tests. */
#ifndef TARN_TESTS_SUPPORT_CONFORMANCE_H
#define TARN_TESTS_SUPPORT_CONFORMANCE_H

#include <stdlib.h>

#include "random_graph.h"
#include "tarn/conformance.h"

static inline enum tarn_conformance_effort conformance_effort(void)
{
    if (SANITIZED) return TARN_CONFORMANCE_QUICK;
    return getenv("TARN_CAMPAIGN") ? TARN_CONFORMANCE_THOROUGH : TARN_CONFORMANCE_USUAL;
}

#endif

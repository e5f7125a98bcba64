/* The verifier's door. Proving a whole plan is public: tarn_plan_verify (tarn/plan.h). */
#ifndef TARN_STREAMS_VERIFY_VERIFY_H
#define TARN_STREAMS_VERIFY_VERIFY_H

#include "streams/plan/plan.h"

/* The first part of the proof, which a session relies on even when it trusts a plan: TARN_BAD_INPUT
 * with the first violation that makes a plan impossible to replay. */
enum tarn_status tarn_plan_check_form(const struct tarn_plan *plan, struct tarn_error *error);

#endif

/* The verifier's internal interface. Proving a whole plan is public: tarn_plan_verify
 * (tarn/plan.h). */
#ifndef TARN_STREAMS_VERIFY_VERIFY_H
#define TARN_STREAMS_VERIFY_VERIFY_H

#include "streams/plan/switch.h"

/* The first part of the proof, which a session relies on even when it trusts a plan: TARN_BAD_INPUT
 * with the first violation that makes a plan impossible to replay. */
enum tarn_status tarn_plan_check_form(const struct tarn_plan *plan, struct tarn_error *error);

/* Checks and copies the given options; NULL: no permissions. */
enum tarn_status tarn_verify_options_take(struct tarn_verify_options *options,
                                          const struct tarn_verify_options *given,
                                          struct tarn_error *error);

/* Proves that these waits at the switch from one plan to another are enough, whatever was between:
 * every op of the first iteration of `to` comes after all uses in the last iteration of `from` of
 * bytes that both use, if one of the two writes. Both plans have been proved for themselves.
 * TARN_REJECTED: two touches that nothing orders; TARN_SYSTEM. */
enum tarn_status tarn_switch_verify(const struct tarn_switch *pair, const struct tarn_wait *waits,
                                    uint32_t count, struct tarn_error *error);

/* Do the members of symmetric groups that collectives begin with lie alike in their groups? A rule
 * of the graphs of a family, for the planner: tarn_family_verify checks it, too. TARN_BAD_INPUT:
 * `error` names the collective, the member and both graphs; TARN_SYSTEM: no memory. */
enum tarn_status tarn_family_check_begins(struct tarn_plan *const *plans, size_t count,
                                          struct tarn_error *error);

#endif

/* Order and address together, as the MODeL paper asks for: an order is worth what it needs when it
 * is placed. */
#ifndef TARN_PLANNER_JOINT_H
#define TARN_PLANNER_JOINT_H

#include "plan_graph.h"

/* As tarn_graph_reorder, but where storages lie in contiguous groups, or streams are going to be
 * coupled, several orders are coupled and placed, quickly, and the one that needs the least is the
 * result; the graph itself, shared, when that is the order that came in. The plan comes with it
 * where no other one can be better. plan: what the result will be planned by. */
enum tarn_status tarn_joint_reorder(struct tarn_graph *graph,
                                    const struct tarn_reorder_options *options,
                                    const struct tarn_plan_options *plan,
                                    struct tarn_planned *result, struct tarn_error *error);

#endif

#!/usr/bin/env bash
# The trainer of examples/train: whatever keeps its tensors, however many ranks share its shards, and
# whatever transforms the graph, the losses and parameters have the same bits. TAP on stdout.
#
#   train_test.sh SOURCE PROGRAM TARN
set -u
cd "$1" || exit 1
program=$2 tarn=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
number=0
echo "1..27"

# Several ranks may share a core, and root may run them (in containers).
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_mpi_yield_when_idle=1
export OMP_NUM_THREADS=1
train() { # train RANKS OPTION...
    local ranks=$1
    shift
    timeout 120 mpirun -n "$ranks" --oversubscribe --bind-to none "$program" "$@"
}

# report NAME FINDINGS: passes when nothing was found.
report() {
    number=$((number + 1))
    if [ -z "$2" ]; then
        echo "ok $number - $1"
    else
        echo "not ok $number - $1"
        sed 's/^/# /' <<<"$2"
    fi
}

bits() { grep '^bits:' "$1" || tail -3 "$1"; }

# ---- What it computes ----

for network in digits text; do
    report "gradients_of_${network}_equal_differences_of_the_loss" "$(
        train 1 --network $network --check-gradient >"$work/out" 2>&1 || cat "$work/out"
    )"
done

right() { sed -nE 's/^evaluation: ([0-9]+) of.*/\1/p' "$work/out"; }
train 2 --steps 80 >"$work/out" 2>&1
report digits_that_were_not_trained_on_are_recognized "$([ "$(right)" -ge 270 ] || cat "$work/out")"
train 2 --network text --steps 60 >"$work/out" 2>&1
report characters_of_another_part_of_the_text_are_foretold "$([ "$(right)" -ge 1800 ] || cat "$work/out")"

# ---- Bits ----

# same_bits NETWORK RANKS EXPECTED BUDGET: all nine ways of keeping the tensors of a step, on several ranks the five
# in the arena or of a plain graph.
same_bits() {
    local memory transforms
    for memory in arena malloc free-at-last-use; do
        for transforms in "" "--reorder --couple --in-place" "--budget $4"; do
            [ "$2" = 1 ] || [ $memory = arena ] || [ -z "$transforms" ] || continue
            # shellcheck disable=SC2086
            train "$2" --network "$1" --steps 8 --memory $memory $transforms >"$work/out" 2>&1
            [ "$(bits "$work/out")" = "$3" ] || echo "$memory $transforms: $(bits "$work/out")"
            [[ $transforms != --budget* ]] || grep -qE '^budget: .* [1-9][0-9]* ops again' "$work/out" ||
                echo "$memory $transforms: nothing is run again"
        done
    done
}
for network in digits text; do
    train 1 --network $network --steps 8 --memory malloc >"$work/out" 2>&1
    expected=$(bits "$work/out")
    for ranks in 1 2 4; do
        budget=85% # of digits; the gradients' sums alone are 70 %
        [ $network = digits ] || budget=70%
        report "${network}_on_${ranks}_ranks_has_the_same_bits_however_tensors_are_kept" \
            "$(same_bits $network $ranks "$expected" $budget)"
    done
    for ranks in 1 2; do
        train $ranks --network $network --steps 8 --budget $budget --offload 2000 >"$work/out" 2>&1
        report "${network}_on_${ranks}_ranks_has_the_same_bits_while_tensors_wait_in_a_second_memory" \
            "$([ "$(bits "$work/out")" = "$expected" ] &&
                grep -qE '^offload: [1-9]' "$work/out" || tail -5 "$work/out")"
    done
    train 2 --network $network --steps 8 --second-stream --bucket 1 --wire 300 >"$work/out" 2>&1
    report "${network}_has_the_same_bits_with_more_streams_and_buckets_and_a_slow_network" \
        "$([ "$(bits "$work/out")" = "$expected" ] || bits "$work/out")"
done

# ---- Checkpoints ----

parameters() { sed -nE 's/^bits:.* parameters //p' "$1"; }
for network in digits text; do
    train 1 --network $network --steps 9 >"$work/whole" 2>&1
    train 2 --network $network --steps 5 --checkpoint "$work/checkpoint" >"$work/out" 2>&1
    train 1 --network $network --steps 4 --resume "$work/checkpoint" >"$work/out" 2>&1
    report "${network}_goes_on_from_a_checkpoint_with_the_same_bits" \
        "$([ -n "$(parameters "$work/whole")" ] &&
            [ "$(parameters "$work/out")" = "$(parameters "$work/whole")" ] || tail -3 "$work/out")"
done
cp "$work/checkpoint" "$work/damaged"
printf 'x' | dd of="$work/damaged" bs=1 seek=50000 conv=notrunc 2>/dev/null
# refused NAME CODE PATTERN RANKS OPTION...: all ranks end, and the line says why.
refused() {
    local name=$1 code=$2 pattern=$3 status=0
    shift 3
    train "$@" >"$work/out" 2>&1 || status=$?
    report "$name" "$([[ $status == $code ]] && grep -qE "^train: rank $pattern" "$work/out" ||
        { echo "exit $status"; tail -20 "$work/out"; })"
}
refused a_damaged_checkpoint_is_refused 3 '0: .*: the checkpoint is damaged' \
    2 --network text --resume "$work/damaged"
refused a_checkpoint_of_another_network_is_refused 3 "0: .*: it is of 'tarn-train 2: text" \
    1 --resume "$work/checkpoint"

# ---- Ranks that do not agree, or do not answer ----

refused ranks_with_different_graphs_are_refused 6 '1: its graph .* is not the one of rank 0' \
    2 --fault graph:1
refused a_race_in_the_graph_is_refused 3 '0: bad input: .*load/0' 1 --fault race:0
refused a_rank_with_another_plan_is_refused 6 '2: plan rejected: the graphs are equal' \
    4 --fault plan:2
refused a_plan_that_was_damaged_on_its_way_is_refused '[36]' '1: (plan rejected|bad input): ' 2 --fault damage:1
refused a_rank_that_hangs_ends_all_and_op_and_iteration_are_named 5 \
    '[01]: .*not finished after 1.* runs op [0-9]+ "all_reduce.0" of iteration 3' 2 --deadline 1 --fault hang:1
refused shards_that_ranks_cannot_share_are_refused 2 '[0-2]: 4 shards cannot be shared out' 3 --shards 4

# ---- The command ----

report a_plan_of_the_command_runs_the_training "$(
    train 1 --steps 8 --save-graph "$work/graph.json" >"$work/out" 2>&1 || tail -3 "$work/out"
    "$tarn" plan "$work/graph.json" --in-place -o "$work/plan.json" >/dev/null 2>&1 || echo "tarn plan: exit $?"
    "$tarn" run "$work/graph.json" "$work/plan.json" --check >/dev/null || echo "tarn run: exit $?"
    train 1 --steps 8 --graph "$work/graph.json" --plan "$work/plan.json" >"$work/plan" 2>&1
    [ "$(bits "$work/plan")" = "$(bits "$work/out")" ] || bits "$work/plan"
)"

#!/usr/bin/env bash
# Installs what is missing, builds, and trains both networks with 1 and 2 ranks: a table, in which the
# losses and parameters of a network have the same bits, and a picture of each plan.
set -euo pipefail
cd "$(dirname "$0")/.."

tests/setup.sh tests train
[ -e build/build.ninja ] || meson setup build -Dtests=enabled -Dtrain=enabled >/dev/null
meson configure build -Dtests=enabled -Dtrain=enabled
meson compile -C build train tarn:executable >/dev/null

export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_mpi_yield_when_idle=1 OMP_NUM_THREADS=1
value() { sed -nE "s/$1.*/\1/p" "$out" | tail -1; } # what a pattern finds in a run's output
out=$(mktemp)
trap 'rm -f "$out"' EXIT

printf '%-8s %5s  %-8s %-14s %11s %8s  %s\n' network ranks loss evaluation "arena, KB" "ms/step" "bits of losses, parameters"
same=yes
for network in digits text; do
    bits=
    for ranks in 1 2; do
        mpirun -n $ranks --oversubscribe --bind-to none build/examples/train --network $network --steps 120 \
            --save-graph "build/train_$network.json" --trace "build/train_$network.trace.json" >"$out" ||
            { cat "$out" && echo "Verdict: FAILED. The run above ended with an error." && exit 1; }
        of_run="$(value '^bits: losses ([0-9a-f]+)'), $(value '^bits:.*parameters ([0-9a-f]+)')"
        [ "$of_run" != ", " ] && [ "${bits:=$of_run}" = "$of_run" ] || same=no
        printf '%-8s %5s  %-8s %-14s %11s %8s  %s\n' $network $ranks "$(value '^step +119  loss ([0-9.]+)')" \
            "$(value '^evaluation: ([0-9]+ of [0-9]+)')" "$(($(value '^arena: ([0-9]+)') / 1000))" \
            "$(value '^arena: .*, ([0-9.]+) ms')" "$of_run"
    done
    build/tarn plan "build/train_$network.json" --effort 1000 -o "build/train_$network.plan.json" >/dev/null
    build/tarn show "build/train_$network.json" "build/train_$network.plan.json" -o "build/train_$network.html" >/dev/null
done
echo
echo "The plans of two ranks, for a browser: build/train_digits.html, build/train_text.html"
echo "Their streams at work (chrome://tracing, ui.perfetto.dev): build/train_digits.trace.json, build/train_text.trace.json"
echo
if [ $same = no ]; then
    echo "Verdict: FAILED. A network's losses or parameters have other bits with 2 ranks than with 1: see the table."
    exit 1
fi
echo "Verdict: it works. Both networks trained in planned arenas; losses and parameters have the same bits with 1 and 2 ranks."

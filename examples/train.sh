#!/usr/bin/env bash
# Installs what is missing, builds, and trains both networks with 1 and 2 ranks: the same losses and
# parameters, to the last bit. Then writes a picture of the streams at work, for a browser's tracing page.
set -euo pipefail
cd "$(dirname "$0")/.."

tests/setup.sh tests train
[ -e build/build.ninja ] || meson setup build -Dtests=enabled -Dtrain=enabled >/dev/null
meson configure build -Dtests=enabled -Dtrain=enabled
meson compile -C build train >/dev/null

export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_mpi_yield_when_idle=1 OMP_NUM_THREADS=1
for network in digits text; do
    for ranks in 1 2; do
        echo "== $network, $ranks ranks"
        mpirun -n "$ranks" --oversubscribe --bind-to none build/tests/train --network "$network" --steps 120 \
            --trace "build/train_$network.json"
        echo
    done
done
echo "The streams at work: build/train_digits.json and build/train_text.json (chrome://tracing, ui.perfetto.dev)"

#!/usr/bin/env bash
# quickstart.sh [GRAPH]: installs what is missing and builds Tarn (or takes the command that TARN names), then plans
# BERT-base's data-parallel training step, or GRAPH, and runs three iterations of it over one arena, every byte read being
# compared with what it must hold, and draws the plan beside the command.
set -euo pipefail
cd "$(dirname "$0")/.."

tarn=${TARN:-build/tarn}
if [ -z "${TARN:-}" ]; then
    tests/setup.sh
    [ -e build/build.ninja ] || meson setup build >/dev/null
    meson compile -C build >/dev/null
fi

graph=${1:-examples/graphs/bert_base_b1_adam.ddp.json.gz}
name=$(cd "$(dirname "$tarn")" && pwd)/$(basename "${graph%.json*}")
echo "== The graph"
"$tarn" info "$graph"
echo
echo "== The plan"
"$tarn" plan "$graph" -o "$name.plan.json"
echo
echo "== Three checked iterations on this machine's cores"
"$tarn" run "$graph" "$name.plan.json" --check --iterations 3
echo
echo "== Its picture"
"$tarn" show "$graph" "$name.plan.json" -o "$name.svg"
"$tarn" show "$graph" "$name.plan.json" -o "$name.html"
echo "for a document:  $name.svg"
echo "for a browser:   $name.html"

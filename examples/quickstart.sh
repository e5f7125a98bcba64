#!/usr/bin/env bash
# Installs what is missing, builds Tarn, then plans BERT-base's data-parallel training step and runs
# three iterations of it over one arena, every byte read being compared with what it must hold, and draws the plan.
set -euo pipefail
cd "$(dirname "$0")/.."

tests/setup.sh
[ -e build/build.ninja ] || meson setup build >/dev/null
meson compile -C build >/dev/null

graph=examples/graphs/bert_base_b1_adam.ddp.json.gz
plan=build/bert_base.plan.json
echo "== The graph"
build/tarn info "$graph"
echo
echo "== The plan ($plan)"
build/tarn plan "$graph" -o "$plan"
echo
echo "== Three checked iterations on this machine's cores"
build/tarn run "$graph" "$plan" --check --iterations 3
echo
echo "== Its picture"
build/tarn show "$graph" "$plan" -o build/bert_base.html
build/tarn show "$graph" "$plan" -o build/bert_base.svg
echo "for a browser:   $PWD/build/bert_base.html"
echo "for a document:  $PWD/build/bert_base.svg"

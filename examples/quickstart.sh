#!/usr/bin/env bash
# quickstart.sh [GRAPH]: installs what is missing and builds Tarn (or takes the command that TARN names), then plans
# BERT-base's data-parallel training step, or GRAPH, and runs three iterations of it over one arena, every byte read being
# compared with what it must hold, and draws the plan beside the command. The last lines say in words how it went.
set -euo pipefail
step="the build"
trap 'echo; echo "== Verdict: $step failed; the message is above" >&2' ERR
cd "$(dirname "$0")/.."

tarn=${TARN:-build/tarn}
if [ -z "${TARN:-}" ]; then
    tests/setup.sh
    [ -e build/build.ninja ] || meson setup build >/dev/null
    meson compile -C build >/dev/null
fi

graph=${1:-examples/graphs/bert_base_b1_adam.ddp.json.gz}
name=$(cd "$(dirname "$tarn")" && pwd)/$(basename "${graph%.json*}")
step="reading the graph"
echo "== The graph"
"$tarn" info "$graph"
echo
echo "== The plan"
step="planning"
"$tarn" plan "$graph" -o "$name.plan.json" | tee "$name.plan.txt"
echo
echo "== Three checked iterations on this machine's cores"
step="the checked run"
"$tarn" run "$graph" "$name.plan.json" --check --iterations 3
echo
echo "== Its picture"
step="drawing"
"$tarn" show "$graph" "$name.plan.json" -o "$name.svg"
"$tarn" show "$graph" "$name.plan.json" -o "$name.html"
echo "for a document:  $name.svg"
echo "for a browser:   $name.html"

amount() { sed -nE "s/^$1 .*\((.*)\)/\1/p; s/^$1 +([0-9]+ bytes?)$/\1/p" "$name.plan.txt"; } # of a line of the plan
gap=$(sed -nE 's/^gap percent +//p' "$name.plan.txt")
how="at most $gap % above the smallest possible"
if grep -q '^optimal  *yes' "$name.plan.txt"; then how="the smallest possible, with a proof in the plan"; fi
echo
echo "== Verdict: it works"
echo "The step needs an arena of $(amount footprint), $how; with bytes of their own its tensors need $(amount sum)."
echo "The plan is proved safe for every way in which the streams may run, and three iterations ran in it: every byte was right."
rm -f "$name.plan.txt"

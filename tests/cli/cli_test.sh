#!/usr/bin/env bash
# The command line: every verb, every exit code, whole files, one JSON object. TAP on stdout.
#
#   cli_test.sh SOURCE TARN
set -u
cd "$1" || exit 1
tarn=$2
graphs=examples/graphs
packing=$graphs/twelve.csv     # 18 bytes at alignment 1
toy=$graphs/figure7.json       # one stream, 2048 bytes at alignment 512
streams=$graphs/figure2.json   # three streams
real=$graphs/resnet50_b1_adam.ddp.json.gz
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
plan=$folder/plan.json
number=0

# report NAME RESULT: RESULT 0 passes.
report() {
    number=$((number + 1))
    if [ "$2" = 0 ]; then
        echo "ok $number - $1"
    else
        echo "not ok $number - $1"
        sed 's/^/# /' "$folder/out" "$folder/err" 2>/dev/null | head -20
    fi
}

# run ARGUMENTS: runs the command; its output lands in the files out and err.
run() { "$tarn" "$@" >"$folder/out" 2>"$folder/err"; }

# exits CODE ARGUMENTS: true when the command ends with that code, and says why when it is not 0.
exits() {
    local expected=$1 code
    shift
    run "$@"
    code=$?
    [ $code = "$expected" ] || echo "exit $code of: tarn $*" >>"$folder/err"
    [ $code = "$expected" ] && { [ $code = 0 ] || grep -q '^tarn: ' "$folder/err"; }
}

says() { grep -qF -- "$1" "$folder/err"; }

# json EXPRESSION: true when out is one JSON object o for which the Python expression holds.
json() { python3 -c "import json, sys; o = json.load(open('$folder/out')); sys.exit(not ($1))"; }

# field NAME: of the JSON object in out, a number or a word.
field() { sed -nE "s/.*\"$1\": *\"?([0-9a-z]+).*/\1/p" "$folder/out"; }

# damage PROGRAM: changes the plan p by a Python statement; the result is the file damaged.
damage() {
    python3 -c "import json; p = json.load(open('$plan')); $1; json.dump(p, open('$folder/damaged', 'w'))"
}

leftovers() { find "$folder/new" -type f | wc -l; }

# ---- Help and usage ----

every_verb_explains_itself() {
    local verb option
    exits 0 --help && exits 0 --version && grep -qE '^tarn [0-9]+\.[0-9]+' "$folder/out" || return
    for verb in info pairs plan verify run transform assign convert; do
        exits 0 "$verb" --help-all || return
        for part in "Usage: tarn $verb" Options: "Exit codes:" Example: --json; do
            grep -qF -- "$part" "$folder/out" || return
        done
        for option in $(sed '/^$/q' "$folder/out" | grep -oE -- '--[a-z-]+'); do
            grep -qE "^  (-., )?$option\b" "$folder/out" || return
        done
    done
}
every_verb_explains_itself
report every_verb_explains_itself $?

wrong_command_lines_exit_2_and_point_to_the_help() {
    local words
    while read -r words; do
        # shellcheck disable=SC2086
        exits 2 $words || return
        says "--help'" || return
    done <<WORDS
nonsense
plan
plan $toy $toy
plan $toy --nonsense
plan $toy --json=1
plan $toy --capacity
plan $toy --capacity 0
plan $toy --alignment 0
plan $toy --capacity 8XB
plan $toy --capacity 99999999999TiB
plan $toy --threads -1
plan $toy --threads 4294967296
plan $toy --json -o -
verify $toy
verify - -
pairs $toy --repeat 0
run $toy --kernel nonsense
run $toy --kernel spin:
run $toy --kernel empty --check
run $toy --order seed:x
run $toy --no-verify
run $toy plan --method all
run $toy --deadline soon
run $toy --deadline 0
run $toy --deadline 18446744074
run $toy --deadline 1s
run $toy --order order.json --iterations 3
run - -
run $toy --trace - --json
run $toy --trace - --flight -
run $toy --device cuda:2147483648
run $toy --device cudas
plan $toy --budget-curve 1001
plan $toy --budget-curve 3 --reorder
plan $toy --budget-curve 3 --slowdown-max 20
plan $toy --budget-curve 3 --pad-groups auto
plan $toy --budget-curve 3 --budget 1KiB
plan $toy --budget-curve 3 --capacity 1KiB
plan $toy --budget-curve 3 --method exact
plan $toy --couple --couple-keep 1.5x
plan $toy --couple --couple-keep half
plan $toy --in-place --in-place-kinds a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q,r,s,t,u,v,w,x,y,z,aa,ab,ac,ad,ae,af,ag
plan $toy --reorder-skip greedy
transform $toy --reorder --json -o -
run $toy --iterations 0
run $toy --device moon
run $toy --device cuda:x
run $toy --unroll 0
run $toy --unroll 2
convert $toy
convert $packing - --json
convert - answer.csv --plan -
WORDS
    exits 2 && exits 2 plan $toy --method nonsense && exits 2 plan $toy --alignment 3 &&
        exits 2 pairs $toy --method nonsense
}
wrong_command_lines_exit_2_and_point_to_the_help
report wrong_command_lines_exit_2_and_point_to_the_help $?

options_can_be_written_in_every_form() {
    exits 0 plan "$toy" --capacity=2KiB && exits 0 plan --capacity 2KB "$toy" && return 1
    exits 0 plan --capacity 3KB "$toy" -o "$plan" && rm "$plan" && exits 0 plan -o"$plan" -- "$toy" &&
        rm "$plan" && exits 0 plan --output="$plan" "$toy" --json && [ -s "$plan" ]
}
options_can_be_written_in_every_form
report options_can_be_written_in_every_form $?

# ---- Verbs ----

info_counts() {
    exits 0 info "$streams" --json &&
        json 'o["name"] == "figure2" and o["streams"] == 3 and o["ops"] == 8 and
              o["tensors"] == 9 and o["sum_bytes"] == 9216 and o["events"]["kept"] == 4 and
              o["model"]["serial_ns"] == sum(b["ns"] for b in o["busy"]) == o["cost_ns"] and
              o["model"]["peak_bytes"] <= o["model"]["worst_bytes"] <= o["bound_bytes"]' &&
        exits 0 info "$streams" --json --wait-ns 100000 && json 'o["model"]["critical_path_ns"] == 200000' &&
        exits 0 info "$streams" && grep -qE '^sum +9216 bytes' "$folder/out"
}
info_counts
report info_counts $?

# A name that clears the screen, in a file whose own name is no UTF-8.
odd_names_reach_neither_the_terminal_nor_a_plan() {
    local odd=$folder/$'odd\xff.csv'
    printf 'id,lower,upper,size\na,0,1,8\n' >"$odd"
    sed 's/"figure7"/"a\\u001b[2J\\u007f"/' "$toy" >"$folder/name.json"
    exits 0 info "$folder/name.json" && grep -qF 'a?[2J?' "$folder/out" &&
        ! LC_ALL=C grep -q $'[\x1b\x7f]' "$folder/out" &&
        exits 0 info "$folder/name.json" --json && json 'o["name"] == "a\x1b[2J\x7f"' &&
        exits 0 plan "$odd" -o "$plan" && exits 0 verify "$odd" "$plan"
}
odd_names_reach_neither_the_terminal_nor_a_plan
report odd_names_reach_neither_the_terminal_nor_a_plan $?

# Whether the build has the methods of papers.
has_papers() { "$tarn" pairs "$toy" >/dev/null 2>&1; }

methods_of_papers_are_there_or_said_to_be_left_out() {
    local method
    for method in roam-tree llfb; do
        if has_papers; then
            exits 0 plan "$toy" --method $method --node-limit 8 || return
        else
            exits 2 plan "$toy" --method $method && says "this build has no methods of papers" || return
        fi
    done
    has_papers || { exits 2 pairs "$toy" && says "this build has no methods of papers"; }
}
methods_of_papers_are_there_or_said_to_be_left_out
report methods_of_papers_are_there_or_said_to_be_left_out $?

pairs_agree_between_all_methods() {
    local method hash graph
    has_papers || return 0
    for graph in "$streams" "$toy" "$real"; do
        hash=
        for method in clocks ancestors ancestors-opt stream-graph; do
            exits 0 pairs "$graph" --method $method --repeat 2 --json && [ -n "$(field hash)" ] &&
                [ "$(field hash)" = "${hash:=$(field hash)}" ] || return
        done
        json "len(o['hash']) == 16 and o['unsafe'] <= o['pairs'] and o['ms'] >= 0" || return
    done
}
pairs_agree_between_all_methods
report pairs_agree_between_all_methods $?

plan_reports_and_writes_a_plan_that_verifies() {
    exits 0 plan "$real" -o "$plan" --json &&
        json 'all(key in o for key in ("name", "ops", "tensors", "storages", "streams", "groups",
              "persistent_bytes", "sum_bytes", "serial_peak_bytes", "footprint_bytes",
              "bound_bytes", "gap_percent", "optimal", "method")) and
              o["optimal"] == (o["footprint_bytes"] == o["bound_bytes"]) and set(o["events"]) >= {"arcs", "kept"} and
              set(o["ms"]) == {"load", "transform", "order", "place", "verify", "total"} and
              o["footprint_bytes"] < o["sum_bytes"]' &&
        python3 -c "import json; assert json.load(open('$plan'))['format'] == 'tarn.plan'" &&
        exits 0 verify "$real" "$plan" --json && json 'o["safe"] and o["violations"] == []'
}
plan_reports_and_writes_a_plan_that_verifies
report plan_reports_and_writes_a_plan_that_verifies $?

memory_spaces_are_planned_explained_and_run() {
    local spaces=$graphs/offload.json
    exits 0 plan $spaces -o "$folder/spaces" --json &&
        json 'o["optimal"] and [s["name"] for s in o["spaces"]] == ["device", "host"] and
              o["footprint_bytes"] == sum(s["footprint_bytes"] for s in o["spaces"])' &&
        exits 0 explain --quick $spaces "$folder/spaces" a0.host --json && json 'o["space"] == "host" and o["offset_bytes"] < 24 << 20' &&
        exits 0 run $spaces "$folder/spaces" --check --json && json 'o["ops_run"] == 27'
}
memory_spaces_are_planned_explained_and_run
report memory_spaces_are_planned_explained_and_run $?

plan_says_what_ended_the_search() {
    exits 0 plan "$real" --json && json 'o["stopped_by"] is None' &&
        exits 0 plan "$real" --seconds 0.000001 --json && json 'o["stopped_by"] == "deadline"' &&
        exits 0 plan "$real" --capacity 8GiB --json && json 'o["stopped_by"] is None and o["optimal"]' &&
        exits 0 plan "$real" --capacity 8GiB --method exact --json && json 'o["stopped_by"] == "capacity" and not o["optimal"]' &&
        exits 0 plan "$graphs/googlenet_b1_adam.ddp_branch4.json.gz" --effort 0 --json && json 'o["stopped_by"] == "effort" and not o["optimal"]' &&
        exits 0 plan "$graphs/googlenet_b1_adam.ddp_branch4.json.gz" --method many-objects:size:first-fit --json && json 'o["stopped_by"] == "method"' &&
        exits 0 plan $real --assign --streams 4 --json && json "o['events']['kept'] <= o['events']['arcs']" && # both of the planned graph
        exits 0 assign $real --streams 4 --json && json "o['assign_costs']['waits'] <= o['assign_costs']['arcs']"
}
plan_says_what_ended_the_search
report plan_says_what_ended_the_search $?

the_plan_does_not_depend_on_threads() {
    exits 0 plan "$real" --threads 1 -o "$folder/one" && exits 0 plan "$real" --threads 3 -o "$plan" &&
        cmp "$folder/one" "$plan"
}
the_plan_does_not_depend_on_threads
report the_plan_does_not_depend_on_threads $?

standard_input_and_output_are_files_too() {
    "$tarn" plan - -o - <"$real" 2>"$folder/err" >"$folder/piped" && cmp "$folder/piped" "$plan" &&
        grep -q '^footprint' "$folder/err" && "$tarn" verify "$real" - <"$plan" >"$folder/out"
}
standard_input_and_output_are_files_too
report standard_input_and_output_are_files_too $?

names_with_quotes_are_escaped() {
    sed 's/"name":"figure7"/"name":"a \\"b\\" \\\\ \\u0007 ü"/' "$toy" >"$folder/odd.json"
    exits 0 info "$folder/odd.json" --json && json 'o["name"] == "a \"b\" \\ \u0007 ü"'
}
names_with_quotes_are_escaped
report names_with_quotes_are_escaped $?

run_gives_one_digest_in_every_timing() {
    local digest='' way graph=$graphs/googlenet_b1_adam.ddp_branch4.json.gz
    exits 0 plan "$graph" --effort 0 -o "$plan" &&
        exits 0 plan "$graph" --effort 0 --alignment 64 -o "$folder/tight" || return
    while read -r way; do
        # shellcheck disable=SC2086
        exits 0 run "$graph" $way --json && [ "$(field ops_run)" -gt 0 ] && [ -n "$(field digest)" ] &&
            [ "$(field digest)" = "${digest:=$(field digest)}" ] || return
    done <<WAYS
--check
$plan --workers 2
$folder/tight --workers 1
$plan --delay 20000 --seed 3
$plan --order seed:9
WAYS
}
run_gives_one_digest_in_every_timing
report run_gives_one_digest_in_every_timing $?

run_measures_kernels() {
    exits 0 run "$streams" --kernel empty --iterations 1000 --json &&
        json 'o["ops_run"] == 8000 and o["ns_per_op"] > 0 and "digest" not in o' &&
        exits 0 run "$streams" --kernel spin:1000 --iterations 10 --json && json 'o["ns_per_op"] > 300'
}
run_measures_kernels
report run_measures_kernels $?

the_flight_recorder_lands_in_a_file() {
    local flight=$folder/flight
    exits 0 run "$streams" --iterations 3 --depth 1 --flight "$flight" &&
        grep -q '^stream 0 .* has finished$' "$flight" && grep -q '^  iteration 2, op ' "$flight" &&
        exits 5 run "$streams" --kernel spin:300000000 --deadline 0.05 --flight "$flight" &&
        grep -q 'not finished' "$flight" && grep -q 'has not ended$' "$flight" &&
        exits 8 run "$streams" --flight "$folder/absent/flight"
}
the_flight_recorder_lands_in_a_file
report the_flight_recorder_lands_in_a_file $?

# valid INSTANCE ANSWER CAPACITY: asks a validator that knows nothing of Tarn.
valid() { python3 tests/cli/validate_intervals.py "$@" >"$folder/out" 2>"$folder/err"; }

every_verb_reads_packing_instances() {
    exits 0 info "$packing" --json && json 'o["tensors"] == 12 and o["serial_peak_bytes"] == 18' &&
        { ! has_papers || exits 0 pairs "$packing"; } && exits 0 plan "$packing" --alignment 1 -o "$plan" --json &&
        json 'o["footprint_bytes"] == 18' && exits 0 verify "$packing" "$plan" &&
        exits 0 run "$packing" "$plan" --check --iterations 2 && "$tarn" info - <"$packing" >"$folder/out" &&
        exits 0 plan <(cat "$packing") --capacity 18 --alignment 1
}
every_verb_reads_packing_instances
report every_verb_reads_packing_instances $?

a_capacity_decides_about_a_packing_instance() {
    exits 0 plan "$packing" --capacity 18 --alignment 1 && exits 1 plan "$packing" --capacity 17 --alignment 1
}
a_capacity_decides_about_a_packing_instance
report a_capacity_decides_about_a_packing_instance $?

convert_goes_there_and_back() {
    local file
    for file in "$packing" "$graphs/cuts.csv"; do
        exits 0 convert "$file" "$folder/there.json.gz" --json && json 'o["persistent_bytes"] == 0' &&
            exits 0 convert "$folder/there.json.gz" "$folder/back.csv.gz" &&
            gzip -dc "$folder/back.csv.gz" | cmp - "$file" || return
        "$tarn" convert - - <"$file" 2>"$folder/err" |
            cmp - <(gzip -dc "$folder/there.json.gz" | sed '1s/"name":".*"/"name":"standard input"/') || return
    done
}
convert_goes_there_and_back
report convert_goes_there_and_back $?

answers_satisfy_a_validator_that_can_refuse() {
    exits 0 plan "$graphs/cuts.csv" --alignment 1 -o "$plan" &&
        exits 0 convert "$graphs/cuts.csv" "$folder/answer.csv" --plan "$plan" --json &&
        json 'o["footprint_bytes"] == 64' && valid "$graphs/cuts.csv" "$folder/answer.csv" 64 || return
    ! valid "$graphs/cuts.csv" "$folder/answer.csv" 63 && ! valid "$packing" "$folder/answer.csv" || return
    sed 's/,[0-9]*$/,0/; 1s/,0$/,offset/; 1s/size$/size,offset/' "$folder/answer.csv" >"$folder/damaged.csv"
    ! valid "$graphs/cuts.csv" "$folder/damaged.csv" || return
    exits 0 plan "$packing" -o "$folder/answer.csv" && valid "$packing" "$folder/answer.csv"
}
answers_satisfy_a_validator_that_can_refuse
report answers_satisfy_a_validator_that_can_refuse $?

convert_says_what_it_cannot_express() {
    exits 2 convert "$streams" "$folder/new.csv" && says 'new.csv: a graph of 3 streams' || return
    exits 2 plan "$streams" -o "$folder/new.csv" && says '3 streams' || return
    exits 0 plan "$packing" -o "$plan" || return
    exits 2 convert "$packing" "$folder/new.json" --plan "$plan" && says 'to a name that ends in .csv' || return
    damage 'p["storages"][0][1] = p["storages"][1][1]' && exits 6 convert "$packing" "$folder/new.csv" --plan "$folder/damaged" &&
        exits 3 convert "$folder/damaged" "$folder/new.csv" && exits 8 convert "$packing" "$folder/absent/new.csv" &&
        ! ls "$folder"/new.* 2>/dev/null
}
convert_says_what_it_cannot_express
report convert_says_what_it_cannot_express $?

# ---- Failures ----

a_bound_that_nothing_proves_is_refused() {
    exits 0 plan "$streams" -o "$plan" --json && json 'o["bound_bytes"] <= o["footprint_bytes"]' &&
        exits 0 info "$streams" --json && json 'o["bound_bytes"] > 0' || return
    damage 'p["bound_bytes"] += 512' && exits 6 verify "$streams" "$folder/damaged" && says 'wrong bound' &&
        exits 6 run "$streams" "$folder/damaged" && says 'one of the two is wrong' || return
    damage 'p["bound_bytes"] += 512; p["footprint_bytes"] += 512' && exits 6 verify "$streams" "$folder/damaged" &&
        says 'its certificate proves' || return
    damage 'p["certificate"] = None' && exits 3 verify "$streams" "$folder/damaged" && says '/certificate' || return
    damage 'p["bound_bytes"] = p["certificate"] = None' && exits 0 verify "$streams" "$folder/damaged"
}
a_bound_that_nothing_proves_is_refused
report a_bound_that_nothing_proves_is_refused $?

too_small_a_capacity_exits_1_without_a_file() {
    exits 1 plan "$toy" --capacity 2047 -o "$folder/none" && [ ! -e "$folder/none" ] &&
        says 'storages cannot share bytes' &&
        exits 0 plan "$toy" --capacity 2048 && exits 1 run "$toy" --capacity 2047
}
too_small_a_capacity_exits_1_without_a_file
report too_small_a_capacity_exits_1_without_a_file $?

bad_graphs_exit_3_and_say_why() {
    local expected graph line
    for expected in tests/data/invalid/*.expected; do
        graph=$(find tests/data/invalid -name "$(basename "${expected%expected}")[jc]s*")
        exits 3 info "$graph" || return
        while read -r line; do
            says "$line" || { echo "lacks: $line" >>"$folder/err"; return 1; }
        done <"$expected"
    done
}
bad_graphs_exit_3_and_say_why
report bad_graphs_exit_3_and_say_why $?

# Verbs that read a plan ask what it may do; the plan cannot say it of itself.
kinds_in_place_are_allowed_by_who_reads_a_plan() {
    local graph=tests/data/unsafe_plans/in_place_unasked.graph.json verb
    exits 0 plan "$graph" --in-place-kinds matmul -o "$plan" --json && json 'o["in_place"]["merged"] == 1' || return
    for verb in verify run explain show; do
        exits 6 $verb "$graph" "$plan" && says 'op 1 "matmul" writes' && says 'in-place kinds, "matmul"' || return
        exits 6 $verb "$graph" "$plan" --in-place-kinds sum || return
        exits 0 $verb "$graph" "$plan" --in-place-kinds sum,matmul || return
        exits 2 $verb "$graph" "$plan" --in-place-kinds "$(seq -s, 33)" || return
    done
    exits 2 run "$graph" --in-place-kinds matmul
}
kinds_in_place_are_allowed_by_who_reads_a_plan
report kinds_in_place_are_allowed_by_who_reads_a_plan $?

bad_plans_exit_3_or_6() {
    local file
    echo '{' >"$folder/broken"
    exits 3 verify "$toy" "$folder/broken" && exits 3 run "$toy" "$folder/broken" || return
    exits 0 plan "$streams" -o "$plan" || return
    exits 6 verify "$toy" "$plan" && exits 6 run "$toy" "$plan" || return # another graph's
    damage 'p["storages"][0][1] += 1' && exits 6 verify "$streams" "$folder/damaged" || return
    exits 6 run "$streams" "$folder/damaged" || return
    damage 'del p["storages"][0], p["storages"][0]' || return
    run verify "$streams" "$folder/damaged" --json
    [ $? = 6 ] && json '[v["kind"] for v in o["violations"]] == ["missing"] * 2' || return
    exits 6 run "$streams" "$folder/damaged"
}
bad_plans_exit_3_or_6
report bad_plans_exit_3_or_6 $?

# Every wait of the plan in turn is dropped, and every storage moved onto every other.
each_rejected_damage_has_a_witness_that_fails_the_check() {
    local damaged rejected=0
    mkdir "$folder/damages" && python3 -c "
import json
def damage(number, change):
    p = json.load(open('$plan'))
    change(p)
    json.dump(p, open('$folder/damages/%d' % number, 'w'))
def move(p, i, j): p['storages'][i][1] = p['storages'][j][1]
p = json.load(open('$plan'))
for i in range(len(p['waits'])): damage(i, lambda p: p['waits'].pop(i))
for i in range(len(p['storages'])):
    for j in range(i): damage(1000 + i * 100 + j, lambda p: move(p, i, j))" || return
    for damaged in "$folder"/damages/*; do
        rm -f "$folder/witness"
        run verify "$streams" "$damaged" --json --witness "$folder/witness"
        case $? in
        0) continue ;; # the two may share bytes, or the wait was implied by others
        6) ;;
        *) return 1 ;;
        esac
        rejected=$((rejected + 1))
        mv "$folder/out" "$folder/verdict$rejected"
        exits 6 run "$streams" "$damaged" || return
        exits 7 run "$streams" "$damaged" --no-verify --check --order "$folder/witness" || {
            echo "after: $damaged" >>"$folder/err"
            return 1
        }
    done
    [ $rejected -gt 20 ] && python3 -c "
import json, sys
for path in sys.argv[1:]:
    o = json.load(open(path))
    assert o['violations'][0]['kind'] and not o['safe'], path" "$folder"/verdict*
}
each_rejected_damage_has_a_witness_that_fails_the_check
report each_rejected_damage_has_a_witness_that_fails_the_check $?

an_illegal_order_exits_3() {
    echo '{"format":"tarn.order","version":1,"order":[[7,0]]}' >"$folder/order"
    exits 3 run "$streams" --order "$folder/order" && says 'step 0 of the order, op 7' || return
    echo '[0, 2, 0]' >"$folder/order"
    exits 3 run "$streams" --order "$folder/order"
}
an_illegal_order_exits_3
report an_illegal_order_exits_3 $?

a_deadline_exits_5() {
    exits 5 run "$streams" --kernel spin:300000000 --deadline 0.05 && says 'not finished'
}
a_deadline_exits_5
report a_deadline_exits_5 $?

unwritable_output_exits_8_and_leaves_nothing() {
    mkdir -p "$folder/new"
    exits 8 plan "$toy" -o "$folder/absent/plan" && exits 8 info "$folder/absent" || return
    exits 8 plan "$toy" -o "$folder/new" || return # a folder
    "$tarn" info "$toy" >&- 2>"$folder/err"
    [ $? = 8 ] || return
    (sleep 0.2; "$tarn" info "$toy" 2>"$folder/err") | true # which has gone by then
    [ "${PIPESTATUS[0]}" = 8 ] || return
    if [ -c /dev/full ]; then
        exits 8 plan "$toy" -o /dev/full || return
        "$tarn" plan "$toy" --json 2>"$folder/err" >/dev/full
        [ $? = 8 ] || return
    fi
    (ulimit -f 1 && "$tarn" plan "$real" -o "$folder/new/plan" 2>"$folder/err" >/dev/null)
    [ $? = 8 ] && [ "$(leftovers)" = 0 ]
}
unwritable_output_exits_8_and_leaves_nothing
report unwritable_output_exits_8_and_leaves_nothing $?

streams_and_waits_are_added() {
    local parallel=$folder/parallel.json.gz branches=$graphs/googlenet_b1_adam.ddp_branch4.json.gz
    exits 0 assign "$real" --streams 2 --json -o "$parallel" || return
    json 'o["assign"]["streams"] == 4 and o["changed"]["assigned"] > 0 and
          o["assign_limits"]["limit_ns"] <= o["assign"]["critical_path_ns"] and
          o["assign"]["critical_path_ns"] < o["assign"]["critical_path_before_ns"]' || return
    exits 0 info "$parallel" --json && json 'o["streams"] == 4' || return
    exits 0 transform "$toy" --in-place --reorder --json &&
        json 'o["reorder"]["bound_bytes"] <= o["reorder"]["peak_bytes"]' || return
    exits 0 plan "$real" --reorder --reorder-keep-time -o "$plan" --effort 0 --json &&
        json 'o["reorder"]["peak_bytes"] < o["reorder"]["peak_before_bytes"] and
              o["reorder_time"]["critical_path_ns"] <= o["reorder_time"]["critical_path_before_ns"]' &&
        exits 0 verify "$real" "$plan" && exits 0 run "$real" "$plan" --check || return
    exits 0 transform "$branches" --couple --json &&
        json 'o["couple"]["bound_bytes"] <= o["couple"]["target_bytes"] and
              o["couple_rows"][0]["critical_path_ns"] >= o["couple_rows"][-1]["critical_path_ns"] and
              o["changed"]["ordered"] == o["couple"]["arcs"] > 0' || return
    exits 0 plan "$branches" --couple --effort 0 -o "$plan" --json &&
        json 'o["footprint_bytes"] < o["couple_rows"][0]["bound_bytes"]' || return
    exits 0 verify "$branches" "$plan" && exits 0 run "$branches" "$plan" --check --iterations 1
}
streams_and_waits_are_added
report streams_and_waits_are_added $?

implementations_are_added() {
    local richer=$folder/richer.json.gz measured=$folder/measured.csv
    exits 0 transform "$real" --implementations examples/costs.csv --split-backward --json -o "$richer" || return
    json 'o["implementations"]["split"] == 52 and o["implementations"]["kept_tensors"] == 50 and
          o["implementations"]["unpaired"] == 0 and o["changed"]["moved"] == 0' || return
    exits 0 info "$richer" --json || return
    exits 0 transform "$richer" --implementations examples/costs.csv --split-backward --json &&
        json 'o["implementations"]["added"] == 0' || return
    printf 'op,implementation,ns,workspace\nconvolution,implicit,77,0\n' >"$measured"
    exits 0 transform "$richer" --implementations "$measured" --json &&
        json 'o["implementations"]["measured"] == 1' || return
    exits 0 plan "$richer" -o "$plan" --effort 0 && exits 0 verify "$richer" "$plan" || return
    exits 0 run "$richer" "$plan" --check --iterations 1 || return
    printf 'op,implementation,ns,workspace\nconvolutoin,implicit,77,0\n' >"$measured"
    exits 3 transform "$richer" --implementations "$measured" && says "line 2" && says convolutoin
}
implementations_are_added
report implementations_are_added $?

budgets_are_kept_or_refused() {
    local richer=$folder/richer.json.gz curve=$folder/curve keep budget digest
    exits 0 plan "$richer" --effort 0 -o "$plan" --json || return
    keep=$(field footprint_bytes)
    budget=$((keep * 8 / 10))
    exits 0 run "$richer" "$plan" --check --iterations 2 --json || return
    digest=$(field digest)
    exits 0 plan "$richer" --budget $budget -o "$plan" --json &&
        json "o['footprint_bytes'] == o['budget']['footprint_bytes'] <= $budget and
              o['budget_ops']['recomputed'] > 0" &&
        exits 0 verify "$richer" "$plan" || return
    exits 0 run "$richer" "$plan" --check --iterations 2 --json && [ "$(field digest)" = "$digest" ] || return
    exits 0 transform "$richer" --budget-method chen --json &&
        json "o['budget']['footprint_bytes'] < $keep and o['budget']['overhead_percent'] > 0" || return
    exits 1 plan "$richer" --budget 1MB && says "the least footprint found is" || return
    exits 0 plan "$real" --budget-curve 3 -o "$curve.csv" --json && json "len(o['budgets']) == 3" &&
        [ "$(wc -l <"$curve.csv")" = 4 ] || return
    exits 0 plan "$toy" --budget-curve 3 --json && json "len(o['budgets']) == 1" || return # nothing needs less
    exits 0 plan "$toy" --budget-curve 3 -o "$curve.svg" && grep -q "</svg>" "$curve.svg"
}
budgets_are_kept_or_refused
report budgets_are_kept_or_refused $?

an_interrupt_exits_130() {
    local process
    "$tarn" run "$streams" --kernel spin:20000000000 >"$folder/out" 2>"$folder/err" &
    process=$!
    sleep 0.3
    kill -INT $process
    wait $process
    [ $? = 130 ] && says interrupted && [ ! -s "$folder/out" ]
}
an_interrupt_exits_130
report an_interrupt_exits_130 $?

# A training step so deep that keeping to a budget takes a while.
write_deep_graph() {
    python3 - "$1" <<'END'
import json, sys
layers, tensors, ops = 4000, [], []
def tensor(kind): tensors.append({"id": len(tensors), "name": f"t{len(tensors)}", "size": 4096, "kind": kind}); return len(tensors) - 1
def op(kind, inputs, output):
    ops.append({"id": len(ops), "name": f"o{len(ops)}", "kind": kind, "stream": 0, "cost": 1000, "inputs": inputs, "outputs": [output]})
    return output
values = [tensor("input")]
for _ in range(layers): values.append(op("gelu", [values[-1]], tensor("intermediate")))
gradient = op("mse_loss_backward", [values[-1]], tensor("gradient"))
for i in range(layers, 0, -1): gradient = op("gelu_backward", [gradient, values[i]], tensor("gradient"))
json.dump({"format": "tarn.graph", "version": 1, "name": "deep", "meta": {}, "streams": [{"id": 0, "name": "s"}],
           "ops": ops, "tensors": tensors, "contiguous": []}, open(sys.argv[1], "w"))
END
}

# interrupted SECONDS ARGUMENTS: so long after the beginning; true when it ends with 130.
interrupted() {
    local process seconds=$1
    shift
    "$tarn" "$@" >"$folder/out" 2>"$folder/err" &
    process=$!
    sleep "$seconds"
    kill -INT $process
    wait $process
    [ $? = 130 ]
}

an_interrupted_budget_leaves_the_best_or_says_so() {
    local deep=$folder/deep.json best=$folder/best.json curve=$folder/partly.csv
    write_deep_graph "$deep"
    interrupted 0.5 plan "$deep" --budget 1 && says "interrupted before" && ! says "cannot be met" || return
    rm -f "$best"
    interrupted 0.5 plan "$deep" --budget 620000 -o "$best" || return # which takes seconds
    if says "interrupted before"; then [ ! -e "$best" ]; else exits 0 verify "$deep" "$best"; fi || return
    exits 5 plan "$deep" --budget 1 --seconds 0.2 && says "the time was over" || return
    interrupted 1 plan "$deep" --budget-curve 64 -o "$curve" && says interrupted &&
        { [ ! -e "$curve" ] || grep -q '^budget_bytes,' "$curve"; } || return
    exits 5 plan "$deep" --budget-curve 64 --seconds 0.5 && says "not all budgets were looked at"
}
an_interrupted_budget_leaves_the_best_or_says_so
report an_interrupted_budget_leaves_the_best_or_says_so $?

# ---- Batches ----

a_batch_has_one_plan_for_each_distinct_graph() {
    local plans=$folder/plans list=$folder/list
    printf '%s\n' $toy $streams "" $real $toy >"$list"
    exits 0 plan --batch "$list" -o "$plans" --json &&
        json "o['graphs'] == 4 and o['planned'] == 3 and o['were_there'] == 1 and o['failed'] == 0" &&
        json "[p['was_there'] for p in o['plans']] == [False, False, False, True]" &&
        [ "$(find "$plans" -type f | wc -l)" = 3 ] && cp "$folder/out" "$folder/made" &&
        exits 0 verify $toy "$plans/$(python3 -c "import json; print(json.load(open('$folder/made'))['plans'][0]['plan'].split('/')[-1])")"
}
a_family_lies_alike_and_plans_of_another_are_refused() {
    local list=$folder/stages plans=$folder/family
    python3 examples/pipeline_stages.py "$folder/pipeline" --stages 2 --microbatches 2 --schedules 1f1b --tensor-parallel 1 \
        --symmetric >"$list" &&
        exits 0 plan --batch "$list" --ranks -o "$plans" --json && exits 0 verify "$list" "$plans" --family &&
        exits 0 plan --batch "$list" --family -o "$plans" --json && json "len(o['plans']) == 2 and o['window']['size_bytes'] > 0" &&
        exits 0 verify "$list" "$plans" --family --json && json "o['safe'] and o['graphs'] == 2" || return
    python3 - "$plans" <<'END' || return
import json, pathlib, sys
path = sorted(pathlib.Path(sys.argv[1]).iterdir())[0]
plan = json.loads(path.read_text())
plan["footprint_bytes"] += 1 << 20
plan["window"]["size"] += 512
path.write_text(json.dumps(plan))
END
    exits 6 verify "$list" "$plans" --family --json && says "plan them together, as a family" &&
        json "not o['safe'] and [v['kind'] for v in o['violations']] == ['family'] and 'a window of' in o['violations'][0]['text']" || return
    python3 - "$plans" <<'END' || return
import json, pathlib, sys
for path in pathlib.Path(sys.argv[1]).iterdir():
    plan = json.loads(path.read_text())
    plan["storages"] = [[storage, 0, size] for storage, _, size in plan["storages"]]
    path.write_text(json.dumps(plan))
END
    exits 6 verify "$list" "$plans" --family --json && says "this plan is refused" &&
        json "not o['safe'] and len({v['plan'] for v in o['violations']}) == 2 and all(v['graph'] and v['kind'] and v['text'] for v in o['violations'])" || return
    local graphs # text names the graph, too, and a plan that cannot be read hides nothing of the others, wherever it is
    mapfile -t graphs <"$list"
    exits 6 verify "$list" "$plans" --family && grep -q "${graphs[0]}: " "$folder/out" && grep -q "${graphs[1]}: " "$folder/out" || return
    local path paths=("$plans"/*)
    for path in "${paths[@]}"; do
        mv "$path" "$folder/away"
        exits 8 verify "$list" "$plans" --family --json && says "$path: this plan cannot be read" && says "this plan is refused" &&
            json "sorted({v['kind'] == 'unread' for v in o['violations']}) == [False, True] and len({v['graph'] for v in o['violations']}) == 2" || return
        echo '{' >"$path"
        exits 3 verify "$list" "$plans" --family && says "$path: this plan cannot be read" && says "this plan is refused" &&
            [ "$(grep -c "^unread" "$folder/out")" = 1 ] || return
        mv "$folder/away" "$path"
    done
    exits 2 plan --batch "$list" --family --share 0/2 -o "$plans" && exits 2 plan --batch "$list" --family --ranks -o "$plans" && exits 2 plan $toy --family &&
        exits 1 plan --batch "$list" --family -o "$plans" --capacity 1MiB
}
what_a_list_gets_wrong_is_named_with_its_line() {
    local list=$folder/wrong_list plans=$folder/wrong
    printf '%s\r\n\n%s\n' $toy "$folder/nowhere.json" >"$list"
    exits 8 plan --batch "$list" -o "$plans" && says "$list, line 3: " && says "nowhere.json" &&
        exits 8 plan --batch "$list" --family -o "$plans" --json && json "'line 3' in o['error']['message']" &&
        exits 8 verify "$list" "$plans" --family && says "line 3" &&
        exits 8 plan --batch - --ranks -o "$plans" <"$list" && says "standard input, line 3: " || return
    python3 - "$folder" <<'END' || return # rules across graphs: another space, other names
import json, sys
for name, symmetric, first in (("one", "gathered", 64), ("two", "gethered", 64), ("three", "gathered", 128)):
    graph = {"format": "tarn.graph", "version": 1, "name": name, "meta": {}, "streams": [{"id": 0, "name": "s"}],
             "tensors": [{"id": i, "name": f"t{i}", "size": size, "kind": "intermediate"} for i, size in enumerate((first, 64))],
             "ops": [{"id": i, "name": f"o{i}", "kind": "all_reduce" if i else "matmul", "stream": 0, "cost": 1, "inputs": [i - 1] if i else [],
                      "outputs": [] if i else [0, 1]} for i in range(3)],
             "contiguous": [{"tensors": [0, 1], "symmetric": symmetric}]}
    json.dump(graph, open(f"{sys.argv[1]}/{name}.json", "w"))
END
    printf '%s\n' "$folder/one.json" "$folder/two.json" >"$list"
    exits 0 plan --batch "$list" --ranks -o "$plans" --json && json "o['unshared'] == ['gathered', 'gethered']" &&
        says "2 of 2 symmetric groups are in one graph only" && exits 0 verify "$list" "$plans" --family && says "in one graph only" || return
    printf '%s\n' "$folder/one.json" "$folder/three.json" >"$list"
    exits 3 plan --batch "$list" --ranks -o "$plans" && says "give the member a group of its own" && ! says "in one graph only"
}
plans_of_a_batch_are_made_once() {
    exits 0 plan --batch "$folder/list" -o "$folder/plans" --json &&
        json "o['planned'] == 0 and o['were_there'] == 4"
}
shares_of_a_batch_are_all_of_it() {
    local share seen=0
    for share in 0/3 1/3 2/3; do
        exits 0 plan --batch "$folder/list" -o "$folder/plans" --share $share --json || return
        seen=$((seen + $(field graphs)))
    done
    [ $seen = 4 ] && exits 2 plan --batch "$folder/list" -o "$folder/plans" --share 3/3 &&
        exits 2 plan --batch "$folder/list" && exits 2 plan $toy --share 0/1
}
a_batch_goes_on_behind_what_fails_and_says_so() {
    printf '{' >"$folder/broken.json"
    printf '%s\n' "$folder/broken.json" "$folder/absent.json" $packing $toy >"$folder/list"
    exits 3 plan --batch "$folder/list" -o "$folder/plans" --json &&
        json "o['planned'] == 1 and o['were_there'] == 1 and o['failed'] == 2" && says broken.json && says absent.json &&
        json "[p['graph'].split('/')[-1] for p in o['plans'] if p['plan'] is None] == ['broken.json', 'absent.json']" &&
        json "[p['error']['code'] for p in o['plans'] if 'error' in p] == [3, 8]" &&
        json "all(p['method'] and p['optimal'] and p['gap_percent'] == 0 for p in o['plans'] if p['plan'])" || return
    printf '%s\n' $toy $packing >"$folder/two"
    exits 1 plan --batch "$folder/two" -o "$folder/small" --capacity 1KiB --alignment 1 && says "$toy: does not fit"
}
a_plan_of_another_graph_or_a_damaged_one_is_planned_again() {
    local file
    printf '%s\n' $toy $packing >"$folder/list"
    exits 0 plan --batch "$folder/list" -o "$folder/plans" || return
    for file in "$folder"/plans/*; do cp "$plan" "$file"; done
    exits 0 plan --batch "$folder/list" -o "$folder/plans" --json && json "o['planned'] == 2" && says "planned again" || return
    for file in "$folder"/plans/*; do printf '{' >"$file"; done
    exits 0 plan --batch "$folder/list" -o "$folder/plans" --json && json "o['planned'] == 2" && says "planned again" &&
        exits 0 plan --batch "$folder/list" -o "$folder/plans" --json && json "o['were_there'] == 2" && ! says "planned again"
}
# As in an empty folder: no plan that is there answers what it was not asked for.
a_batch_heeds_options_whatever_plans_are_there() {
    local options
    printf '%s\n' $toy >"$folder/list"
    for options in "--alignment 64" "--reorder" "--in-place-kinds k" "--couple" "--budget 1GiB" "--boundary simple" "--seed 1" \
        "--effort 5" "--method lowest" "--assign" "--streams 3" "--pad-groups padded" "--capacity 1GiB" "--seconds 9" "--couple-keep 3" \
        "--budget 1GiB --budget-method keep" "--reorder-keep-time" "--assign --wait-ns 9"; do
        exits 0 plan --batch "$folder/list" -o "$folder/options" --json && json "o['planned'] == 1" || return
        # shellcheck disable=SC2086
        exits 0 plan --batch "$folder/list" -o "$folder/options" $options --json && json "o['planned'] == 1" && says "planned again: the plan" || return
        # shellcheck disable=SC2086
        exits 0 plan --batch "$folder/list" -o "$folder/options" $options --threads 1 --json && json "o['were_there'] == 1" || return
    done
    exits 0 plan --batch "$folder/list" -o "$folder/options" && exits 1 plan --batch "$folder/list" -o "$folder/options" --capacity 1KiB --json &&
        json "o['failed'] == 1 and o['plans'][0]['error']['code'] == 1" && says "$toy: does not fit"
}
run plan $streams -o "$plan"
for name in a_batch_has_one_plan_for_each_distinct_graph a_family_lies_alike_and_plans_of_another_are_refused what_a_list_gets_wrong_is_named_with_its_line plans_of_a_batch_are_made_once \
    shares_of_a_batch_are_all_of_it a_batch_goes_on_behind_what_fails_and_says_so \
    a_plan_of_another_graph_or_a_damaged_one_is_planned_again a_batch_heeds_options_whatever_plans_are_there; do
    $name
    report $name $?
done

echo "1..$number"

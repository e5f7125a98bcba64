#!/usr/bin/env bash
# The command line against careless and hostile use: files that would overwrite each other, links,
# limits and signals while a file is written, names and paths that a terminal would obey. TAP on stdout.
#
#   hostile_test.sh SOURCE TARN
set -u
cd "$1" || exit 1
tarn=$(realpath "$2")
source=$PWD
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 1
cp "$source/examples/graphs/figure7.json" graph.json
number=0

# report NAME RESULT: RESULT 0 passes.
report() {
    number=$((number + 1))
    if [ "$2" = 0 ]; then
        echo "ok $number - $1"
    else
        echo "not ok $number - $1"
        sed 's/^/# /' out err 2>/dev/null | head -20
    fi
}

# exits CODE ARGUMENTS: true when the command ends with that code.
exits() {
    local expected=$1 code
    shift
    "$tarn" "$@" >out 2>err
    code=$?
    [ $code = "$expected" ] || { echo "exit $code of: tarn $*" >>err; return 1; }
}

# refused ARGUMENTS: a usage error that changes no file.
refused() {
    exits 2 "$@" && grep -q 'are one file' err && sha256sum --quiet -c sums >>out
}

# ---- Files ----

no_verb_writes_over_what_it_reads_or_writes() {
    local plan=plan.json way
    exits 0 plan graph.json -o $plan && exits 0 convert graph.json copy.json || return
    printf 'op,implementation,ns,workspace\n' >costs.csv
    echo '[0]' >order.json
    ln -s graph.json link.json
    ln -s link.json far.json
    ln graph.json hard.json
    ln -s new.json dangling.json
    mkdir -p sub
    ln -s .. sub/up
    sha256sum graph.json $plan costs.csv order.json >sums
    for way in graph.json ./graph.json "$folder/graph.json" link.json far.json hard.json sub/up/graph.json; do
        for verb in plan transform assign; do refused $verb graph.json -o $way || return; done
        refused convert graph.json $way || return
        refused plan graph.json --budget-curve 2 -o $way || return
        refused verify graph.json $plan --witness $way || return
        refused run graph.json $plan --trace $way && refused run graph.json $plan --flight $way || return
        refused plan $way -o graph.json || return
    done
    refused verify graph.json $plan --witness $plan && refused run graph.json $plan --trace $plan &&
        refused run graph.json --order order.json --trace order.json &&
        refused transform graph.json --implementations costs.csv -o costs.csv &&
        refused convert graph.json $plan --plan $plan || return
    # two outputs, there or not
    refused run graph.json --trace same --flight ./same && [ ! -e same ] &&
        refused run graph.json --trace new.json --flight dangling.json && [ ! -e new.json ] || return
    # standard streams are files as well
    "$tarn" plan - -o graph.json <graph.json >out 2>err
    [ $? = 2 ] && sha256sum --quiet -c sums || return
    "$tarn" plan graph.json -o both >both 2>err
    [ $? = 2 ] && [ ! -s both ] || return
    # what is different may be
    exits 0 plan graph.json -o other.json && exits 0 plan graph.json -o other.json &&
        exits 0 run graph.json --trace /dev/null --flight /dev/null && exits 0 convert copy.json hard2.json
}
no_verb_writes_over_what_it_reads_or_writes
report no_verb_writes_over_what_it_reads_or_writes $?

what_is_in_the_way_of_writing_exits_8_and_keeps_the_old_file() {
    local graph=$source/examples/graphs/alexnet_b1_adam.ddp.json before
    echo old >old.json
    chmod 640 old.json
    before=$(sha256sum <old.json)
    (ulimit -f 4 && exec "$tarn" convert "$graph" old.json >/dev/null 2>err)
    [ $? = 8 ] && grep -q 'File too large' err && [ "$before" = "$(sha256sum <old.json)" ] || return
    (ulimit -f 1 && exec "$tarn" info "$source/examples/graphs/alexnet_b1_adam.ddp.json" --help-all >old2 2>err)
    [ $? = 8 ] || return
    if [ -c /dev/full ]; then
        exits 8 convert "$graph" /dev/full && grep -q 'No space left' err || return
        exits 8 run graph.json --trace /dev/full || return
    fi
    ("$tarn" convert "$source/examples/graphs/resnet50_b1_adam.ddp.json.gz" - 2>err || echo $? >code) | head -c 10 >/dev/null
    [ "$(cat code)" = 8 ] || return
    exits 0 convert "$graph" old.json && [ "$(stat -c %a old.json)" = 640 ] || return
    ln -s missing.json lost.json
    exits 0 convert "$graph" lost.json && [ -L lost.json ] && [ -s missing.json ] && exits 0 info lost.json || return
    "$tarn" convert "$graph" /dev/stdout 2>err >piped.json && exits 0 info piped.json || return
    mkfifo pipe
    cat pipe >through.json &
    exits 0 convert "$graph" pipe && wait && [ -p pipe ] && cmp through.json piped.json
}
what_is_in_the_way_of_writing_exits_8_and_keeps_the_old_file
report what_is_in_the_way_of_writing_exits_8_and_keeps_the_old_file $?

# Under the real name there is the old file or the new one, whenever the writer is killed.
a_killed_writer_leaves_no_half_file() {
    local i graph=$source/examples/graphs/alexnet_b1_adam.ddp.json
    exits 0 convert "$graph" whole.json && cp whole.json killed.json || return
    for i in $(seq 20); do
        "$tarn" convert "$graph" killed.json >out 2>err &
        sleep 0.0$((i % 10))$((i % 7))
        kill -9 $! 2>/dev/null
        wait $! 2>/dev/null
        cmp -s killed.json whole.json || return
    done
}
a_killed_writer_leaves_no_half_file
report a_killed_writer_leaves_no_half_file $?

# ---- Names ----

# A graph whose every name is hostile; a part breaks rules, so that errors name things too.
python3 - <<'PYTHON'
import json
name = "<&>\"'\\\u001b]0;x\u0007\u009b31m\u202e\u2066\u2028\ufeff\U000e0041\u007f\té"
def op(i, inputs, outputs, **more):
    return dict({"id": i, "name": f"{name}{i}", "kind": name, "stream": i % 2, "inputs": inputs, "outputs": outputs, "cost": 1}, **more)
def graph():
    return {"format": "tarn.graph", "version": 1, "name": name, "meta": {name: [name]},
            "streams": [{"id": 0, "name": name}, {"id": 1, "name": name}],
            "ops": [op(0, [], [0]), op(1, [0], [1], implementations=[{"name": name, "cost": 2}]), op(2, [0, 1], [2])],
            "tensors": [{"id": t, "name": f"{name}{t}", "size": 64, "kind": "intermediate"} for t in range(3)]}
def save(path, g): json.dump(g, open(path, "w"))
save("hostile.json", graph())
g = graph(); g["streams"].pop(); [o.update(stream=0) for o in g["ops"]]; save("one.json", g)
g = graph(); g["ops"][1]["inputs"] = [7]; save("bad0.json", g)
g = graph(); g["tensors"][1]["kind"] = name; save("bad1.json", g)
g = graph(); g[name] = 1; save("bad2.json", g)
g = graph(); g["format"] = name; save("bad3.json", g)
g = graph(); g["meta"] = {"a": {}}; save("bad4.json", g)
s = open("bad4.json").read().replace('{"a": {}}', '{%s: 1, %s: 2}' % (json.dumps(name), json.dumps(name))); open("bad4.json", "w").write(s)
g = graph(); g["ops"][0]["control"] = [2]; save("bad5.json", g)
g = graph(); g["ops"][2]["outputs"] = [0]; save("bad6.json", g)
open("bad7.json", "wb").write(b'{"a": \x1b\xc2\x9b\xff')
open("bad8.csv", "wb").write(b"id,lower,upper,size\n\x1b\xc2\x9b\xe2\x80\xae,2,1,4\n")
open("bad9.csv", "wb").write(b"id,lower,\x1b\xc2\x9b\xff,size\n")
open("costs_bad.csv", "wb").write(b"op,implementation,ns,workspace\n\x1b\xc2\x9b\xe2\x80\xae,,1,1\n")
PYTHON

# safe FILES: UTF-8 without anything that a terminal obeys.
safe() {
    python3 - "$@" <<'PYTHON'
import sys, unicodedata
for path in sys.argv[1:]:
    for c in open(path, encoding="utf-8").read():
        hidden = unicodedata.category(c) in ("Cc", "Zl", "Zp") and c != "\n"
        turning = unicodedata.bidirectional(c) in ("LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI")
        assert not hidden and not turning and c not in "\ufeff\U000e0041", (path, hex(ord(c)))
PYTHON
}

# tells CODE ARGUMENTS: what the command says is kept, for all_is_safe to look at.
tells() { exits "$@" && cat out err >>said; }

# of JSON: the same, one object on each line of the file objects.
tells_json() { tells "$@" --json && tr -d '\n' <out >>objects && echo >>objects; }

# Was all that was said safe, and did objects say what was meant?
all_is_safe() {
    safe said && python3 -c "
import json
name = json.load(open('hostile.json'))['name']
for line in open('objects', encoding='utf-8', newline='\n'): assert json.loads(line).get('name', name) == name"
}

hostile_names_reach_no_terminal() {
    local bad
    for verb in info plan transform assign $("$tarn" pairs hostile.json >pairs.out 2>&1 && echo pairs); do
        tells 0 $verb hostile.json && tells_json 0 $verb hostile.json || return
    done
    tells 0 transform hostile.json --changes --assign --couple --in-place && tells_json 0 transform hostile.json --changes --reorder --assign &&
        tells 0 plan hostile.json -o hostile.plan && tells 0 run hostile.json hostile.plan --flight flight &&
        tells_json 0 run hostile.json && safe flight hostile.plan && tells 0 verify hostile.json hostile.plan &&
        tells 0 convert one.json one.csv && safe one.csv && tells 0 convert hostile.json copied.json && safe copied.json || return
    python3 -c "
import json
p = json.load(open('hostile.plan')); p['storages'] = [[t, 0, 64] for t, o, s in p['storages']]
json.dump(p, open('unsafe.plan', 'w'))"
    tells 6 verify hostile.json unsafe.plan && tells 6 verify hostile.json unsafe.plan --json &&
        tells 7 run hostile.json unsafe.plan --no-verify --check --order seed:1 || return
    for bad in bad*; do tells 3 info "$bad" && tells 3 plan "$bad" || return; done
    tells 3 transform hostile.json --implementations costs_bad.csv && all_is_safe
}
hostile_names_reach_no_terminal
report hostile_names_reach_no_terminal $?

hostile_words_and_paths_reach_no_terminal() {
    local word=$'\x1b]0;x\x07\xc2\x9b31m\xe2\x80\xae\xff'
    tells 2 "$word" && tells 2 plan "--$word" && tells 2 plan graph.json graph.json "$word" &&
        tells 2 plan graph.json --capacity "$word" && tells 2 plan graph.json --method "$word" &&
        tells 2 run graph.json --device "$word" && tells 2 run graph.json --kernel "$word" &&
        tells 8 info "$word.json" && tells 8 plan graph.json -o "absent/$word" || return
    cp graph.json "$word.json"
    echo '{' >"$word.bad"
    printf 'id,lower,upper,size\na,0,1,8\n' >"$word.csv"
    tells 3 info "$word.bad" && tells 0 plan "$word.json" && tells 0 info "$word.csv" && tells_json 0 plan hostile.json &&
        tells 2 plan "$word.json" -o "./$word.json" && tells 0 plan "$word.csv" -o word.plan && safe word.plan && all_is_safe
}
hostile_words_and_paths_reach_no_terminal
report hostile_words_and_paths_reach_no_terminal $?

pictures_traces_and_files_are_well_formed() {
    exits 0 plan hostile.json --budget-curve 3 -o curve.svg && exits 0 plan hostile.json --budget-curve 3 -o curve.csv &&
        exits 0 run hostile.json --trace trace.json && exits 0 convert hostile.json again.json || return
    safe curve.svg curve.csv trace.json again.json || return
    python3 - <<'PYTHON'
import json, xml.dom.minidom
hostile = json.load(open("hostile.json"))
xml.dom.minidom.parse("curve.svg")
events = json.load(open("trace.json"))["traceEvents"]
assert {e["name"] for e in events if e["ph"] == "X"} == {o["name"] for o in hostile["ops"]}
again = json.load(open("again.json"))
assert again["meta"] == hostile["meta"] and [o["name"] for o in again["ops"]] == [o["name"] for o in hostile["ops"]]
PYTHON
}
pictures_traces_and_files_are_well_formed 2>err
report pictures_traces_and_files_are_well_formed $?

echo "1..$number"

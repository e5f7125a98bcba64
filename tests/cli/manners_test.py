"""The manners of the command: help that fits a screen, examples that run, suggestions, failures as JSON, one line of progress,
manual pages, and what shells complete. TAP on standard output.

    manners_test.py SOURCE TARN"""
import json
import os
import pty
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

import command_cases
from cases import run as run_tests, test

source, tarn = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
folder_that_ends = tempfile.TemporaryDirectory()
folder = folder_that_ends.name
os.symlink(os.path.join(source, "examples"), os.path.join(folder, "examples"))
toy, real = "examples/graphs/figure7.json", "examples/graphs/resnet50_b1_adam.ddp.json.gz"


def run(*words, shell=None, **options):
    options = {"cwd": folder, "capture_output": True, "text": True, **options}
    return subprocess.run(["bash", "-c", shell] if shell else [tarn, *words], **options)


def verbs():
    text = run("--help").stdout
    found = re.findall(r"^  ([a-z]+) ", text[:text.index("Example:")], re.M)
    assert {"info", "plan", "verify", "run", "convert"} <= set(found), found
    return [verb for verb in found if verb not in ("help", "completion")]


def options_of(verb):
    text = run(verb, "--help-all").stdout
    return re.findall(r"^  (?:-., )?(--[a-z-]+)", text[text.index("Options:"):], re.M)


@test
def help_fits_a_screen_and_help_all_its_width():
    for words in [[]] + [[verb] for verb in verbs()]:
        lines = run(*words, "--help").stdout.splitlines()
        assert len(lines) <= 24, (words, len(lines))
        for line in lines + run(*words, "--help-all" if words else "--help").stdout.splitlines():
            assert len(line) <= 80, (words, line)


@test
def help_of_a_verb_is_asked_for_in_three_ways():
    for verb in verbs():
        assert run("help", verb).stdout == run(verb, "--help").stdout == run(verb, "-h").stdout != ""
        assert run("help", "--all", verb).stdout == run("help", verb, "--all").stdout == run(verb, "--help-all").stdout
        assert run("help", "--man", verb).stdout == run("help", verb, "--man").stdout != ""
        text = run(verb, "--help").stdout
        everyday = re.findall(r"^  (?:-., )?(--[a-z-]+)", text, re.M)
        assert everyday and set(everyday) <= set(options_of(verb)), verb
    assert run("help").stdout == run("--help").stdout == run("help", "help").stdout == run("help", "--help").stdout
    told = run("help", "completion").stdout
    assert told == run("completion", "--help").stdout == run("help", "--all", "completion").stdout and all(len(line) <= 80 for line in told.splitlines())
    assert run(shell=re.search("^  (tarn .*)$", told, re.M)[1].replace("tarn ", shlex.quote(tarn) + " ", 1)).returncode == 0
    assert run("help", "--man", "completion").stdout == run("help", "--man").stdout
    assert run("help", "nonsense").returncode == 2
    assert run("help", "plan", "run").returncode == 2


@test
def every_example_runs():
    count = 0
    for verb in verbs():
        text = run(verb, "--help").stdout
        lines = re.findall(r"^  (tarn .*)$", text[text.index("Example:"):], re.M)
        assert lines, verb
        for line in lines:
            done = run(shell=line.replace("tarn ", shlex.quote(tarn) + " ", 1))
            assert done.returncode == 0, (line, done.stderr)
            count += 1
    assert count >= len(verbs())


@test
def what_is_mistyped_gets_a_suggestion():
    for words, meant in [(["plna"], "plan"), (["verfy"], "verify"), (["ifno"], "info"), (["hlep"], "help"),
                         (["plan", toy, "--reorer"], "--reorder"), (["plan", toy, "--budgte=1"], "--budget"),
                         (["run", toy, "--iteratons", "3"], "--iterations")]:
        done = run(*words)
        assert done.returncode == 2 and f"(did you mean '{meant}'?)" in done.stderr, (words, done.stderr)
    for words in [["xyzzy"], ["plan", toy, "--xyzzy"], ["plan", toy, "--" + 100 * "x"]]:
        done = run(*words)
        assert done.returncode == 2 and "did you mean" not in done.stderr, (words, done.stderr)


@test
def what_is_too_much_or_empty_is_named():
    done = run("explain", toy, "a", "b", "c", "d")
    assert done.returncode == 2 and "'d' is one argument too many" in done.stderr, done.stderr
    done = run("info", toy, toy)
    assert done.returncode == 2 and "is one argument too many" in done.stderr, done.stderr
    for words in (["info", ""], ["plan", toy, "-o", ""], ["run", toy, ""]):
        done = run(*words)
        assert done.returncode == 8 and done.stderr.startswith("tarn: '': cannot be "), (words, done.stderr)
    done = run("plan", toy, "--capacity", "1", "--alignment", "1")
    assert done.returncode == 1 and "no plan fits 1 byte, all need " in done.stderr, done.stderr


@test
def the_overview_says_how_to_see_all_options():
    overview = run("--help").stdout
    assert re.search(r"^  help +help VERB: .*--all", overview, re.M), overview
    assert "--seconds" in run("help", "plan").stdout and "--seed" not in run("help", "plan").stdout
    assert "--seed" in run("help", "plan", "--all").stdout


@test
def failures_are_json_where_json_was_asked_for():
    with open(os.path.join(folder, "bad.json"), "w") as file:
        json.dump({"format": "tarn.graph", "version": 1, "name": "x", "streams": [], "ops": 3, "tensors": []}, file)
    with open(os.path.join(folder, "syntax.json"), "w") as file:
        file.write('{"format":\n  }')
    for words, code, place in [(["plan", "bad.json"], 3, "/ops"), (["info", "syntax.json"], 3, "line 2"),
                               (["plan", "absent.json"], 8, None), (["plan"], 2, None), (["nonsense"], 2, None),
                               (["verify", toy, toy], 3, "/format"), (["plan", toy, "--capacity", "1"], 1, None),
                               (["plan", toy, "--jsn"], 2, None), (["completion", "csh"], 2, None)]:
        done = run(*words, "--json")
        answer = json.loads(done.stdout)
        assert list(answer) == ["error"] and list(answer["error"]) == ["code", "message", "place"], answer
        assert done.returncode == code == answer["error"]["code"], (words, done.returncode, answer)
        assert done.stderr == f"tarn: {answer['error']['message']}\n", (words, done.stderr)
        assert (answer["error"]["place"] or "").startswith(place or "") and (not place) == (not answer["error"]["place"]), answer
        assert run(*words).stdout == "" or words == ["verify", toy, toy], words
        first = re.match(r"tarn: ([a-z]+: )", done.stderr)
        assert not first or not done.stderr.startswith("tarn: " + 2 * first[1]), done.stderr


@test
def a_verdict_in_json_stays_one_object():
    assert run("plan", toy, "-o", "toy.plan").returncode == 0
    with open(os.path.join(folder, "toy.plan")) as file:
        plan = json.load(file)
    for storage in plan["storages"]:
        storage[1] = 0
    with open(os.path.join(folder, "toy.plan"), "w") as file:
        json.dump(plan, file)
    done = run("verify", toy, "toy.plan", "--json")
    assert done.returncode == 6 and json.loads(done.stdout)["safe"] is False, done.stdout


@test
def convert_refuses_an_ending_that_it_does_not_know():
    for name in ("out", "out.txt", "out.json.zip", ".json", "out.gz", "json"):
        done = run("convert", toy, name)
        assert done.returncode == 2 and ".csv" in done.stderr and not os.path.exists(os.path.join(folder, name)), name
    assert run("plan", "examples/graphs/twelve.csv", "-o", "twelve.plan").returncode == 0
    assert run("convert", "examples/graphs/twelve.csv", "answer.json", "--plan", "twelve.plan").returncode == 2
    for name in ("out.csv", "out.csv.gz", "out.json", "out.json.gz", "-"):
        assert run("convert", "examples/graphs/twelve.csv", name).returncode == 0, name


def shown_on_a_terminal(words):
    """What a command that succeeds writes to stderr where that is a terminal; None: there is none to be had."""
    try:
        reader, writer = pty.openpty()
    except OSError:  # a container without /dev/pts
        return None
    with subprocess.Popen(words, cwd=folder, stdout=subprocess.DEVNULL, stderr=writer) as child:
        os.close(writer)
        shown = b""
        while True:
            try:
                piece = os.read(reader, 4096)
            except OSError:  # the other end is closed
                break
            if not piece:
                break
            shown += piece
    os.close(reader)
    assert child.returncode == 0
    return shown


@test
def progress_is_one_line_on_a_terminal_and_a_line_for_each_better_plan_elsewhere():
    with open(os.path.join(folder, "hard.json"), "w") as file:
        json.dump(command_cases.hard_graph(), file)
    words = [tarn, "plan", "hard.json", "--seconds", "1.5"]
    plain = subprocess.run(words, cwd=folder, capture_output=True, text=True)
    lines = plain.stderr.splitlines()
    assert plain.returncode == 0 and lines and "\r" not in plain.stderr and "\033" not in plain.stderr, plain.stderr
    footprints = []
    for line in lines:
        found = re.fullmatch(r"tarn: \d+\.\d s: hard\.json: step \d+: footprint (\d+), bound \d+, gap [\d.]+ %", line)
        assert found, line
        footprints.append(int(found[1]))
    assert footprints == sorted(set(footprints), reverse=True), footprints
    long_path = os.path.join("a_folder_whose_name_alone_is_wider_than_" * 2, "hard.json")
    os.mkdir(os.path.join(folder, os.path.dirname(long_path)))
    shutil.copy(os.path.join(folder, "hard.json"), os.path.join(folder, long_path))
    shown = shown_on_a_terminal([tarn, "plan", long_path, "--method", "lowest", "--seconds", "2.5"])
    if shown is None:
        return
    parts = shown.decode().split("\r\033[K")
    assert parts[0] == "" and len(parts) > 1 and shown.count(b"\n") == 1 and shown.endswith(b"\n"), shown
    for part in parts[1:]:
        assert len(part.strip()) < 80 and re.fullmatch(r"tarn: \d+\.\d s: (\S+: )?step \d+: footprint \d+, bound \d+, gap [\d.]+ %\s*", part), part
    seconds = [float(re.match(r"tarn: ([\d.]+) s", part)[1]) for part in parts[1:]]
    assert seconds[-1] >= 1 and seconds == sorted(seconds), seconds  # the line goes on when nothing improves


@test
def a_transform_that_searches_long_shows_what_it_has_found():
    graph = os.path.join(source, "tests/data/torch/bert_base.json.gz")
    shown = shown_on_a_terminal([tarn, "plan", graph, "--budget-curve", "16"])
    if shown is None:
        return
    parts = shown.decode().split("\r\033[K")
    assert parts[0] == "" and len(parts) > 1 and shown.count(b"\n") == 1 and shown.endswith(b"\n"), shown
    for part in parts[1:]:
        assert len(part.strip()) < 80 and re.fullmatch(r"tarn: \d+\.\d s: (\S+: )?(no plan yet|budget, step \d+: \d+ bytes)\s*", part), part


@test
def manual_pages_are_sound_and_have_every_option():
    for verb in [None] + verbs():
        page = run("help", "--man", *([verb] if verb else [])).stdout
        assert page.startswith(f".TH tarn{'-' + verb if verb else ''} 1 "), page[:40]
        assert re.match(r'\.TH \S+ 1 "\d{4}-\d{2}-\d{2}" "tarn \d', page), page[:60]
        for option in options_of(verb) if verb else ():
            assert "\\fB" in page and option.replace("-", "\\-") in page, (verb, option)
        if shutil.which("groff"):
            done = run(shell="groff -man -ww -z", input=page)
            assert done.returncode == 0 and done.stderr == "", done.stderr
            shown = run(shell="groff -man -Tascii -P-cbou -rLL=80n | sed 's/\\x1b.\\{0,4\\}m//g'", input=page).stdout
            assert max(map(len, shown.splitlines())) <= 80, (verb, max(shown.splitlines(), key=len))
            text = run(shell="groff -man -Tascii -P-cbou | sed 's/\\x1b.\\{0,4\\}m//g'", input=page).stdout
            assert "NAME" in text and "tarn" in text, text[:200]


def completed(line):
    words = line.split(" ")
    quoted = " ".join(shlex.quote(word) for word in words)
    done = run(shell=f"source completion.bash && COMP_WORDS=({quoted}) COMP_CWORD={len(words) - 1} && _tarn && printf '%s\\n' \"${{COMPREPLY[@]}}\"")
    assert done.returncode == 0 and done.stderr == "", done.stderr
    return set(done.stdout.split())


@test
def shells_complete_verbs_options_words_and_files():
    for shell in ("bash", "zsh", "fish"):
        with open(os.path.join(folder, "completion." + shell), "w") as file:
            file.write(run("completion", shell).stdout)
        if shutil.which(shell):
            done = run(shell=f"{shell} -n completion.{shell}")
            assert done.returncode == 0 and done.stderr == "", done.stderr
    assert set(verbs()) | {"help", "completion"} <= completed("tarn ")
    assert completed("tarn pl") == {"plan"} and completed("tarn help ver") == {"verify"}
    assert completed("tarn plan --bou") == {"--boundary"}
    assert completed("tarn plan g --boundary ") == {"refined", "simple"}
    assert completed("tarn plan examples/graphs/figure7") == {"examples/graphs/figure7.json"}
    assert completed("tarn plan -o examples/graphs/figure7") == {"examples/graphs/figure7.json"}
    assert completed("tarn plan g --capacity ") == set() and completed("tarn completion z") == {"zsh"}
    for verb in verbs():
        assert completed(f"tarn {verb} --") == set(options_of(verb)), verb
    if shutil.which("fish"):
        def fish(line):
            done = run(shell=f"fish -c 'source completion.fish; complete -C \"{line}\"'", env={**os.environ, "HOME": folder})
            return {row.split("\t")[0] for row in done.stdout.splitlines()}
        assert "plan" in fish("tarn pl") and "--boundary" in fish("tarn plan --bou"), fish("tarn plan --bou")
        assert {"refined", "simple"} <= fish("tarn plan --boundary ")


@test
def methods_go_by_the_names_of_their_papers():
    for words, same in [(["somas"], "baseline"), (["SOMAS"], "baseline"), (["roam"], "roam-tree"), (["Roam"], "roam-tree")]:
        made = [json.loads(run("plan", real, "--method", word, "--json").stdout) for word in (*words, same)]
        assert made[0]["method"] == made[1]["method"] and made[0]["footprint_bytes"] == made[1]["footprint_bytes"], made
    for word, instead in [("monet", "--budget"), ("MONeT", "--budget"), ("checkmate", "--budget-method checkmate"),
                          ("gist", "--budget-method gist"), ("chen", "--budget-method chen"), ("model", "--reorder")]:
        done = run("plan", toy, "--method", word)
        assert done.returncode == 2 and instead in done.stderr, done.stderr
    done = run("plan", toy, "--method", "nonsense")
    assert done.returncode == 2 and all(f'"{word}"' in done.stderr for word in ("somas", "roam", "llfb", "lowest", "exact")), done.stderr
    told = " ".join(run("plan", "--help-all").stdout.split())
    assert all(word in told for word in ("somas", "roam", "llfb", "Sekiyama", "lowest", "exact", "lifetime", "best-fit"))


@test
def a_size_that_is_no_whole_number_is_told_what_to_write():
    for verb, option in [("plan", "--capacity"), ("plan", "--budget"), ("transform", "--budget"), ("plan", "--alignment"), ("run", "--capacity"), ("info", "--text-max")]:
        for text, instead in [("1.5GiB", "1536MiB"), ("0.5GB", "500MB"), ("1,5MB", "1500KB"), (".5MiB", "512KiB"), ("8G", "8GiB"), ("8 gib", "8GiB"),
                              ("2kb", "2KB"), ("1.0GiB", "1GiB"), ("0.3KiB", "307"), ("17.25TB", "17250GB")]:
            done = run(verb, toy, option, text)
            assert done.returncode == 2 and f"not '{text}': write {instead}; see" in done.stderr and "whole number" in done.stderr, (verb, text, done.stderr)
            assert f"{option} needs" not in run(verb, toy, option, instead).stderr
        for text in ("x", "1.5", "0", "-1", "1.5XB", "0.1B", "99999999999999999999GiB", "", "1..5GB", "9999999999.5TiB"):
            done = run(verb, toy, option, text)
            assert done.returncode == 2 and ": write" not in done.stderr and "needs" in done.stderr, (verb, text, done.stderr)


@test
def a_budget_is_a_share_of_the_footprint_without_one():
    for more in ([], ["--reorder"], ["--alignment", "64"], ["--reorder", "--couple", "--in-place"]):
        whole = json.loads(run("plan", real, *more, "--json").stdout)["footprint_bytes"]
        for share in (90,) if more else (90, 95.5):
            budget = int(whole * share / 100)
            made = [json.loads(run("plan", real, *more, "--budget", text, "--json").stdout) for text in (f"{share}%", str(budget))]
            assert made[0]["budget"]["bytes"] == budget and made[0]["footprint_bytes"] <= budget, (made[0], whole)
            for one in made:
                del one["ms"]
            assert made[0] == made[1], made
    made = [run("transform", real, "--budget", text, "-o", "-") for text in ("90%", str(int(json.loads(run("plan", real, "--json").stdout)["footprint_bytes"] * 0.9)))]
    assert made[0].stdout == made[1].stdout and made[0].returncode == 0
    for text in ("0%", "101%", "%", "x%", "-5%", "70%%"):
        done = run("plan", toy, "--budget", text)
        assert done.returncode == 2 and "share up to 100%" in done.stderr, (text, done.stderr)
    assert run("plan", toy, "--budget", "100%").returncode == 0
    assert run("plan", toy, "--budget-curve", "3", "--budget", "70%").returncode == 2


@test
def explain_plans_where_no_plan_is_given():
    assert run("plan", toy, "-o", "explained.plan").returncode == 0
    assert run("explain", toy, "--json").stdout == run("explain", toy, "explained.plan", "--json").stdout != ""
    assert run("explain", toy, "--quick").returncode == 0


@test
def a_checked_run_says_that_every_byte_was_right():
    assert re.search("^verdict +every byte was right$", run("run", toy, "--check").stdout, re.M)
    assert json.loads(run("run", toy, "--json").stdout)["verdict"] == "every byte was right"
    assert "verdict" not in run("run", toy, "--kernel", "empty").stdout


@test
def a_log_hears_that_a_command_is_at_work():
    pipe = os.path.join(folder, "slow.json")
    os.mkfifo(pipe)
    with subprocess.Popen([tarn, "info", pipe], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as waiting:
        with open(pipe, "w") as writer, open(os.path.join(folder, toy)) as graph:
            line = waiting.stderr.readline()  # nothing is written before there is one
            writer.write(graph.read())
        assert re.fullmatch(r"tarn: \d+ s: info .*slow\.json: still at work\n", line), line
        assert waiting.wait() == 0


@test
def orders_within_more_time_need_no_more_memory():
    curve = json.loads(run("plan", real, "--reorder-curve", "4", "-o", "orders.svg", "--json").stdout)["orders"]
    assert len(curve) >= 2 and curve[0]["overhead_percent"] == 0 and curve[0]["footprint_percent"] == 100
    assert all(a["footprint_bytes"] > b["footprint_bytes"] for a, b in zip(curve[1:], curve[2:])), curve
    for row in curve[1:-1]:
        limit = max(0, row["overhead_percent"])
        made = json.loads(run("plan", real, "--reorder-slowdown", f"{limit + 0.001:.3f}", "--json").stdout)
        assert made["reorder_time"]["critical_path_percent"] <= limit + 0.001, made
    with open(os.path.join(folder, "orders.svg")) as file:
        text = file.read()
    assert "arena, MiB" in text and "increase of modelled time" in text and text.count("<circle") == len(curve)
    for words in (["--reorder-curve", "1"], ["--reorder-curve", "3", "--budget-curve", "3"], ["--reorder-curve", "3", "--reorder"],
                  ["--reorder-curve", "3", "--budget", "1MiB"], ["--reorder-slowdown", "5", "--reorder-keep-time"], ["--reorder-slowdown", "-1"]):
        assert run("plan", toy, *words).returncode == 2, words


def small_graph(name, ops, sizes, on_host=(), capacity=1):
    """ops: of each one the stream, inputs, outputs, workspace, cost; on_host: tensors in a second memory
    space, which has this capacity."""
    ops = [{"id": i, "name": f"o{i}", "kind": "matmul", "stream": stream, "inputs": inputs, "outputs": outputs, "workspace": workspace, "cost": cost}
           for i, (stream, inputs, outputs, workspace, cost) in enumerate(ops)]
    streams = [{"id": i, "name": f"s{i}"} for i in range(1 + max(op["stream"] for op in ops))]
    tensors = [{"id": i, "name": f"t{i}", "size": size, "kind": "intermediate", "space": int(i in on_host)} for i, size in enumerate(sizes)]
    spaces = [{"id": 0, "name": "device", "kind": "device"}, {"id": 1, "name": "host", "kind": "pinned", "capacity": capacity}]
    with open(os.path.join(folder, name), "w") as file:
        json.dump({"format": "tarn.graph", "version": 1, "name": "small", "streams": streams, "spaces": spaces, "ops": ops, "tensors": tensors}, file)


def budgets_of(graph, points, alignment=1):
    rows = json.loads(run("plan", graph, "--alignment", str(alignment), "--budget-curve", str(points), "--json").stdout)["budgets"]
    for more, less in zip(rows, rows[1:]):
        assert more["bytes"] >= more["footprint_bytes"] > less["bytes"] and more["overhead_percent"] < less["overhead_percent"], rows
    assert all(row["bytes"] % alignment == 0 for row in rows), rows
    return [(row["bytes"], row["footprint_bytes"], row["recomputed"]) for row in rows]


@test
def a_curve_has_a_row_for_each_budget_that_saves_time():
    small_graph("chain.json", [(0, [], [0], 0, 5000), (0, [0], [1], 0, 1000), (0, [1], [2], 0, 1000), (0, [2], [3], 6, 1000),
                               (0, [3, 1], [4], 0, 1000)], [1, 4, 1, 1, 1])
    assert budgets_of("chain.json", 5) == budgets_of("chain.json", 40) == [(12, 12, 0), (9, 9, 1), (8, 8, 2)]
    assert len(budgets_of("chain.json", 12, 256)) == 2
    # nothing has a smaller footprint than the graph as it is, though ops could run again
    small_graph("least.json", [(0, [], [0], 0, 5000), (1, [0], [1], 0, 5000), (0, [], [2], 0, 1000), (1, [1, 2], [3], 0, 1000),
                               (0, [], [4, 5], 0, 0), (1, [3, 4], [6, 7, 8], 0, 0), (1, [], [9, 10, 11], 0, 5000)],
                [2, 3, 1, 2, 2, 2, 2, 2, 3, 2, 2, 2])
    for points in (1, 2, 40):
        assert budgets_of("least.json", points) == [(11, 11, 0)]
    budgets_of(real, 6, 256)
    small_graph("full.json", [(0, [], [0], 0, 5000), (0, [0], [1], 0, 1000)], [2, 2], on_host=[0])
    done = run("plan", "full.json", "--alignment", "1", "--budget-curve", "3")
    assert done.returncode == 1 and 'memory space 1 "host": no plan fits 1 byte' in done.stderr, done


@test
def a_figure_of_budgets_is_filled_by_its_points():
    assert run("plan", real, "--budget-curve", "3", "-o", "budgets.svg").returncode == 0
    with open(os.path.join(folder, "budgets.svg")) as file:
        text = file.read()
    width = float(re.search("viewBox='0 0 ([0-9]+)", text)[1])
    xs = [float(x) for x in re.findall("<circle cx='([0-9.]+)'", text)]
    assert max(xs) - min(xs) > width / 2 and "arena, MiB" in text and "increase of modelled time, %" in text, xs


run_tests()

"""What documents say holds: messages stand in the sources, links lead somewhere, commands do as shown, and the figures beside
them are what they print. TAP on standard output.

    documents_test.py SOURCE TARN"""
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile

from cases import run as run_tests, test

source, tarn = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
build = os.path.dirname(tarn)
documents = sorted(["README.md", "CONTRIBUTING.md", "SECURITY.md"] + [
    os.path.relpath(path, source) for pattern in ("docs/**/*.md", "examples/**/*.md") for path in glob.glob(os.path.join(source, pattern), recursive=True)])
rooms = ("streams", "planner", "runtime", "cli")


def read(path):
    with open(os.path.join(source, path), encoding="utf-8") as file:
        return file.read()


def texts():
    """The string literals of the library and the command, those in a row joined: one text a line."""
    for room in rooms:
        for path in glob.glob(os.path.join(source, room, "**/*.c"), recursive=True):
            text = re.sub(r'(?<!\\)"\s*(PRI\w+\s*)?"', "", read(path))
            yield from re.findall(r'"((?:[^"\\\n]|\\.)*)"', text)


@test
def every_message_of_troubleshooting_stands_in_the_sources():
    messages = re.findall(r"^### `(.+)`$", read("docs/troubleshooting.md"), re.M)
    said = "\n".join(texts()).replace('\\"', '"')
    assert len(messages) >= 20
    absent = []
    for message in messages:
        parts = [re.escape(part) for part in message.replace("… bytes", "…").split("…")]  # "… bytes" may be one %s
        if not re.search(".+?".join(parts), said):
            absent.append(message)
    assert not absent, absent


@test
def links_between_documents_lead_somewhere():
    absent = []
    for path in documents:
        for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", read(path)):
            if "://" not in target and not os.path.exists(os.path.join(source, os.path.dirname(path), target)):
                absent.append(f"{path}: {target}")
    assert not absent, absent


@test
def source_files_that_documents_name_exist():
    """Those in backticks with their path from the root."""
    absent, count = [], 0
    for path in documents:
        for name in re.findall(r"`((?:streams|planner|runtime|cli|include|python|tests|examples|docs)/[\w./-]+\.(?:c|h|py|cpp|hpp|sh|map))`", read(path)):
            count += 1
            if not os.path.exists(os.path.join(source, name)):
                absent.append(f"{path}: {name}")
    assert count >= 50 and not absent, (count, absent)


# ---- Commands ----

# What is not run here, and why: the beginning of a command, and its reason.
NOT_RUN_HERE = {
    "meson setup build && meson compile -C build": "these build what this test belongs to, and run it",
    "meson setup build -Dtests=enabled && ninja -C build": "likewise",
    "meson test -C build": "this test is one of them",
    "tests/run.sh": "it runs this test",
    "tests/fuzz/run.sh build-fuzz 600": "ten minutes a fuzzer; tests/run.sh --with fuzz runs it for one",
    "TARN_CAMPAIGN=60 tests/fuzz/run.sh build-fuzz": "an hour; tests/run.sh --with fuzz runs it for minutes",
    "meson setup build --prefix /opt/tarn": "embed_ways does it, with another prefix",
    "TARN_LIBRARY=build/libtarn.so tests/with_torch.sh tests/python/torch/tables.py": "half an hour with PyTorch; torch runs it on a small network",
    "TARN_LIBRARY=build/libtarn.so TARN_REQUIRE=torch-models tests/with_torch.sh": "minutes with PyTorch and libraries of models",
    "python": "torch runs these blocks",
    "tarn explain": "of docs/measured/explain.md: what_explain_answers_is_as_it_is_shown",
    "tarn compare": "of docs/measured/explain.md: what_explain_answers_is_as_it_is_shown",
}
# What the words in capitals of a command stand for; a verb may have its own.
STANDS_FOR = {"GRAPH": "examples/graphs/figure2.json", "PLAN": "figure2.plan", "ORDER": "order.json", "FILE": "picture.html", "G": "changed.json",
              "N": "2", "LIST": "graphs.list", "FOLDER": "plans", "IN": "examples/graphs/twelve.csv", "OUT": "answer.csv"}
OF_VERB = {"convert": {"PLAN": "twelve.plan"}, "pairs": {"NAME": "clocks"}}
PROGRAMS = "tarn |meson |mpirun |python |examples/|tests/|docs/|build/|[A-Z_]+=[^ ]+ tests/"


def commands(path):
    """The lines of a document that one types: those behind a $, and in blocks without any those that begin with a program."""
    for block in re.findall(r"(?:^    .*\n)+", read(path), re.M):
        lines = [line[4:] for line in re.sub(r" \\\n\s+", " ", block).splitlines()]
        typed = [line[2:] for line in lines if line.startswith("$ ")]
        for line in typed or [line for line in lines if re.match(f"({PROGRAMS})(?!= )", line)]:
            yield re.split(r"\s{2,}(?=[a-z#])", line)[0].rstrip()


def is_run_here(path, command):
    return path != "docs/measured/explain.md" and not any(command.startswith(beginning) for beginning in NOT_RUN_HERE if not beginning.startswith("tarn "))


def filled_in(command):
    verb = command.split()[1] if command.startswith("tarn ") else ""
    names = {**STANDS_FOR, **OF_VERB.get(verb, {})}
    command = command.replace("[A [B]]", "a b").replace("[", "").replace("]", "")
    return re.sub(r"(?<![\w$/.-])[A-Z]+(?![\w/.=-])", lambda word: names[word[0]], command)


class Place:
    """A folder with the examples and the command, where a reader would be."""

    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory()
        for name in ("examples", "tests", "docs"):
            os.symlink(os.path.join(source, name), os.path.join(self.folder.name, name))
        os.symlink(tarn, os.path.join(self.folder.name, "tarn"))
        os.symlink(build, os.path.join(self.folder.name, "build"))
        with open(os.path.join(self.folder.name, "graphs.list"), "w", encoding="utf-8") as file:
            file.write("examples/graphs/figure2.json\nexamples/graphs/figure7.json\n")
        for name, graph in (("figure2", "figure2.json"), ("twelve", "twelve.csv")):
            self.run(f"tarn plan examples/graphs/{graph} -o {name}.plan")
        return self

    def __exit__(self, *_):
        self.folder.cleanup()

    def run(self, command):
        environment = {**os.environ, "PATH": build + ":" + os.environ["PATH"], "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
                       "OMPI_MCA_rmaps_base_oversubscribe": "1", "OMPI_MCA_mpi_yield_when_idle": "1", "OMP_NUM_THREADS": "1"}
        done = subprocess.run(["bash", "-c", command], cwd=self.folder.name, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{command}: exit {done.returncode}\n{done.stderr[-2000:]}"
        return done.stdout


def is_lacking(command):
    """A part that is not here, which is a failure where it was asked for."""
    needs = (["mpirun"] if "mpirun" in command else []) + (["build/examples/train"] if "build/examples/train" in command else [])
    lacking = [need for need in needs if not (shutil.which(need) or os.path.exists(os.path.join(os.path.dirname(build), need)))]
    assert not lacking or "train" not in os.environ.get("TARN_REQUIRE", "").split(","), lacking
    return lacking


@test
def every_command_of_a_document_works():
    count, used = 0, set()
    with Place() as place:
        for path in documents:
            for command in commands(path):
                used |= {beginning for beginning in NOT_RUN_HERE if command.startswith(beginning)}
                if is_run_here(path, command) and not is_lacking(command):
                    place.run(f"TARN=./tarn {command} examples/graphs/figure2.json" if command == "examples/quickstart.sh" else filled_in(command))
                    count += 1
    assert count >= 20 and used == set(NOT_RUN_HERE), (count, set(NOT_RUN_HERE) - used)


@test
def what_explain_answers_is_as_it_is_shown():
    """Of two of the four graphs; the others take longer."""
    done = subprocess.run([sys.executable, os.path.join(source, "docs/make_explain.py"), tarn, "alexnet", "resnet50"], capture_output=True, text=True, check=True)
    shown = {section.split("\n")[0]: section.strip() for section in read("docs/measured/explain.md").split("\n## ")[1:]}
    made = {section.split("\n")[0]: section.strip() for section in done.stdout.split("\n## ")[1:]}
    assert set(shown) == {"alexnet", "resnet50", "bert", "googlenet"} and len(made) == 2
    for name, section in made.items():
        for line, was in zip(section.splitlines(), shown[name].splitlines()):
            assert line == was, (line, was)
        assert len(section) == len(shown[name])


@test
def figures_are_what_show_draws():
    shown = os.path.join(source, "docs/pictures/how")
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, os.path.join(source, "docs/pictures/make.py"), tarn, folder], check=True)
        assert os.listdir(shown) and sorted(os.listdir(folder)) == sorted(os.listdir(shown))
        for name in os.listdir(folder):
            with open(os.path.join(folder, name), encoding="utf-8") as file:
                assert file.read() == read(os.path.join(shown, name)), name
            assert f"pictures/how/{name})" in read("docs/how-it-works.md"), name


@test
def results_are_what_their_commands_print():
    """Rows and commands have numbers."""
    rows = re.findall(r"^\| (\d+) \| (.+) \| (.+) \| (.+) \|(.*)\|$", read("README.md"), re.M)
    commands_of = {number: command for command, number in re.findall(r"^    (tarn .*\S) +# (\d+)$", read("README.md"), re.M)}
    same_order = re.search(r"In rows ([\d, and]+) the arena is the smallest possible for the order", read("README.md"))[1]
    assert len(rows) >= 6 and len(rows) == len(commands_of)
    with Place() as place:
        for number, about, apart, arena, remark in rows:
            command = commands_of[number]
            told = place.run(command)
            less = ["-" + figure for figure in re.findall(r"([\d.]+) % less", remark)]
            for figure in [apart, arena, *re.findall(r"([\d.]+) % more", remark), *less]:
                assert re.search(rf"(?<![\d.]){re.escape(figure.strip())}(?![\d.])", told), (command, figure, told)
            changed = float((re.search(r"critical path percent (\S+)", told) or [0, 0])[1])  # the price of another order is said
            assert (abs(changed) < 0.05) == ("modelled time" not in remark) or "--budget" in command, (command, changed)
            is_smallest = "smallest possible" in remark or number in re.findall(r"\d+", same_order)
            assert is_smallest == ("optimal          yes" in told) or "--budget" in command, (command, about, told)


@test
def lines_are_no_longer_than_a_hundred_columns():
    """Of the README all; of the manual's pages all but headings, and lines with a table's row, a picture or an address."""
    long = []
    for path in documents:
        if not path.startswith("docs/measured/"):
            for number, line in enumerate(read(path).splitlines(), 1):
                is_exempt = path != "README.md" and (line.startswith(("|", "#", "!")) or "://" in line)
                if len(line) > 100 and not is_exempt:
                    long.append((path, number, len(line)))
    assert not long, long


@test
def verbs_and_options_that_documents_name_are_there():
    options = {}
    for path in documents:
        for words in re.findall(r"(?<=`)tarn [a-z][^`&|]*|(?<=&& )tarn [a-z][^`&|]*", read(path)):
            verb = words.split()[1]
            if verb not in options:
                done = subprocess.run([tarn, "help", "--all", verb], capture_output=True, text=True, check=False)
                assert done.returncode == 0, (path, words)
                options[verb] = set(re.findall(r"(?<![\w-])-{1,2}[a-z][a-z-]*", done.stdout))
            assert set(re.findall(r"(?<![\w-])-{1,2}[a-z][a-z-]*", words)) <= options[verb], (path, words)
    assert len(options) >= 8


@test
def the_program_of_the_readme_is_a_whole_one():
    program = re.search(r"^(?:    #include .*\n)(?:(?:    .*)?\n)+?    }\n\n`", read("README.md"), re.M)[0]
    lines = [line[4:] for line in program.splitlines()[:-1]]
    assert sum(bool(line) for line in lines) <= 25
    with Place() as place:
        with open(os.path.join(place.folder.name, "program.c"), "w", encoding="utf-8") as file:
            file.write("\n".join(lines))
        place.run(f"cc -std=c11 -Wall -Wextra -Werror -Wno-unused-parameter -I {source}/include program.c -L build -ltarn -Wl,-rpath,{build} -o program && ./program")


run_tests()

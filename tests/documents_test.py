"""What documents quote must stand in the sources. TAP on standard output.

    documents_test.py SOURCE"""
import glob
import os
import re
import sys

from cases import run as run_tests, test

source = os.path.abspath(sys.argv[1])
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
        parts = [re.escape(part) for part in message.split("…")]
        if not re.search(".+?".join(parts), said):
            absent.append(message)
    assert not absent, absent


@test
def links_between_documents_lead_somewhere():
    absent = []
    for path in ["README.md", *glob.glob("*.md", root_dir=source), *(f"docs/{name}" for name in glob.glob("*.md", root_dir=os.path.join(source, "docs")))]:
        for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", read(path)):
            if "://" not in target and not os.path.exists(os.path.join(source, os.path.dirname(path), target)):
                absent.append(f"{path}: {target}")
    assert not absent, absent


run_tests()

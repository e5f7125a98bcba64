"""The binary interface, held against the list of what programs may have been built with.

    abi.py SOURCE LIBRARY COMPILER...           the test: TAP on stdout
    abi.py --write SOURCE LIBRARY COMPILER...   writes the list anew as far as that is allowed

tests/data/abi.txt has a line for each exported function, struct, member and constant, with the
version that brought it. Lines of the version that the headers have now may change, since it is not
released; those of earlier versions may not. Layouts are those of machines with 64 bits."""
import re
import subprocess
import sys
import tempfile
from pathlib import Path


BREAKS = ("programs that were built with version {} break. Leave it as it was, and put what is new "
          "beside it; or give the library another soname (meson.build) and the symbols another "
          "version (include/tarn.map), and begin the list anew")
NEW = "is not in tests/data/abi.txt: run `ninja -C BUILD abi-list` and commit the list"


def headers(source):
    """The text of all public headers, without comments and without what C++ alone sees."""
    files = [source / "include/tarn.h", *sorted((source / "include/tarn").glob("*.h"))]
    text = "\n".join(file.read_text() for file in files)
    text = re.sub(r"/\*.*?\*/", " ", text, flags=re.S)
    text = re.sub(r"\\\n", " ", text)
    text = re.sub(r'#ifdef __cplusplus\nextern "C" \{\n#endif|#ifdef __cplusplus\n\}\n#endif', "", text)
    return text


def names_of(declaration):
    """What a declaration of members declares: "uint64_t a, b[2]" -> a, b."""
    function = re.search(r"\(\*(?:const )?(\w+)(?:\[\w*\])?\)", declaration)
    if function:
        return [function.group(1)]
    return [re.search(r"(\w+)\s*(?:\[[^\]]*\]\s*)*$", part).group(1)
            for part in declaration.split(",")]


def structs_of(text):
    """struct -> its members' names."""
    found = {}
    for name, body in re.findall(r"\bstruct (tarn_\w+) \{(.*?)\n\};", text, re.S):
        members = [names_of(" ".join(part.split())) for part in body.split(";") if part.strip()]
        found[name] = [member for names in members for member in names]
    return found


def functions_of(text):
    """function -> its type, on one line, without the names of parameters."""
    found = {}
    for result, name, arguments in re.findall(r"TARN_API ([^;{]*?)\b(tarn_\w+)\(([^;{]*)\);", text):
        types = [re.sub(r"\s*\b\w+(\[\])?$", "", " ".join(argument.split()))
                 for argument in re.split(r",(?![^()]*\))", arguments)]
        if arguments.strip() == "void":
            types = ["void"]
        found[name] = f"{' '.join(result.split())} ({', '.join(types)})"
    return found


def growing(text, structs):
    """The structs that may get new members at their end, see docs/abi.md."""
    found = {name for name, members in structs.items() if members[0] == "struct_size"}
    for arguments in re.findall(r"TARN_API [^;{]*?_sized\(([^;{]*)\);", text):
        found.add(re.findall(r"struct (tarn_\w+) \*\w+,\s*size_t size", arguments)[-1])
    found.update(re.findall(r"struct (tarn_\w+_report) \*report;", text))
    return found


def unnamed(source):
    """What keeps its size for ever and is not said to: docs/abi.md names every such struct."""
    text, page = headers(source), (source / "docs/abi.md").read_text()
    structs = structs_of(text)
    return [f"struct {name} has no size of its own, and docs/abi.md does not name it"
            for name in sorted(structs.keys() - growing(text, structs)) if f"`{name}`" not in page]


def layout(source, compiler, structs, constants):
    """Facts by compiling a program that tells them."""
    lines = [f'printf("struct {name} %zu\\n", sizeof(struct {name}));' for name in structs]
    lines += [f'printf("member {name}.{member} %zu+%zu\\n", offsetof(struct {name}, {member}), '
              f"sizeof(((struct {name} *)0)->{member}));"
              for name, members in structs.items() for member in members]
    lines += [f'printf("constant {name} %lld\\n", (long long)({name}));' for name in constants]
    program = ("#include <stdio.h>\n#include <tarn.h>\n#include <tarn/conformance.h>\n"
               "int main(void)\n{\n" + "\n".join(lines) + "\nreturn sizeof(void *) != 8;\n}\n")
    with tempfile.TemporaryDirectory() as folder:
        file, binary = Path(folder) / "layout.c", Path(folder) / "layout"
        file.write_text(program)
        subprocess.run([*compiler, "-std=c11", f"-I{source / 'include'}", str(file), "-o",
                        str(binary)], check=True)
        run = subprocess.run([str(binary)], stdout=subprocess.PIPE, text=True)
    return None if run.returncode else run.stdout.splitlines()


def facts_now(source, library, compiler):
    """Key -> value, for example "member tarn_call.op" -> "8+4"; None: not a machine of 64 bits."""
    text = headers(source)
    structs, functions = structs_of(text), functions_of(text)
    constants = [name for body in re.findall(r"\benum tarn_\w+ \{(.*?)\}", text, re.S)
                 for name in re.findall(r"\b(TARN_\w+)\b\s*(?:=[^,]*)?(?:,|\s*$)", body)]
    constants += re.findall(r"#define (TARN_(?!VERSION)\w+) +(?:UINT64_C\(|UINT\d+_MAX|\d)", text)
    told = layout(source, compiler, structs, constants)
    if told is None:
        return None
    facts = {line.rsplit(" ", 1)[0]: line.rsplit(" ", 1)[1] for line in told}
    for name in growing(text, structs):
        facts[f"struct {name}"] += " grows"
    symbols = subprocess.run(["nm", "-D", "--defined-only", "--with-symbol-versions", str(library)],
                             stdout=subprocess.PIPE, text=True, check=True).stdout
    for name, version in re.findall(r" [TDBR] (tarn_\w+)@@(\w+)", symbols):
        facts[f"function {name}"] = f"{version} {functions.get(name, 'not in the headers')}"
    for name, kind in functions.items():
        facts.setdefault(f"function {name}", f"conformance {kind}")
    return facts


def read(path):
    """Key -> (version, value) by the list; later lines take the place of earlier ones."""
    found = {}
    for line in path.read_text().splitlines() if path.exists() else []:
        if line and not line.startswith("#"):
            version, key, value = re.match(r"(\S+) (\S+ \S+) (.*)", line).groups()
            found[key] = (version, value)
    return found


def version_of(source):
    return re.search(r'TARN_VERSION_TEXT "(.*?)"', (source / "include/tarn/error.h").read_text())[1]


def may_become(old, new):
    """May a struct of an earlier version have become what it is now?"""
    if not old.endswith(" grows") or not new.endswith(" grows"):
        return False
    return int(new.split()[0]) > int(old.split()[0])


def compare(listed, facts, version):
    """What is wrong, and what --write may change without breaking a program."""
    wrong, missing = [], []
    for key, (since, value) in listed.items():
        now = facts.get(key)
        if now == value:
            continue
        if since == version or (now and may_become(value, now)):
            missing.append(f"{key} was {value}, is {now or 'gone'}: it {NEW}")
        else:
            wrong.append(f"{key} was {value}, is {now or 'gone'}: " + BREAKS.format(since))
    for key in facts.keys() - listed.keys():
        if is_in_padding(key, listed, facts, version):
            wrong.append(f"{key} is not behind all that its struct had: older programs have any "
                         "bytes there. Put it behind a member that fills the struct's end")
        else:
            missing.append(f"{key} {NEW}")
    return wrong, missing


def is_in_padding(key, listed, facts, version):
    """A new member inside of what an earlier version knew: there older programs have any bytes."""
    kind, name = key.split()
    since, value = listed.get("struct " + name.split(".")[0], (version, "0"))
    return (kind == "member" and since != version and
            int(facts[key].split("+")[0]) < int(value.split()[0]))


HEAD = """# What programs may have been built with: version, kind, name, and
# function: version of the symbol (or the library), and its type; struct: size; member: offset+size
# in its struct; constant: value. Written by tests/project/abi.py, which is also the test.
"""


def write(path, listed, facts, version):
    lines = []
    for key, value in facts.items():
        since = listed.get(key, (version, value))
        lines.append((key, since[0] if since[1] == value else version, value))
    path.write_text(HEAD + "".join(f"{since} {key} {value}\n" for key, since, value in sorted(lines)))


def main():
    words = [word for word in sys.argv[1:] if word != "--write"]
    source, library, compiler = Path(words[0]), Path(words[1]), words[2:]
    path, version = source / "tests/data/abi.txt", version_of(source)
    facts, listed = facts_now(source, library, compiler), read(path)
    if facts is None:
        print("1..0 # SKIP the list is of machines with 64 bits")
        return 0
    wrong, missing = compare(listed, facts, version)
    if "--write" in sys.argv:
        for line in wrong:
            print("abi: not written:", line, file=sys.stderr)
        if not wrong:
            write(path, listed, facts, version)
        return len(wrong) > 0
    print("1..3")
    for number, (name, found) in enumerate((("nothing_that_programs_have_is_gone_or_changed", wrong),
                                            ("everything_is_in_the_list", missing),
                                            ("every_struct_without_a_size_is_named", unnamed(source))), 1):
        print(f"{'not ok' if found else 'ok'} {number} - {name}")
        for line in found:
            print("#", line)
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""One-token mutants of C text: what tests/mutation.py compiles and tests.

Idea: the tokens outside comments, literals and directives are looked at one by one; each rule says what
stands there instead. Source: DeMillo, Lipton, Sayward 1978 (competent programmers make small mistakes);
the operators are those of Offutt's five sufficient ones that C without floating point has, and calls left out.
Left out: lines that allocate or assert (sizes of memory are for the sanitizers), calls that only free, and functions
that only assertions call (`..._is_valid`, `..._are_valid`).
"""
import collections
import hashlib
import os
import re

Mutant = collections.namedtuple("Mutant", "file line start end text shown rule key")

# What a lexer does not see: comments, strings, characters, directives (with lines continued).
UNSEEN = re.compile(
    r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|^[ \t]*#(?:\\\n|[^\n])*', re.S | re.M)
TOKEN = re.compile(
    r"[A-Za-z_]\w*|\d[\w.]*|->|<<=|>>=|<<|>>|<=|>=|==|!=|&&|\|\||\+\+|--|[-+*/%&|^]=|\S")
LEFT_OUT_LINES = re.compile(r"\b(malloc|calloc|realloc|assert|static_assert|tarn_region_take|tarn_region_copy)\s*\(")
ONLY_FREES = re.compile(r"(^|_)(free|finish|destroy|close|release)(_|$)")
ONLY_ASSERTED = re.compile(r"(^|_)(is|are)_valid$")
KEYWORDS = {"if", "for", "while", "switch", "return", "sizeof", "do", "else"}

RELATIONS = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="}
SWAPPED = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}
WORDS = {"&&": "||", "||": "&&", "+=": "-=", "-=": "+=", "true": "false", "false": "true",
         "continue": "break", "break": "continue", "0": "1", "1": "0"}
RULES = {"&&": "and, or", "||": "and, or", "+=": "sum", "-=": "sum", "true": "constant",
         "false": "constant", "continue": "loop", "break": "loop", "0": "constant", "1": "constant"}


def blank(match):
    return re.sub(r"[^\n]", " ", match.group())


def closing(tokens, opening):
    """The index of the bracket that closes the one at `opening`."""
    depth = 0
    for k in range(opening, len(tokens)):
        depth += (tokens[k][0] in "([{") - (tokens[k][0] in ")]}")
        if depth == 0:
            return k
    return opening


def functions(tokens):
    """For each token: the name of the function whose body it is in, or None."""
    names, depth, outer, name = [], 0, None, None
    for k, (text, _) in enumerate(tokens):
        if depth == 0 and text == "(" and outer is None:
            outer = tokens[k - 1][0]
        if depth == 0 and text == "{":
            name = outer if tokens[k - 1][0] == ")" else None
        depth += (text == "{") - (text == "}")
        names.append(name if depth > 0 else None)
        if depth == 0 and text in (";", "}"):
            outer = None
    return names


def selects(tokens, k):
    """Whether a comparison chooses between two values, as a maximum does: `a < b ? a : b`."""
    depth = 0
    for text, _ in tokens[k + 1:]:
        if depth == 0 and text in ("?", ";", "&&", "||", ")", ","):
            return text == "?"
        depth += (text in "([") - (text in ")]")
    return False


def changes_at(tokens, k):
    """(rule, start, end, replacement) of every change at token k."""
    text, start = tokens[k]
    end = start + len(text)
    before = tokens[k - 1][0] if k else ""
    after = tokens[k + 1][0] if k + 1 < len(tokens) else ""
    if text in RELATIONS:
        if text in SWAPPED and selects(tokens, k):
            yield "max, min", start, end, SWAPPED[text]
        else:
            yield "comparison", start, end, RELATIONS[text]
    elif text in "+-" and re.match(r"[\w)\]]", before) and before != "return":
        yield "sum", start, end, "-" if text == "+" else "+"
    elif text in WORDS:
        yield RULES[text], start, end, WORDS[text]
    elif text == "!":
        yield "not", start, end, ""
    elif text == "if" and after == "(":
        last = closing(tokens, k + 1)
        within = {token for token, _ in tokens[k + 2:last]}
        if within & {"==", "!=", "!"} and not within & {"&&", "||"}:
            return  # the rules above make the same mutant
        yield "condition", tokens[k + 1][1], tokens[k + 1][1] + 1, "(!("
        # The second half of the change: the bracket, doubled.
        yield None, tokens[last][1], tokens[last][1] + 1, "))"
    elif re.match(r"[A-Za-z_]", text) and text not in KEYWORDS and after == "(" and before in (";", "{", "}", ")", "else"):
        last = closing(tokens, k + 1)
        if tokens[last + 1][0] == ";" and not ONLY_FREES.search(text):
            yield "call", start, tokens[last][1] + 1, ""


def mutants_of(file, source):
    """All mutants of a file, in an order that depends on each one's own line and function alone: who takes
    the first ones keeps them when other lines change, or the file moves."""
    masked = UNSEEN.sub(blank, source)
    tokens = [(match.group(), match.start()) for match in TOKEN.finditer(masked)]
    function = functions(tokens)
    lines = source.split("\n")
    seen = collections.Counter()
    mutants = []
    for k in range(len(tokens)):
        if not function[k] or ONLY_ASSERTED.search(function[k]):
            continue
        line = source.count("\n", 0, tokens[k][1])
        if LEFT_OUT_LINES.search(lines[line]):
            continue
        changes = list(changes_at(tokens, k))
        if not changes:
            continue
        text = source
        for _, start, end, replacement in reversed(changes):
            text = text[:start] + replacement + text[end:]
        rule, start, end, replacement = changes[0]
        shown = (lines[line].strip(), text.split("\n")[line].strip() or ";")
        same = (function[k], *shown)
        seen[same] += 1
        name = "|".join((os.path.basename(file), *same, str(seen[same])))
        key = hashlib.sha1(name.encode()).hexdigest()[:12]
        mutants.append(Mutant(file, line + 1, start, end, text, shown, rule, key))
    return sorted(mutants, key=lambda mutant: mutant.key)

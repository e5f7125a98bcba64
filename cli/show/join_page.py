"""The page in one file: join_page.py PAGE.html STYLE.css SCRIPT.js... OUTPUT. Run by the build.

@STYLE@ and @SCRIPT@ in the page are replaced by the files, scripts one after the other in a function of
their own. A page obeys no other style and no other script than these, by their hashes, and loads
nothing. A NUL ends the output, for C."""
import base64
import hashlib
import sys

page, style, *scripts, output = sys.argv[1:]


def read(name):
    with open(name, encoding="utf-8") as file:
        return file.read()


def digest(text):
    return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"


style = read(style)
script = '"use strict";\n(() => {\n' + "\n".join(map(read, scripts)) + "})();\n"
assert "</script" not in script and "</style" not in style
policy = f"default-src 'none'; img-src data:; style-src {digest(style)}; script-src {digest(script)}"
text = read(page).replace("@POLICY@", policy).replace("@STYLE@", style).replace("@SCRIPT@", script)
with open(output, "wb") as file:
    file.write(text.encode() + b"\0")

"""Shows Doxygen the plain comments of a header: the first one describes the file (that of tarn.h is the first page), one behind
code what stands before it, one that begins with "----" a section, each other what follows.

    doxygen_filter.py HEADER"""
import re
import sys


def escape(text):
    """What Doxygen would obey; code in backticks is as it is."""
    return re.sub(r"`[^`]*`|[@\\<>#%]", lambda found: found[0] if found[0][0] == "`" else "\\" + found[0], text)


class Marker:
    """Replaces comments; a section ends where the next one begins, with the struct that it is in, or with the header."""

    def __init__(self):
        self.open = ""  # "struct", "file": where a section is open

    def close(self):
        was, self.open = self.open, ""
        return "/** @} */\n" if was else ""

    def __call__(self, found):
        if found[0] == "};":
            return (self.close() if self.open == "struct" else "") + "};"
        before, text = found[1], escape(found[2])
        if found.start() == 0:
            kind = "@mainpage Tarn" if sys.argv[1].endswith("/tarn.h") else "@file"
            return f"/** {kind}\n *{text}*/"
        section = re.match(r" *---- (.*?) ----(.*)", text, re.S)
        if section:
            begin = f"{self.close()}/** @name {section[1]}\n *{section[2]}*/\n/** @{{ */\n"
            self.open = "struct" if before else "file"
            return begin
        return f"{before}/**{'<' if before.strip() else ''}{text}*/"


with open(sys.argv[1], encoding="utf-8") as file:
    header = file.read()
marker = Marker()
header = re.sub(r"^\};|([^\n]*?)/\*(.*?)\*/", marker, header, flags=re.S | re.M)
end = header.rfind("#ifdef __cplusplus")
sys.stdout.write(header[:end] + marker.close() + header[end:] if end > 0 else header)

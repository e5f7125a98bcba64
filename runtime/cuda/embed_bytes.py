"""A file as a C array: embed_bytes.py INPUT NAME OUTPUT. Run by the build."""
import sys

source, name, target = sys.argv[1:]
with open(source, "rb") as file:
    data = file.read()
with open(target, "w") as file:
    file.write(f"extern const unsigned char {name}[];\n")
    file.write(f"_Alignas(8) const unsigned char {name}[{len(data)}] = {{\n")
    for i in range(0, len(data), 16):
        file.write(",".join(map(str, data[i : i + 16])) + ",\n")
    file.write("};\n")

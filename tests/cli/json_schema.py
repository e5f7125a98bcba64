"""The keywords of JSON Schema 2020-12 that docs/schemas use, and no others: a schema with another keyword is an error."""
import json
import os
import re

NOTES = {"$schema", "$defs", "title", "description", "then", "else"}
TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None)}


def is_type(value, name):
    if name == "integer":
        return not isinstance(value, bool) and (isinstance(value, int) or isinstance(value, float) and value.is_integer())
    return isinstance(value, TYPES[name])


class Schema:
    def __init__(self, path):
        self.folder = os.path.dirname(path)
        self.files = {}
        self.name = os.path.basename(path)
        self.root = self._file(self.name)

    def _file(self, name):
        if name not in self.files:
            with open(os.path.join(self.folder, name), encoding="utf-8") as file:
                self.files[name] = json.load(file)
        return self.files[name]

    def _resolve(self, reference, base):
        name, _, pointer = reference.partition("#")
        base = name or base
        schema = self._file(base)
        for key in pointer.split("/")[1:]:
            schema = schema[key]
        return schema, base

    def faults(self, value):
        """The places, as JSON pointers, where the value breaks the schema."""
        return list(self._check(value, self.root, self.name, ""))

    def _check(self, value, schema, base, at):
        for keyword in schema:
            if keyword in NOTES:
                continue
            check = getattr(self, "_" + keyword.lstrip("$").lower() + "_", None)
            if check is None:
                raise ValueError(f"unknown keyword {keyword}")
            yield from check(value, schema, base, at)

    def _ref_(self, value, schema, base, at):
        yield from self._check(value, *self._resolve(schema["$ref"], base), at)

    def _if_(self, value, schema, base, at):
        branch = "else" if any(True for _ in self._check(value, schema["if"], base, at)) else "then"
        yield from self._check(value, schema.get(branch, {}), base, at)

    def _type_(self, value, schema, base, at):
        if not is_type(value, schema["type"]):
            yield at

    def _const_(self, value, schema, base, at):
        if value != schema["const"] or isinstance(value, bool):
            yield at

    def _enum_(self, value, schema, base, at):
        if value not in schema["enum"]:
            yield at

    def _pattern_(self, value, schema, base, at):
        if isinstance(value, str) and not re.search(schema["pattern"], value):
            yield at

    def _maxlength_(self, value, schema, base, at):
        if isinstance(value, str) and len(value) > schema["maxLength"]:
            yield at

    def _minimum_(self, value, schema, base, at):
        if isinstance(value, (int, float)) and value < schema["minimum"]:
            yield at

    def _maximum_(self, value, schema, base, at):
        if isinstance(value, (int, float)) and value > schema["maximum"]:
            yield at

    def _required_(self, value, schema, base, at):
        if isinstance(value, dict) and any(key not in value for key in schema["required"]):
            yield at

    def _properties_(self, value, schema, base, at):
        for key in schema["properties"] if isinstance(value, dict) else []:
            if key in value:
                yield from self._check(value[key], schema["properties"][key], base, f"{at}/{key}")

    def _additionalproperties_(self, value, schema, base, at):
        if schema["additionalProperties"] is not False:
            raise ValueError("additionalProperties is false, or absent")
        for key in value if isinstance(value, dict) else []:
            if key not in schema["properties"]:
                yield at + "/" + key.replace("~", "~0").replace("/", "~1")

    def _items_(self, value, schema, base, at):
        for i, item in enumerate(value if isinstance(value, list) else []):
            yield from self._check(item, schema["items"], base, f"{at}/{i}")

    def _prefixitems_(self, value, schema, base, at):
        for i, (item, each) in enumerate(zip(value, schema["prefixItems"]) if isinstance(value, list) else []):
            yield from self._check(item, each, base, f"{at}/{i}")

    def _minitems_(self, value, schema, base, at):
        if isinstance(value, list) and len(value) < schema["minItems"]:
            yield at

    def _maxitems_(self, value, schema, base, at):
        if isinstance(value, list) and len(value) > schema["maxItems"]:
            yield at

"""Writes the types of the wire: `src/gloveport/_wire.py`, from the description of a sandbox's server, and
`src/gloveport/_gateway_wire.py`, from that of a gateway.

    generate.py [--check]

With `--check` nothing is written, and the exit code is 1 if a file is not what would be written. The same descriptions
always give the same files.
"""

import argparse
import json
import keyword
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

HERE = Path(__file__).resolve().parent
CRATES = HERE.parent.parent / "crates"

# A schema of the description: any JSON object.
Schema: TypeAlias = dict[str, Any]

HEAD = '''"""The bodies of requests and answers, as {whose} describes them.

Made by `generate.py` from its openapi.json. Do not change it by hand.
"""

from __future__ import annotations

from typing import {names}
'''


@dataclass(frozen=True)
class Description:
    """A description, whose it is, the file that is made from it, and the beginning of the paths that matter."""

    whose: str
    openapi: Path
    target: Path
    paths: str


DESCRIPTIONS = (
    Description(
        "a sandbox's server", CRATES / "sandbox/server/src/docs/openapi.json", HERE / "src/gloveport/_wire.py", "/"
    ),
    Description(
        "a gateway", CRATES / "agent/gateway/src/openapi.json", HERE / "src/gloveport/_gateway_wire.py", "/v1/"
    ),
)

SIMPLE = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}


class UnknownSchemaError(Exception):
    """A schema has a form that this generator does not know."""


def name_of(reference: str) -> str:
    return reference.rsplit("/", 1)[1]


def type_of(schema: Schema) -> str:
    """The type of a value as Python writes it."""
    if "$ref" in schema:
        return name_of(schema["$ref"])
    if "enum" in schema:
        return f"Literal[{', '.join(json.dumps(value) for value in schema['enum'])}]"
    if "oneOf" in schema:
        # What may be nothing says so at its end.
        types = dict.fromkeys(type_of(one) for one in schema["oneOf"])
        return " | ".join(sorted(types, key=lambda each: each == "None"))
    kinds = schema.get("type")
    if isinstance(kinds, list):
        return " | ".join(type_of({**schema, "type": kind}) for kind in kinds)
    if kinds == "array":
        return f"list[{type_of(schema['items'])}]"
    if kinds == "object":
        values = schema.get("additionalProperties")
        return f"dict[str, {type_of(values) if isinstance(values, dict) else 'object'}]"
    if kinds in SIMPLE:
        return SIMPLE[kinds]
    raise UnknownSchemaError(f"no type is known for {json.dumps(schema)}")


def text_of(schema: Schema) -> str:
    return " ".join(schema.get("description", "").split())


def members(properties: dict[str, Schema]) -> Iterator[str]:
    for name, schema in properties.items():
        yield f"    {name}: {type_of(schema)}"


def is_plain(name: str) -> bool:
    return name.isidentifier() and not keyword.iskeyword(name)


def dictionary(name: str, bases: list[str], properties: dict[str, Schema], total: bool, text: str) -> str:
    """A TypedDict with these members, as a class unless a member's name forbids it."""
    ending = "" if total else ", total=False"
    if not all(map(is_plain, properties)):
        if bases:
            raise UnknownSchemaError(f"{name} has optional members whose names are no names of Python")
        lines = [f"        {json.dumps(member)}: {json.dumps(type_of(value))}," for member, value in properties.items()]
        return "\n".join([f"{name} = TypedDict(", f'    "{name}",', "    {", *lines, f"    }}{ending},", ")"])
    head = f"class {name}({', '.join(bases or ['TypedDict'])}{ending}):"
    body = [textwrap.indent(textwrap.fill(f'"""{text}"""', 116), "    ")] if text else []
    body += ["", *members(properties)] if body and properties else list(members(properties))
    return "\n".join([head, *(body or ["    pass"])])


def object_type(name: str, schema: Schema) -> str:
    """A TypedDict of an object; Python 3.10 knows members that may be absent only of whole classes."""
    properties: dict[str, Schema] = schema.get("properties", {})
    bases: list[str] = []
    for part in schema.get("allOf", []):
        if "$ref" in part:
            bases.append(name_of(part["$ref"]))
        else:
            properties = {**properties, **part.get("properties", {})}
    needed = set(schema.get("required", []))
    always = {member: value for member, value in properties.items() if member in needed}
    maybe = {member: value for member, value in properties.items() if member not in needed}
    text = text_of(schema)
    if not maybe:
        return dictionary(name, bases, always, True, text)
    if not always:
        return dictionary(name, bases, maybe, False, text)
    return (
        dictionary(f"_{name}", bases, always, True, "") + "\n\n\n" + dictionary(name, [f"_{name}"], maybe, False, text)
    )


def is_object(schema: Schema) -> bool:
    return "allOf" in schema or ("properties" in schema) or schema.get("type") == "object"


def bases_of(schema: Schema) -> list[str]:
    return [name_of(part["$ref"]) for part in schema.get("allOf", []) if "$ref" in part]


def ordered(schemas: dict[str, Schema]) -> list[str]:
    """The names in their order, but each behind those it is made from."""
    done: list[str] = []

    def visit(name: str) -> None:
        if name not in done:
            for base in bases_of(schemas[name]):
                visit(base)
            done.append(name)

    for name in sorted(schemas):
        visit(name)
    return done


def variants(name: str, schema: Schema) -> str:
    """One of several objects, each a class of its own."""
    classes = []
    names = []
    for number, variant in enumerate(schema["oneOf"], 1):
        if not is_object(variant):
            raise UnknownSchemaError(f"{name} is one of several, which are not all objects")
        names.append(f"{name}{number}")
        classes.append(object_type(names[-1], variant))
    alias = "\n".join([f"{name}: TypeAlias = (", f"    {names[0]}", *(f"    | {each}" for each in names[1:]), ")"])
    return "\n\n\n".join([*classes, alias])


def references(value: object) -> Iterator[str]:
    """The names of the schemas that a part of the description refers to."""
    if isinstance(value, dict):
        if isinstance(found := value.get("$ref"), str) and found.startswith("#/components/"):
            yield found.removeprefix("#/components/")
        for each in value.values():
            yield from references(each)
    elif isinstance(value, list):
        for each in value:
            yield from references(each)


def used(document: Schema, paths: str) -> dict[str, Schema]:
    """The schemas of what is below some paths. All are used of a description whose paths all matter."""
    components: Schema = document["components"]
    schemas: dict[str, Schema] = components["schemas"]
    if paths == "/":
        return schemas
    waiting = [name for path, what in document["paths"].items() if path.startswith(paths) for name in references(what)]
    seen: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name not in seen:
            seen.add(name)
            kind, _, word = name.partition("/")
            waiting += references(components[kind][word])
    return {name: schema for name, schema in schemas.items() if f"schemas/{name}" in seen}


def written(description: Description) -> str:
    schemas = used(json.loads(description.openapi.read_text(encoding="utf-8")), description.paths)
    parts = []
    for name in ordered(schemas):
        schema = schemas[name]
        if "oneOf" in schema:
            parts.append(variants(name, schema))
        elif is_object(schema):
            parts.append(object_type(name, schema))
        else:
            parts.append(f"{name}: TypeAlias = {type_of(schema)}")
    names = [name for name in ("Literal", "TypeAlias", "TypedDict") if any(name in part for part in parts)]
    head = HEAD.format(whose=description.whose, names=", ".join(names)).rstrip()
    return "\n\n\n".join([head, *parts]) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description="Writes the types of the wire.")
    parser.add_argument("--check", action="store_true", help="write nothing; fail if a file is another one")
    arguments = parser.parse_args()
    wrong = 0
    for description in DESCRIPTIONS:
        text, target = written(description), description.target
        if not arguments.check:
            target.write_text(text, encoding="utf-8")
        elif not target.exists() or target.read_text(encoding="utf-8") != text:
            origin = description.openapi.relative_to(CRATES)
            print(f"{target.name} is not what {origin} says; run clients/python/generate.py", file=sys.stderr)
            wrong = 1
    return wrong


if __name__ == "__main__":
    sys.exit(main())

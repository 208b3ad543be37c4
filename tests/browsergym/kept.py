"""The file in which observations of the reference are kept.

Each tree and each map of properties is written once, and steps have its number. One line a case, so that a change of one
case changes few lines.
"""

import json

TABLES = {"tree": "trees", "properties": "properties"}


def read(path):
    """The versions, and the cases with trees and properties in their places."""
    with open(path, encoding="utf-8") as file:
        whole = json.load(file)
    for case in whole["cases"]:
        for step in case["steps"]:
            for key, table in TABLES.items():
                if step.get(key) is not None:
                    step[key] = whole[table][step[key]]
    return whole["versions"], whole["cases"]


def write(path, versions, cases):
    tables, numbers = {key: [] for key in TABLES}, {key: {} for key in TABLES}
    lines = []
    for case in cases:
        kept = [dict(step) for step in case["steps"]]
        for step in kept:
            for key in TABLES:
                if step.get(key) is not None:
                    text = compact(step[key])
                    if text not in numbers[key]:
                        numbers[key][text] = len(tables[key])
                        tables[key].append(text)
                    step[key] = numbers[key][text]
        lines.append(compact({"name": case["name"], "steps": kept}))
    parts = [f'"versions":{compact(versions)}']
    parts += [f'"{TABLES[key]}":[\n{joined(tables[key])}\n]' for key in TABLES]
    parts.append(f'"cases":[\n{joined(lines)}\n]')
    with open(path, "w", encoding="utf-8") as file:
        file.write("{" + ",\n".join(parts) + "}\n")


def compact(value):
    return json.dumps(value, separators=(",", ":"))


def joined(lines):
    return ",\n".join(lines)

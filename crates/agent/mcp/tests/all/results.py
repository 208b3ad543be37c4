"""Prints the results of `results.json` as the reference writes them into observations.

usage: REFERENCE/bin/python results.py results.json [--update]

With --update the file gets them, too.
"""

import json
import sys

from mcp.types import CallToolResult

path = sys.argv[1]
with open(path) as file:
    cases = json.load(file)
for case in cases:
    case["written"] = json.dumps(CallToolResult.model_validate(case["result"]).model_dump(mode="json"))
if sys.argv[2:] == ["--update"]:
    with open(path, "w") as file:
        file.write(json.dumps(cases, indent=2, ensure_ascii=False) + "\n")
print(json.dumps([case["written"] for case in cases]))

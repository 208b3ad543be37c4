"""The same microagents, loaded by the reference and by us: prints where they differ.

    microagents.py PROGRAM

PROGRAM is the example `microagents` of the crate `gloveport-runtime`. Writes the files of the table, loads each alone
and all directories with both, and compares whole results. Of failures the kind and the parts of the text that are
promised are compared: the reference's text goes on in the words of its libraries. Differences that
docs/compatibility.md lists are named in the table. Last line: `N passed, N failed, N skipped`.
"""

import json
import logging
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

HOME = tempfile.TemporaryDirectory()
os.environ["HOME"] = HOME.name
logging.disable(logging.CRITICAL)

from openhands.core.exceptions import MicroagentValidationError  # noqa: E402
from openhands.microagent import load_microagents_from_dir  # noqa: E402
from openhands.microagent.microagent import BaseMicroagent, KnowledgeMicroagent  # noqa: E402

MESSAGES = ["Use GIT here", "ask /default or /deploy now", ""]
STDIO = "mcp_tools:\n  stdio_servers:\n    - name: t\n      command: uvx\n"


def front(text, body="body"):
    return f"---\n{text}\n---\n{body}\n"


# (name of the file, content, listed difference or None)
FILES = [
    ("plain.md", "Just text.\n", None),
    ("empty.md", "", None),
    ("blank.md", " \n\t\n", None),
    ("blanks_around.md", "\n\n  text  \n\n", None),
    ("special_blanks.md", "\x1c\xa0text\u3000\x85", None),
    ("named.md", front("name: deploy\ntriggers:\n- deploy\n- ship it"), None),
    ("flow.md", front("triggers: [Git, github, '#hash', \"q\\n\"]"), None),
    ("task.md", front("name: deploy\ninputs:\n  - name: a\n    description: b", "Do ${a} and ${b_1}."), None),
    ("task_trigger.md", front("name: n\ntriggers: [/n, x]\ninputs: [{name: a, description: b}]"), None),
    ("task_unnamed.md", front("inputs: [{name: a, description: b, more: 1}]"), None),
    ("type_task.md", front("type: task", "Do ${a}."), None),
    ("type_repo.md", front("type: repo\ntriggers: [a]"), None),
    ("type_knowledge.md", front("type: knowledge"), None),
    ("type_unknown.md", front("type: agent"), None),
    ("type_empty.md", front("type:"), None),
    ("type_list.md", front("type: [a, 1, yes, 1.50]"), None),
    ("type_case.md", front("type: Repo"), None),
    ("type_and_name.md", front("type: x\nname: 1"), None),
    ("version_float.md", front("version: 1.10"), None),
    ("version_int.md", front("version: 2"), None),
    ("version_text.md", front("version: 1.2.3"), None),
    ("version_octal.md", front("version: 010"), None),
    ("version_sexagesimal.md", front("version: 1:30"), None),
    ("version_exponent.md", front("version: 1.5e+300"), None),
    ("version_no_exponent.md", front("version: 1e3"), None),
    ("version_bool.md", front("version: on"), None),
    ("version_null.md", front("version: ~"), None),
    ("version_date.md", front("version: 2024-01-31"), None),
    ("version_no_date.md", front("version: 2024-02-30"), None),
    ("version_time.md", front("version: 2024-01-31T10:00:00Z"), "points in time keep their form"),
    ("version_list.md", front("version: [1, a]"), None),
    ("version_map.md", front("version: {a: 1, b: [x]}"), None),
    ("version_inf.md", front("version: -.inf"), None),
    ("version_huge.md", front("version: 123456789012345678901234567890123456789012345"), None),
    ("version_hex.md", front("version: 0x1F_0"), None),
    ("agent.yaml.md", front("agent: BrowsingAgent"), None),
    ("agent_null.md", front("agent:"), None),
    ("name_int.md", front("name: 1"), None),
    ("name_bool.md", front("name: yes"), None),
    ("name_quoted_bool.md", front("name: 'yes'"), None),
    ("name_date.md", front("name: 2024-01-31"), None),
    ("name_twice.md", front("name: a\nname: b"), None),
    ("name_tagged.md", front("name: !!str 12"), None),
    ("name_block.md", front("name: |\n  two\n  lines\nagent: >-\n  one\n  line"), None),
    ("name_multiline.md", front("name: one\n  line"), None),
    ("name_colon.md", front("name: a:b"), None),
    ("name_comment.md", front("name: a # comment\n# another"), None),
    ("name_escape.md", front('name: "\\u00e9\\t\\x41"'), None),
    ("name_unicode.md", front("name: é漢😀", "é漢😀"), None),
    ("triggers_text.md", front("triggers: git"), None),
    ("triggers_null.md", front("triggers:"), None),
    ("triggers_number.md", front("triggers: [1]"), None),
    ("triggers_null_item.md", front("triggers:\n-\n- a"), None),
    ("triggers_empty.md", front("triggers: []"), None),
    ("triggers_empty_text.md", front("triggers: ['']"), None),
    ("triggers_indented.md", front("triggers:\n    - a\n    - b c"), None),
    ("inputs_text.md", front("inputs: [a]"), None),
    ("inputs_missing.md", front("inputs: [{name: a}]"), None),
    ("inputs_number.md", front("inputs: [{name: a, description: 1}]"), None),
    ("unknown_keys.md", front("author: me\nnested: {a: [1]}\nname: n"), None),
    ("key_content.md", front("content: x"), "unknown keys are ignored, whatever their names"),
    ("key_number.md", front("1: x\nname: n"), "unknown keys are ignored, whatever their names"),
    ("aliases.md", front("triggers: &t [git]\nother: *t"), None),
    ("alias_unknown.md", front("triggers: *t"), None),
    ("merge.md", front("base: &b {name: a, agent: x}\n<<: *b\nname: own"), None),
    ("yaml_wrong.md", front("name: [a"), None),
    ("yaml_colon.md", front("name: a: b"), None),
    ("yaml_tab.md", front("\tname: a"), "tabs may stand in front of a key"),
    ("yaml_tag.md", front("name: !foo a"), None),
    ("yaml_object.md", front("name: !!python/object/apply:os.getcwd []"), None),
    ("yaml_indent.md", front("name: a\n agent: b"), None),
    ("yaml_quote.md", front("name: 'a"), None),
    ("yaml_at.md", front("name: @a"), None),
    ("yaml_percent.md", front("name: %a"), None),
    ("yaml_backtick.md", front("name: `a`"), None),
    ("yaml_star.md", front("triggers: [*.py]"), None),
    ("yaml_documents.md", front("name: a\n--- b\nname: c"), None),
    ("yaml_end.md", front("name: a\n..."), None),
    ("scalar.md", front("just a sentence"), None),
    ("list.md", front("- a\n- b"), None),
    ("no_front.md", "---\n---\nbody\n", None),
    ("comment_only.md", front("# nothing"), None),
    ("unterminated.md", "---\nname: a\nbody\n", None),
    ("rule_alone.md", "---", None),
    ("two_dashes.md", "--\nname: a\n--\nbody\n", None),
    ("long_rules.md", "-----  \nname: a\n------\t\nbody\n", None),
    ("rule_with_text.md", "--- a\nname: a\n---\nbody\n", None),
    ("late_rule.md", "text\n---\nname: a\n---\n", None),
    ("rules_in_body.md", front("name: a", "one\n---\ntwo\n---\nthree"), None),
    ("blank_lines.md", "\n\n---\n\n\nname: a\n\n---\n\n\nbody\n", None),
    ("front_only.md", "---\nname: a\n---", None),
    ("crlf.md", "---\r\nname: a\r\ntriggers: [x]\r\n---\r\none\r\ntwo\r\n", None),
    ("bom.md", "\ufeff---\nname: a\n---\nbody\n", "a byte order mark is none of the text"),
    ("toml.md", '+++\nname = "a"\ntriggers = ["git"]\nversion = 1.5\n+++\nbody\n', None),
    ("toml_inputs.md", '+++\n[[inputs]]\nname = "a"\ndescription = "b"\n+++\nbody\n', None),
    ("toml_wrong.md", "+++\nname = \n+++\nbody\n", None),
    ("json.md", '{\n"name": "a",\n"triggers": ["git"], "version": 2\n}\nbody\n', None),
    ("json_wrong.md", "{\nname\n}\nbody\n", None),
    ("json_open.md", '{\n"name": "a"\n', None),
    ("mcp.md", front(STDIO + "      args: [a, b]\n      env: {K: v}"), None),
    ("mcp_sse.md", front(STDIO + "  sse_servers: [http://h/sse]\n  shttp_servers: [{url: 'https://h/mcp'}]"), None),
    ("mcp_only_sse.md", front("mcp_tools: {sse_servers: [http://h/sse]}"), None),
    ("mcp_empty.md", front("mcp_tools: {}"), None),
    ("mcp_null.md", front("mcp_tools:"), None),
    ("mcp_text.md", front("mcp_tools: x"), None),
    ("mcp_unknown.md", front(STDIO + "  servers: []"), None),
    ("mcp_no_command.md", front("mcp_tools: {stdio_servers: [{name: a}]}"), None),
    ("mcp_empty_name.md", front("mcp_tools: {stdio_servers: [{name: ' ', command: a}]}"), None),
    ("mcp_list_null.md", front("mcp_tools: {stdio_servers: }"), None),
    ("AGENTS.md", front("name: a\ntype: x") + " ", None),
    ("agent.md", " text \n", None),
    ("Agents.MD", "x", None),
    (".cursorrules", "---\nname: [\n---\n", None),
    (".openhands_instructions", "be kind\n", None),
]

# Trees: (name, files, listed difference or None); microagents are in `.openhands/microagents`.
M = ".openhands/microagents/"
TREES = [
    ("nothing", {}, None),
    ("no_directory", {"AGENTS.md": "a", ".cursorrules": "c"}, None),
    ("all_agents", {"AGENTS.md": "1", "agents.md": "2", "AGENT.md": "3", "agent.md": "4"}, None),
    ("last_agents", {"AGENT.md": "3", "agent.md": "4"}, None),
    ("nested", {M + "a/b/c.d.md": "x", M + "k.md": front("triggers: [git]"), M + "README.md": front("[")}, None),
    ("readmes", {M + "readme.md": "x", M + "sub/README.md": front("[")}, None),
    ("other_files", {M + "a.txt": "x", M + "b.MD": "x", M + "c.markdown": "x", M + "d.md~": "x"}, None),
    ("hidden", {M + ".a.md": "x", M + ".sub/b.md": "x", M + ".md": "x"}, None),
    ("special_inside", {M + "agents.md": "x", M + "sub/.cursorrules": "x"}, None),
    ("lines", {"AGENTS.md": "a\r\nb\rc\n", M + "a.md": "a\r\nb\rc"}, None),
    ("validation", {M + "a.md": "fine", M + "b.md": front("type: x")}, None),
    ("value", {M + "a.md": "fine", M + "b.md": front("[")}, None),
    ("no_text", {M + "a.md": b"caf\xe9"}, None),
    ("names", {M + "a.md": front("name: other"), M + "t/x.md": front("name: n\ninputs: [{name: a, description: b}]")}, None),
    ("directory_as_file", {M + "d.md/inner.md": "x"}, "a directory named like a file is a directory"),
]


def shown(agent):
    metadata = agent.metadata.model_dump(mode="json")
    tools = metadata["mcp_tools"]
    if tools:
        metadata["mcp_tools"] = {name: [plain(server) for server in servers] for name, servers in tools.items()}
    knows = isinstance(agent, KnowledgeMicroagent)
    return {
        "name": agent.name,
        "kind": agent.type.value,
        "content": agent.content,
        "source": agent.source,
        "metadata": metadata,
        "matches": [agent.match_trigger(message) if knows else None for message in MESSAGES],
    }


def plain(server):
    """A server without what it does not say."""
    defaults = {"args": [], "env": {}, "api_key": None, "timeout": 60}
    return {key: value for key, value in server.items() if key not in defaults or value != defaults[key]}


def by_name(agents):
    return [shown(agent) for _, agent in sorted(agents.items())]


def failed(error):
    return {"error": str(error), "validation": isinstance(error, MicroagentValidationError)}


def reference_file(path):
    try:
        return shown(BaseMicroagent.load(path))
    except Exception as error:
        return failed(error)


def reference_directory(path):
    try:
        repo, knowledge = load_microagents_from_dir(path)
        return {"repo": by_name(repo), "knowledge": by_name(knowledge)}
    except Exception as error:
        return failed(error)


# What stands before and behind the words of a library.
PROMISED = re.compile(
    r"(Error loading microagent from \S+: )?(Error validating microagent metadata in \S+: )?.*?"
    r"(\. Invalid \"type\" value: .*)?",
    re.S,
)


def comparable(result):
    if "error" in result:
        return {"error": PROMISED.fullmatch(result["error"]).groups(), "validation": result["validation"]}
    return result


def write(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())


def main():
    program = os.path.abspath(sys.argv[1])
    counts = {"passed": 0, "failed": 0}
    with tempfile.TemporaryDirectory() as root:
        cases = []
        for name, content, reason in FILES:
            path = Path(root, "files", name)
            write(path, content)
            cases.append((name, "file", path, reference_file(path), reason))
        for name, files, reason in TREES:
            for file, content in files.items():
                write(Path(root, "trees", name, file), content)
            path = Path(root, "trees", name, M)
            cases.append((name, "dir", path, reference_directory(path), reason))
        arguments = [f"{kind}:{path}" for _, kind, path, _, _ in cases]
        lines = subprocess.run([program, *arguments], check=True, capture_output=True, timeout=60).stdout.splitlines()
        for (name, kind, _, theirs, reason), line in zip(cases, lines, strict=True):
            ours = json.loads(line)
            same = comparable(theirs) == comparable(ours)
            if same or reason:
                counts["passed"] += 1
                if not same:
                    print(f"listed  {kind} {name}: {reason}")
                continue
            counts["failed"] += 1
            print(f"FAILED  {kind} {name}\n        reference {theirs}\n        ours      {ours}")
    print(f"{counts['passed']} passed, {counts['failed']} failed, 0 skipped")
    return 1 if counts["failed"] else 0


sys.exit(main())

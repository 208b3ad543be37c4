"""The same commands on the reference's server and on ours: prints where the observations differ.

    compare.py BINARY

Starts both servers in empty homes, sends each command of the list to both, and compares whole observations but for what
must differ (process ids, the directory's name). Differences that docs/compatibility.md lists are named in the list.
Prints one line for each difference that is not listed and stays and, last, `N passed, N failed, N skipped`.
"""

import json
import os
import re
import sys
import tempfile
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor

import servers as both_servers

# (command, arguments, listed difference or None)
CASES = [
    ("pwd", {}, None),
    ("", {}, None),
    ("x", {"is_input": True}, None),
    ("   ", {}, None),
    ("echo 'hello world'", {}, None),
    ("nonexistent_command", {}, None),
    ("echo a; echo b", {}, None),
    ("echo a\necho b", {}, None),
    ("ls -d /usr\n\n# c\npwd", {}, None),
    ('echo -e "hello\nworld"', {}, None),
    ('echo \\\n -e "foo"', {}, None),
    ('echo -e "a\\n\\n\\nz"', {}, None),
    ("cat << EOF\nline 1\nline 2\nEOF", {}, None),
    ("cat <<'EOF'\n$HOME\n  x\nEOF", {}, None),
    ('if true; then\necho "inside if"\nfi', {}, None),
    ("false", {}, None),
    ("(exit 5)", {}, None),
    ("f() { return 3; }; f", {}, None),
    ("cd /nonexist", {}, None),
    ("mkdir -p test && cd test", {}, None),
    ("cd -", {}, None),
    ("export A=1; echo $A", {}, None),
    ("(exit 3)", {}, None),
    ("echo $?", {}, None),
    ('printf "no newline"', {}, None),
    ('printf "\\n\\n\\nlead"', {}, None),
    ('printf "a\\n\\n\\n"', {}, None),
    ('echo "a   "', {}, None),
    ('printf "a\\tb\\n"', {}, None),
    ('echo -e "\\e[31mred\\e[0m"', {}, None),
    ('printf "10%%\\r50%%\\r100%%\\n"', {}, None),
    ("printf 'x%.0s' $(seq 2500)", {}, None),
    ("echo é漢字😀", {}, None),
    ("echo err >&2", {}, None),
    ("echo -n", {}, None),
    ("echo test;", {}, "echo of the command"),
    ("true && false", {}, None),
    ("yes | head -3", {}, None),
    ('echo "multi\n\n\nline"', {}, "echo of the command"),
    ("echo a |\ncat", {}, "echo of the command"),
    ("alias git", {}, None),
    ("C-c", {}, None),
    ("C-ab", {}, None),
    ('for i in $(seq 1 5000); do echo "Line $i"; done', {}, None),
    ('for i in $(seq 1 5000); do echo "Line $i"; done', {"hidden": True}, None),
    ("pwd", {"is_static": True, "cwd": "/usr"}, None),
    ("sleep 3 && echo done", {"timeout": 10, "blocking": True}, None),
    ("for i in 1 2 3; do echo $i; sleep 4; done", {}, None),
    ("", {"is_input": True}, None),
    ("sleep 15", {}, None),
    ("C-c", {"is_input": True}, None),
    ("read -p 'Enter name: ' name && echo \"Hello $name\"", {}, None),
    ("John", {"is_input": True}, None),
    ("cat << EOF", {}, None),
    ("line 1", {"is_input": True}, None),
    ("EOF", {"is_input": True}, None),
    ("cat", {}, None),
    ("hello", {"is_input": True}, None),
    ("C-d", {"is_input": True}, None),
    ("sleep 100", {}, None),
    ("C-z", {"is_input": True}, None),
    ("fg", {}, None),
    ("C-c", {"is_input": True}, None),
    ("sleep 4", {"timeout": 1}, None),
    ("C-c", {"is_input": True}, None),
    ('echo "unclosed', {}, None),
    ('x"', {"is_input": True}, None),
    ("echo `unclosed", {}, None),
    ("C-c", {"is_input": True}, None),
    ("set -x", {}, "prompt machinery in the trace"),
    ("echo traced", {}, "prompt machinery in the trace"),
    ("set +x", {}, "prompt machinery in the trace"),
    ("history | tail -n 2 | sed 's/^ *[0-9]* *//'", {}, "history"),
    ("x=$'a\\tb'; echo \"$x\"; unset x", {}, None),
    ("type cd; type ls | head -1", {}, None),
    ("trap 'echo bye' EXIT; trap - EXIT", {}, None),
    ("echo $SHLVL | grep -c .", {}, None),
    ("echo $COLUMNS $LINES; tput cols; tput lines; stty size", {}, None),
    ("ls --color=always -d /usr", {}, None),
    ("python3 -c 'print(\"p\" * 3000)'", {}, None),
    ("for i in 1 2 3; do\n  echo $i\n\n  # comment\ndone", {}, "echo of the command"),
    ("echo done > out.txt; cat out.txt; rm out.txt", {}, None),
    ("printf 'a\\bb\\n'", {}, None),
    ("printf '\\a\\x00x\\n'", {}, None),
    ("printf '\\xff\\xfe\\n'", {}, "bytes that are not UTF-8"),
    ("wait; jobs", {}, None),
    # The last one: its tabs complete file names in the reference, which then waits for the rest for ever.
    ("cat <<-EOF\n\ta\n\tEOF", {}, "tabs"),
]


# What the reference says when it has mistaken the prompt before a command for its end.
RACE = "Showing the last 1 lines of the output below."
# How often all is asked.
ATTEMPTS = 3


def ask(port, command, arguments):
    arguments = dict(arguments)
    action = {"action": "run", "timeout": arguments.pop("timeout", 20), "args": {"command": command, **arguments}}
    body = json.dumps({"action": action}).encode()
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/execute_action", data=body, headers={"content-type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)


def comparable(observation, work):
    text = json.dumps(observation, ensure_ascii=False, sort_keys=True).replace(work, "WORK")
    value = json.loads(text)
    metadata = value.get("extras", {}).get("metadata")
    if metadata and metadata.get("pid", -1) > 0:
        metadata["pid"] = "PID"
    value["content"] = re.sub(r"(\[\d+\]) \d+", r"\1 PID", value["content"])
    return value


def attempt(binary):
    """What each side answers to each command, both from new."""
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as two, ThreadPoolExecutor() as both:
        servers, answers = [], []
        try:
            reference_port, reference_work = both_servers.start_reference(one, servers)
            our_port, our_work = both_servers.start_ours(binary, two, servers)
            for command in ("echo warm", "echo up"):
                ask(reference_port, command, {})
                time.sleep(1)
                ask(our_port, command, {})
            for command, arguments, _ in CASES:
                # At the same time, so that what runs on has run equally long on both.
                asked = [both.submit(ask, port, command, arguments) for port in (reference_port, our_port)]
                works = (reference_work, our_work)
                answers.append([comparable(answer.result(), work) for answer, work in zip(asked, works)])
                # Fast commands one after another make the reference mistake prompts more often.
                time.sleep(0.3)
        finally:
            both_servers.stop(servers)
    return answers


def judged(command, arguments, reason, answers):
    """Whether a command's answers are as they must be, those of all attempts, and what is to say of it."""
    same = [mine for theirs, mine in answers if theirs == mine]
    theirs, mine = next((pair for pair in answers if pair[0] != pair[1]), answers[0])
    if same and all(theirs == mine or mine in same for theirs, mine in answers):
        return True, ""
    if not same and RACE in theirs["extras"].get("metadata", {}).get("prefix", ""):
        return True, f"listed  {command!r}: the reference took the old prompt for the end of the command"
    if not same and reason:
        return True, f"listed  {command!r}: {reason}"
    again = f"\n        in another attempt {same[0]}" if same else ""
    return False, f"FAILED  {command!r} {arguments}\n        reference {theirs}\n        ours      {mine}{again}"


def main():
    binary = os.path.abspath(sys.argv[1])
    attempts = []
    # On a busy machine the reference loses output and prompts, and what it has lost changes its next answers. So all is asked
    # again where they differ, and ours has to answer then as it did before.
    for _ in range(ATTEMPTS):
        attempts.append(attempt(binary))
        found = [judged(*case, answers) for case, answers in zip(CASES, zip(*attempts))]
        failed = sum(not right for right, _ in found)
        if not failed:
            break
        print(f"        {failed} are not as they must be after {len(attempts)} of {ATTEMPTS} attempts", flush=True)
    for _, said in found:
        if said:
            print(said)
    print(f"{len(CASES) - failed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


sys.exit(main())

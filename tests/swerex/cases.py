"""What a server of SWE-ReX does, as SWE-ReX's own unmodified client sees it.

usage: cases.py URL TOKEN DIRECTORY [--speed COUNT]

DIRECTORY is one that the server may write to, and empty. The last line is a JSON object: for each case what the client got.
With --speed it tells what calls take instead, in milliseconds, and how many commands a second eight clients get. (The client
logs on the standard output, too.)
"""

import asyncio
import http.client
import json
import statistics
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import aiohttp
from swerex.exceptions import SwerexException
from swerex.runtime.abstract import (
    BashAction,
    BashInterruptAction,
    CloseBashSessionRequest,
    Command,
    CreateBashSessionRequest,
    ReadFileRequest,
    UploadRequest,
    WriteFileRequest,
)
from swerex.runtime.remote import RemoteRuntime

CASES = []


def case(function):
    CASES.append(function)
    return function


class Server:
    def __init__(self, url, token, directory):
        host, port = url.rsplit(":", 1)
        self.url, self.token, self.directory = url, token, Path(directory)
        self.runtime = RemoteRuntime(host=host, port=int(port), auth_token=token)

    async def got(self, wanted):
        """What a call answers, or raises."""
        try:
            answer = await asyncio.wait_for(wanted, 15)
        except SwerexException as error:
            found = {"raises": type(error).__name__, "message": str(error)}
            return found | {"extra": error.extra_info} if getattr(error, "extra_info", None) else found
        except aiohttp.ClientError:
            raise
        except Exception as error:
            return {"raises": type(error).__name__, "message": str(error)}
        return answer.model_dump() if hasattr(answer, "model_dump") else answer

    async def run(self, command, **more):
        more = {"timeout": 20} | more
        return await self.got(self.runtime.run_in_session(BashAction(command=command, **more)))

    async def session(self, name="default", **more):
        more = {"startup_timeout": 20} | more
        return await self.got(self.runtime.create_session(CreateBashSessionRequest(session=name, **more)))

    async def closed(self, name="default"):
        return await self.got(self.runtime.close_session(CloseBashSessionRequest(session=name)))

    async def execute(self, command, **more):
        return await self.got(self.runtime.execute(Command(command=command, **more)))

    async def asked(self, method, path, headers=None, **more):
        headers = {"X-API-Key": self.token} if headers is None else headers
        async with aiohttp.ClientSession() as session, session.request(
            method, self.url + path, headers=headers, **more
        ) as response:
            return {"status": response.status, "body": json.loads(await response.text() or "null")}


@case
async def alive(server):
    answer = await server.runtime.is_alive(timeout=10)
    return [answer.model_dump(), await server.asked("GET", "/"), await server.asked("GET", "/is_alive")]


@case
async def without_the_token(server):
    return [await server.asked("GET", "/is_alive", {}), await server.asked("POST", "/execute", {}, json={})]


@case
async def with_a_wrong_token(server):
    async with aiohttp.ClientSession() as session:
        async with session.get(server.url + "/is_alive", headers={"X-API-Key": "wrong"}) as response:
            return response.status


@case
async def what_is_not_a_request(server):
    found = []
    for path, body in [("/execute", {}), ("/run_in_session", {"command": "x"}), ("/create_session", {"session": 7})]:
        answer = await server.asked("POST", path, json=body)
        found.append([answer["status"], {"type", "loc", "msg", "input"} <= answer["body"]["detail"][0].keys()])
    # Where it is wrong, and in which way.
    for path, body in [
        ("/read_file", {"path": 7}),
        ("/read_file", {}),
        ("/read_file", []),
        ("/write_file", {"path": "a", "content": None}),
        ("/execute", {"command": "true", "env": {"A": 1}}),
        ("/run_in_session", {"command": "true"}),
        ("/run_in_session", {"action_type": "zsh"}),
        ("/run_in_session", {"action_type": "bash"}),
        ("/run_in_session", {"action_type": "bash", "command": "true", "expect": [1]}),
        ("/create_session", {"session_type": "bash", "session": 7}),
        ("/close_session", {}),
    ]:
        answer = await server.asked("POST", path, json=body)
        found.append([answer["status"], answer["body"]])
    found.append((await server.asked("POST", "/no_such_path", json={}))["status"])
    found.append((await server.asked("GET", "/execute"))["status"])
    return found


@case
async def sessions(server):
    return [
        await server.session(),
        await server.session(),
        await server.run("X=1"),
        await server.run("echo $X"),
        await server.session("other"),
        await server.run("echo ${X-unset}", session="other"),
        await server.closed("other"),
        await server.run("echo", session="other"),
        await server.closed("it's"),
        await server.closed(),
    ]


@case
async def what_a_session_reads_first(server):
    file = server.directory / "startup"
    file.write_text("echo begun; Y=2\n")
    return [
        await server.session("source", startup_source=[str(file)]),
        await server.run("echo $Y", session="source"),
        await server.closed("source"),
    ]


COMMANDS = [
    "echo hi",
    "printf x",
    "printf 'a\\nb\\n\\n'",
    "echo; echo a; echo",
    "true",
    "false",
    "(exit 7)",
    "echo a; echo b",
    "echo a\necho b",
    "echo a && false",
    "",
    "   \n  ",
    "# nothing",
    "echo a # and more",
    "for i in 1 2; do echo $i; done",
    "cat <<'END'\none\n  two\nEND",
    "cat <<END\n$((1 + 1))\nEND\necho after",
    "f() {\n  echo in f\n}\nf",
    "echo \"$(echo nested)\"",
    "echo 'a\"b'",
    "if true\nthen\necho yes\nfi",
    "ls /no/such",
    "no-such-program",
    "printf '\\033[1;31mred\\033[0m\\n'",
    "printf 'a\\rb\\n'",
    "printf 'a\\r\\nb\\n'",
    "printf 'a\\r\\r\\n\\r\\n\\rb\\r'",
    "printf 'a\\r\\033[K\\nb\\n'",
    "seq 3 | less -FX",
    "printf '\\377\\376'",
    "printf 'gr\\303\\274n \\360\\237\\230\\200\\n'",
    "seq 3000",
    "echo out; echo err >&2",
    "cd /tmp && pwd",
    "pwd",
    "export Z='a b'",
    "echo \"$Z\"",
    "false\necho $?",
    "set -o pipefail; false | true",
    "set +o pipefail",
    "while read -r line; do echo \"got $line\"; done <<< one",
    "[[ abc == a* ]] && echo matches",
    "echo $((6 * 7))",
    "x=(a b); echo ${#x[@]}",
    "trap 'echo trapped' USR1; kill -USR1 $$; trap - USR1",
    "echo {1..3}",
    "C-c",
]


@case
async def commands(server):
    await server.session()
    found = {}
    for command in COMMANDS:
        found[command] = await server.run(command, check="silent", timeout=5)
        if "raises" in found[command]:
            # Such a session may be of no use any more.
            await server.closed()
            await server.session()
    await server.closed()
    return found


@case
async def what_becomes_of_an_exit_code(server):
    await server.session()
    found = [
        await server.run("echo a; (exit 3)", check="raise"),
        await server.run("echo a; (exit 3)", check="raise", error_msg="While testing"),
        await server.run("echo a; (exit 3)", check="ignore"),
        await server.run("echo a", check="raise"),
    ]
    await server.closed()
    return found


@case
async def what_is_no_command(server):
    await server.session()
    found = [await server.run(text) for text in ["if true", "echo 'a", "echo )", "for", "echo a\necho (", "echo $("]]
    found.append(await server.run("echo still here"))
    await server.closed()
    return found


@case
async def a_command_whose_time_is_over(server):
    await server.session()
    found = [await server.run("echo begun; sleep 1000", timeout=0.5)]
    found.append(await server.got(server.runtime.run_in_session(BashInterruptAction(timeout=1))))
    found.append(await server.run("echo next"))
    await server.closed()
    return found


@case
async def a_program_that_is_talked_to(server):
    await server.session()
    talk = {"is_interactive_command": True, "expect": [">>> "]}
    found = [
        await server.run("python3 -q", **talk),
        await server.run("x = 6", **talk),
        await server.run("print(x * 7)", **talk),
        await server.run("if x:\n    print('yes')\n", is_interactive_command=True, expect=["yes\\r?\\n.*>>> "]),
        await server.run("quit()", is_interactive_quit=True),
        await server.run("echo $x after"),
    ]
    await server.closed()
    return found


@case
async def a_question(server):
    await server.session()
    found = [
        await server.run("read -p 'name? ' N", is_interactive_command=True, expect=["name\\? ", "never"]),
        await server.run("  Ada  ", is_interactive_command=True),
        await server.run('echo "$N"'),
        await server.run("cat", is_interactive_command=True, timeout=0.5, expect=["never"]),
        await server.got(server.runtime.run_in_session(BashInterruptAction())),
        await server.run("echo after"),
    ]
    await server.closed()
    return found


@case
async def what_is_awaited_with_the_end_of_its_line(server):
    await server.session()
    found = [
        await server.run("echo one; echo two; cat", is_interactive_command=True, timeout=5, expect=["two\\r\\n", "one\\n"]),
        await server.got(server.runtime.run_in_session(BashInterruptAction(timeout=1))),
    ]
    await server.closed()
    return found


@case
async def what_is_awaited_and_is_none(server):
    await server.session()
    found = await server.run("echo a", is_interactive_command=True, expect=["("])
    await server.closed()
    return found["raises"]


@case
async def interrupts(server):
    await server.session()
    found = [
        (await server.got(server.runtime.run_in_session(BashInterruptAction())))["exit_code"],
        await server.run("echo begun; sleep 1000", is_interactive_command=True, expect=["begun"]),
        await server.got(server.runtime.run_in_session(BashInterruptAction())),
        await server.run("trap '' INT; sleep 1000", is_interactive_command=True, timeout=0.3, expect=["never"]),
        (await server.got(server.runtime.run_in_session(BashInterruptAction())))["exit_code"],
        await server.run("trap - INT; echo after"),
        await server.got(server.runtime.run_in_session(BashInterruptAction(session="no such"))),
    ]
    await server.closed()
    return found


@case
async def a_pager(server):
    await server.session()
    found = [
        (await server.run("seq 5000 | less", is_interactive_command=True, timeout=10, expect=["\\n:", ":$"]))["exit_code"],
        (await server.got(server.runtime.run_in_session(BashInterruptAction())))["exit_code"],
        # Whether bash tells of the end of the pager is a matter of luck there.
        (await server.run("echo after"))["output"].splitlines()[0],
    ]
    await server.closed()
    return found


@case
async def programs(server):
    one = server.directory / "programs"
    one.mkdir()
    (one / "no program").write_text("text")
    return [
        await server.execute("ls -d /", shell=True),
        await server.execute(["ls", "-d", "/"]),
        await server.execute("echo $0 $1; echo err >&2; exit 3", shell=True),
        await server.execute(["sh", "-c", "kill -9 $$"]),
        await server.execute("pwd", cwd=str(one)),
        await server.execute("pwd", cwd=str(one / "no such")),
        await server.execute("no-such-program"),
        await server.execute("ls -d /"),
        await server.execute(str(one / "no program")),
        await server.execute("echo out; echo err >&2; echo out", shell=True, merge_output_streams=True),
        await server.execute("printf '\\377a\\r\\n'", shell=True),
        await server.execute("sleep 1000", shell=True, timeout=0.3),
        await server.execute("exit 4", shell=True, check=True, error_msg="While testing"),
        await server.execute(["false"], check=True),
        await server.execute("cat", timeout=5),
        await server.execute("seq 20000", shell=True),
    ]


@case
async def an_environment_of_its_own(server):
    return await server.execute(["/usr/bin/env"], env={"A": "1", "B": "two words"})


@case
async def what_is_no_text_for_the_system(server):
    await server.session()
    found = [
        await server.run("echo a\0b"),
        await server.execute("true", env={"A=B": "C"}),
        await server.execute(["true"], env={"A": "a\0b"}),
        await server.execute(["true", "a\0b"]),
        await server.execute(["true"], cwd="a\0b"),
        await server.got(server.runtime.read_file(ReadFileRequest(path="a\0b"))),
        await server.got(server.runtime.write_file(WriteFileRequest(path="a\0b", content="text"))),
    ]
    await server.closed()
    return found


@case
async def a_program_without_a_name(server):
    return await server.execute("")


@case
async def texts(server):
    root = server.directory / "texts"
    read = lambda path, **more: server.got(server.runtime.read_file(ReadFileRequest(path=str(path), **more)))
    write = lambda path, text: server.got(server.runtime.write_file(WriteFileRequest(path=str(path), content=text)))
    found = [
        await write(root / "a/b/file", "gr\u00fcn\n"),
        await read(root / "a/b/file"),
        await read(root / "a/b/file", encoding="latin-1"),
        await read(root / "a/b/file", encoding="ascii", errors="replace"),
        await read(root / "a/b/file", encoding="ascii", errors="ignore"),
        await read(root / "no such"),
    ]
    (root / "lines").write_bytes(b"a\r\nb\rc\n")
    (root / "bytes").write_bytes(b"a\xffb")
    found += [
        await read(root / "lines"),
        await read(root / "bytes", errors="backslashreplace"),
        await read(root / "bytes", errors="replace"),
        (await read(root / "bytes"))["raises"],
        await read(root),
        await write(root / "a/b/file", "replaced"),
        (root / "a/b/file").read_text(),
    ]
    return found


@case
async def uploads(server):
    source, root = server.directory / "source", server.directory / "uploaded"
    (source / "tree/below").mkdir(parents=True)
    (source / "file").write_bytes(bytes(range(256)))
    (source / "tree/one").write_text("one")
    (source / "tree/below/two").write_text("two")
    send = lambda one, to: server.got(
        server.runtime.upload(UploadRequest(source_path=str(source / one), target_path=str(root / to)))
    )
    found = [await send("file", "a/b/file"), await send("tree", "c/tree"), await send("tree", "c/tree")]
    (root / "place").mkdir()
    found.append(await send("file", "a/b/file"))
    there = {str(path.relative_to(root)): len(path.read_bytes()) for path in sorted(root.rglob("*")) if path.is_file()}
    return [found, there]


@case
async def a_request_that_is_sent_again(server):
    await server.session("again")
    body = {"command": "echo $((N += 1))", "session": "again", "action_type": "bash"}
    headers = {"X-API-Key": server.token, "X-Request-ID": "the same"}
    found = [(await server.asked("POST", "/run_in_session", headers, json=body))["body"]["output"] for _ in range(2)]
    headers = headers | {"X-Request-ID": "another"}
    found.append((await server.asked("POST", "/run_in_session", headers, json=body))["body"]["output"])
    await server.closed("again")
    return found


@case
async def the_end(server):
    await server.session()
    found = [
        await server.asked("POST", "/close"),
        await server.run("echo"),
        await server.session(),
        await server.run("echo again"),
    ]
    await server.closed()
    return found


async def speed(server, count):
    """Milliseconds at the median, and commands a second of eight clients."""
    await server.session()

    async def median(call):
        times = []
        for _ in range(count):
            began = time.perf_counter()
            await call()
            times.append((time.perf_counter() - began) * 1000)
        return round(statistics.median(times), 2)

    found = {
        "is_alive": await median(lambda: server.asked("GET", "/is_alive")),
        "run_in_session": await median(lambda: server.run("echo hi")),
        "execute": await median(lambda: server.execute("true")),
    }
    await server.closed()
    each = max(1, count // 4)

    def client(_):
        kept = http.client.HTTPConnection(server.url.removeprefix("http://"), timeout=60)
        headers = {"X-API-Key": server.token, "Content-Type": "application/json"}
        for _ in range(each):
            kept.request("POST", "/execute", '{"command": ["true"]}', headers)
            answer = kept.getresponse()
            if (answer.status, json.load(answer).get("exit_code")) != (200, 0):
                raise RuntimeError(f"a command failed with status {answer.status}")
        kept.close()

    began = time.perf_counter()
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(client, range(8)))
    found["commands_per_second"] = round(each * 8 / (time.perf_counter() - began), 1)
    return found


async def main(url, token, directory, *rest):
    server = Server(url, token, directory)
    if rest:
        print("\n" + json.dumps(await speed(server, int(rest[1]))))
        return
    found = {}
    for function in CASES:
        began = time.monotonic()
        try:
            found[function.__name__] = await function(server)
        except Exception as error:
            found[function.__name__] = {"broken": f"{type(error).__name__}: {error}"}
        print(f"{function.__name__}: {time.monotonic() - began:.1f} s", file=sys.stderr)
    print("\n" + json.dumps(found).replace(str(server.directory), "ROOT"))


asyncio.run(main(*sys.argv[1:]))

"""The workspaces of the SDK, unmodified."""

import asyncio
import time
import uuid

from openhands.sdk.workspace import AsyncRemoteWorkspace, RemoteWorkspace

from .harness import case, kinds, raised, together, took

COMMANDS = [
    "echo hi",
    "printf x",
    "true",
    "false",
    "exit 7",
    "exit 255",
    "echo out; echo err >&2; exit 3",
    "echo a; echo b",
    "echo a\necho b",
    "",
    "# nothing",
    "no-such-program",
    "ls /no/such",
    "if true",
    "echo 'a",
    'echo "a\\nb"',
    "source /dev/null",
    "echo $0",
    "[[ a == a ]]",
    "echo {1..3}",
    "cat <<'END'\none\n  two\nEND",
    "kill -9 $$",
    "kill -15 $$",
    "sh -c 'kill -9 $$'",
    "echo before; kill -TERM $$",
    "cat; echo end",
    "read x; echo $?",
    "tty",
    "printf 'a\\r\\nb\\r'",
    "printf '\\377\\376ok'",
    "printf 'gr\\303\\274n \\360\\237\\230\\200\\n'",
    "echo grün 😀 é",
    "printf '\\033[1;31mred\\033[0m\\n'",
    "printf 'a\\000b' | od -c | head -n 1",
    "printf 'a\\000b'",
    "seq 20000",
    "umask",
    "ps -o pid= -o pgid= -o sid= -p $$ | awk '{ print ($1 == $2), ($1 == $3) }'",
    "ulimit -c",
    "trap '' PIPE; yes | head -n 1",
    "X=1; export X; cd /",
    "echo ${X-unset}; pwd",
]


@case
def commands(server):
    return {text: server.workspace.execute_command(text).model_dump() for text in COMMANDS}


@case
def directories(server):
    place = server.place("directories")
    (place / "with space é").mkdir()
    (place / "link").symlink_to("with space é")
    (place / "file").write_text("")
    run = lambda cwd: server.workspace.execute_command("pwd", cwd=cwd).model_dump()
    return {
        "absent": server.workspace.execute_command("pwd").model_dump(),
        "absolute": run(place),
        "with a space": run(place / "with space é"),
        "relative": run("directories"),
        "of a link": run(place / "link"),
        "missing": run(place / "no such"),
        "a file": run(place / "file"),
        "a tilde": run("~"),
        "empty": run(""),
        "parents": run("directories/../directories"),
    }


@case
def the_environment(server):
    names = ["SESSION_API_KEY", "OH_SECRET_KEY", "OH_SESSION_API_KEYS_0", "OH_SESSION_API_KEYS_1", "AI_AGENT"]
    names += ["OTEL_EXPORTER_OTLP_HEADERS", "HOME", "TERM", "LANG", "OF_THE_TEST"]
    found = {name: server.workspace.execute_command(f"printenv {name}").stdout for name in names}
    found["any key"] = server.workspace.execute_command(f"env | grep -c '{server.token}'").stdout
    found["all"] = server.workspace.execute_command("env | grep -o '^[A-Z_0-9]*' | sort").stdout.split()
    return found


@case
def limits_of_the_workspace(server):
    run = server.workspace.execute_command
    return together(
        ended=lambda: took(lambda: run("echo a; echo b >&2; sleep 30", timeout=2.9).model_dump()),
        below_a_second=lambda: run("echo hi", timeout=0.5).model_dump(),
        given_up=lambda: took(lambda: run("trap '' TERM; echo a; sleep 30", timeout=1).model_dump()),
        a_job_that_holds_the_pipe=lambda: took(lambda: run("sleep 2.2 & echo x").model_dump()),
        a_job_that_does_not=lambda: took(lambda: run("sleep 5 >/dev/null 2>&1 & echo x").model_dump()),
    )


@case
def large_outputs(server):
    one = server.workspace.execute_command("head -c 2500000 /dev/zero | tr '\\0' a; echo end >&2")
    return [one.exit_code, len(one.stdout), set(one.stdout) == {"a"}, one.stderr]


@case
def commands_in_the_background(server):
    workspace = server.workspace
    plain = lambda output: output and {name: output[name] for name in ("exit_code", "stdout", "stderr", "order")}
    found = {}
    command = workspace.start_command("echo begun; sleep 30", timeout=40)
    time.sleep(0.5)
    found["a running one has no output"] = workspace.get_command_output(command)
    found["stop"] = workspace.stop_command(command)
    server.outputs(command)
    found["a stopped one"] = plain(workspace.get_command_output(command))
    found["stop again"] = workspace.stop_command(command)
    found["stop of an unknown one"] = workspace.stop_command(str(uuid.uuid4()))
    found["output of an unknown one"] = workspace.get_command_output(str(uuid.uuid4()))
    command = workspace.start_command("pwd; exit 4", cwd="/")
    server.outputs(command)
    found["an ended one"] = plain(workspace.get_command_output(command))
    found["the latest of all"] = plain(workspace.get_command_output())
    found["stop of no id"] = raised(lambda: workspace.stop_command("no-id"))
    return found


@case
def files_of_the_workspace(server):
    place, workspace = server.place("files"), server.workspace
    source, back = place / "source", place / "back"
    source.write_bytes(bytes(range(256)) * 400)
    (place / "empty").write_bytes(b"")
    send = lambda what, to: workspace.file_upload(what, to).model_dump()
    fetch = lambda what, to=back: workspace.file_download(what, to).model_dump()
    found = {
        "upload": send(source, place / "a/b/file"),
        "upload of bytes": send(b"text\n", place / "bytes"),
        "upload of an empty file": send(place / "empty", place / "empty copy"),
        "upload over a file": send(b"short", place / "bytes"),
        "upload with a space": send(b"1", place / "a b/ü 😀 +&%20#?"),
        "upload onto a directory": send(b"1", place / "a"),
        "upload below a file": send(b"1", place / "bytes/below"),
        "upload to a relative path": send(b"1", "relative"),
        "upload of nothing": send(place / "no such", place / "x"),
        "download": fetch(place / "a/b/file"),
        "download is the same": back.read_bytes() == source.read_bytes(),
        "download with a space": fetch(place / "a b/ü 😀 +&%20#?", place / "new/parents/one"),
        "download of an empty file": fetch(place / "empty copy"),
        "download of nothing": fetch(place / "no such"),
        "download of a directory": fetch(place / "a"),
        "download of a relative path": fetch("files/bytes"),
    }
    found["there"] = {
        str(path.relative_to(place)): [path.stat().st_size, oct(path.stat().st_mode)]
        for path in sorted(place.rglob("*"))
        if path.is_file()
    }
    return found


@case
def alive_and_what_it_is(server):
    info = server.workspace.get_server_info()
    names = ["conversation_runtime", "available_conversation_runtimes", "docs", "redoc", "app_backend_ingress_url"]
    return {
        "alive": server.workspace.alive,
        "not alive": RemoteWorkspace(host="http://127.0.0.1:1", working_dir="/").alive,
        "info": kinds(info),
        "values": {name: info[name] for name in names},
        "fresh": 0 <= info["idle_time"] <= info["uptime"] < 600,
        "/": kinds(server.send("GET", "/", key=None).json()),
    }


@case
def the_workspace_without_a_right_key(server):
    found = {}
    for name, key in [("none", None), ("wrong", "wrong")]:
        workspace = RemoteWorkspace(host=server.url, api_key=key, working_dir="/")
        found[name] = [
            workspace.execute_command("echo hi").model_dump(),
            workspace.file_download("/etc/hostname", server.directory / "never").model_dump(),
            raised(lambda: workspace.git_changes("/")),
            workspace.alive,
        ]
    return found


@case
def the_asynchronous_workspace(server):
    async def run():
        place = server.place("asynchronous")
        where = {"host": server.url + "/", "working_dir": str(place)}
        async with AsyncRemoteWorkspace(api_key=server.token, **where) as workspace:
            command = await workspace.start_command("sleep 30")
            await workspace.stop_command(command)
            several = [workspace.execute_command(f"echo {number}; exit {number}") for number in range(4)]
            return [
                (await workspace.execute_command("echo out; echo err >&2; exit 5", cwd=str(place))).model_dump(),
                [one.model_dump() for one in await asyncio.gather(*several)],
                server.outputs(command)[-1]["exit_code"],
                (await workspace.file_upload(b"text", place / "file")).model_dump(),
                (await workspace.file_download(place / "file", place / "back")).model_dump(),
                kinds(await workspace.get_server_info()),
                workspace.alive,
                await workspace.git_changes("."),
            ]

    return asyncio.run(run())

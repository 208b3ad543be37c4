"""What a sandbox can do, for both clients: each case gets a sandbox and whatever makes others."""

import asyncio
import hashlib
import os
import stat
import subprocess
import time

import gloveport


async def fails(kind, awaitable):
    """The exception of that kind that it raises."""
    try:
        await awaitable
    except kind as error:
        return error
    raise AssertionError(f"nothing of {kind.__name__} was raised")


def same(found, expected):
    assert found == expected, f"{found!r}, and not {expected!r}"


async def a_command_has_output_and_an_exit_code(box, make, scratch):
    result = await box.run("echo hi; echo oops >&2; (exit 3)")
    same((result.output, result.exit_code, result.reason, result.ok), ("hi\noops\n", 3, "exited", False))
    assert result.usage.wall_seconds > 0
    same((await box.run("true")).check().exit_code, 0)


async def the_shell_keeps_its_state(box, make, scratch):
    await box.run("mkdir -p state && cd state && export WORD=kept && f() { echo $WORD; }")
    result = await box.run("f; basename $PWD")
    same(result.output, "kept\nstate\n")
    assert result.cwd.endswith("/state")
    await box.run("cd ..")


async def a_command_with_a_directory_or_variables_has_a_shell_of_its_own(box, make, scratch):
    same((await box.run("pwd; echo $WORD", cwd="/usr", env={"WORD": "ä b"})).output, "/usr\nä b\n")
    same((await box.run("echo ${WORD-none}", env={"OTHER": "1"})).output.strip() in ("none", "kept"), True)
    await fails(gloveport.InvalidRequestError, box.run("pwd", cwd="/nowhere"))


async def check_raises_with_the_result(box, make, scratch):
    result = await box.run("echo why; exit 0", env={"A": "1"})
    same((result.reason, result.check()), ("shell_ended", result))
    result = await box.run("echo why; exit 4", env={"A": "1"})
    error = await fails(gloveport.CommandFailedError, asyncio.to_thread(result.check))
    same((error.result.exit_code, error.code), (4, "command_failed"))
    assert "exit code 4" in str(error) and "why" in str(error) and result.describe() in str(error)


async def a_time_limit_gives_a_command_up(box, make, scratch):
    begun = time.monotonic()
    result = await box.run("sleep 30", timeout=0.3)
    same((result.reason, result.exit_code), ("timed_out", None))
    assert time.monotonic() - begun < 10
    error = await fails(gloveport.CommandTimedOutError, asyncio.to_thread(result.check))
    assert isinstance(error, TimeoutError)
    same((await box.run("echo goes on")).output, "goes on\n")


async def output_comes_while_the_command_runs(box, make, scratch):
    pieces = []
    result = await box.run(
        "echo one; sleep 0.4; echo two", on_output=lambda text: pieces.append((time.monotonic(), text))
    )
    same("".join(text for _, text in pieces), result.output)
    assert pieces[-1][0] - pieces[0][0] > 0.2, pieces


async def a_stream_has_the_output_and_then_the_result(box, make, scratch):
    stream = box.stream("seq 1 2000; exit 2")
    error = await fails(gloveport.GloveportError, asyncio.to_thread(lambda: stream.result))
    same(error.code, "not_ended")
    text = "".join([piece async for piece in stream])
    same(text, "".join(f"{number}\n" for number in range(1, 2001)))
    same(stream.result.exit_code, 2)


async def a_stream_that_is_left_gives_its_command_up(box, make, scratch):
    async with box.stream("while :; do echo x; sleep 0.05; done") as stream:
        async for _ in stream:
            break
    same((await box.run("echo free", timeout=20)).output, "free\n")
    stream = box.stream("sleep 60")
    await stream.close()
    same((await box.run("echo free", timeout=20)).output, "free\n")


async def draining_a_stream_gives_its_result(box, make, scratch):
    parts = []
    result = await box.stream("echo a; echo b").drain(parts.append)
    same((result.output, "".join(parts)), ("a\nb\n", "a\nb\n"))


async def output_is_exact_whatever_it_is(box, make, scratch):
    await box.path("letters").write_text("€uro 😀 ünï\n" * 20000)
    pieces = []
    result = await box.run("cat letters", on_output=pieces.append)
    same(result.output, "€uro 😀 ünï\n" * 20000)
    same("".join(pieces), result.output)
    same((await box.run("printf 'a\\377b\\303'")).output, "a�b�")
    result = await box.run("printf '\\303'; sleep 0.3; printf '\\244'", on_output=pieces.append)
    same(result.output, "ä")


async def a_result_keeps_the_last_of_much_output(box, make, scratch):
    result = await box.run("head -c 3000000 /dev/zero | tr '\\0' x; echo end", keep=1000)
    same((len(result.output), result.output[-5:], result.dropped + result.missing), (1000, "xend\n", 2999004))


async def a_command_that_was_started_is_followed_by_offsets(box, make, scratch):
    command = await box.start("echo one; read line; echo got $line", cwd="/")
    while not (status := await command.status()).waiting_for_input:
        await asyncio.sleep(0.01)
    same((status.state, status.id, status.hides_input), ("running", command.id, False))
    first = await command.output()
    same((first.text, first.offset, first.ended), ("one\n", 0, False))
    await command.send_input("it")
    result = await command.wait(timeout=20)
    same((result.exit_code, result.output[:4]), (0, "one\n"))
    rest = await command.output(first.next)
    same((rest.data[-7:], rest.ended, rest.offset), (b"got it\n", True, first.next))
    same("".join([text async for text in command.follow(first.next)]), rest.text)
    found = await box.command(command.id)
    same((found.id, found.command), (command.id, command.command))
    same([each.state for each in await box.commands() if each.id == command.id], ["ended"])
    await fails(gloveport.NotFoundError, box.command("nothing"))
    error = await fails(gloveport.ConflictError, command.send_input("late"))
    same((error.code, error.status), ("not_running", 409))


async def waiting_has_a_limit_and_leaves_the_command(box, make, scratch):
    command = await box.start("sleep 1.2; echo done", cwd="/")
    begun = time.monotonic()
    await fails(TimeoutError, command.wait(timeout=0.3))
    assert 0.25 < time.monotonic() - begun < 1.1
    same((await command.wait(timeout=20)).output, "done\n")


async def a_command_is_interrupted_and_killed(box, make, scratch):
    command = await box.start("sleep 60", cwd="/")
    await asyncio.sleep(0.3)
    await command.interrupt()
    same((await command.wait(20)).exit_code, 130)
    command = await box.start("sleep 60", cwd="/")
    await asyncio.sleep(0.2)
    await command.kill()
    same((await command.wait(20)).reason, "cancelled")


async def processes_have_pipes(box, make, scratch):
    done = await box.processes.run(["sh", "-c", "echo out; echo err >&2; exit 5"])
    same((done.stdout, done.stderr, done.exit_code, done.signal, done.lost), (b"out\n", b"err\n", 5, None, 0))
    data = os.urandom(3_000_000)
    done = await box.processes.run(["cat"], input=data)
    assert done.stdout == data, len(done.stdout)
    same((await box.processes.run(["true"], input=data)).exit_code, 0)
    done = await box.processes.run(["sh", "-c", "echo $A $PWD"], env={"A": "1"}, cwd="/usr")
    same(done.stdout, b"1 /usr\n")
    same((await box.processes.run(["sleep", "60"], timeout=0.2)).timed_out, True)
    await fails(gloveport.InvalidRequestError, box.processes.run(["no-such-program"]))


async def a_process_is_written_to_signalled_and_removed(box, make, scratch):
    process = await box.processes.start(["cat"], stdin=True, tag="mine")
    same([each.tag for each in await box.processes.list() if each.id == process.id], ["mine"])
    same((process.info.argv, (await process.status()).end), (("cat",), None))
    await process.write(b"\x00\xff")
    await process.close_stdin()
    parts = [part async for part in process.output()]
    same([(part.stream, part.data) for part in parts], [("stdout", b"\x00\xff")])
    same((await process.wait()).exit_code, 0)
    process = await box.processes.start(["sleep", "60"])
    await process.signal("TERM", group=True)
    same((await process.wait()).signal, 15)
    await process.remove()
    await fails(gloveport.NotFoundError, process.status())


async def a_terminal_takes_keys_and_has_a_size(box, make, scratch):
    async with await box.terminal(["sh"], cols=91, rows=17, env={"PS1": "ready> "}, cwd="/usr", id="mine") as shell:
        same((shell.id, shell.info.cols, shell.info.rows, shell.info.cwd), ("mine", 91, 17, "/usr"))
        await shell.read_until("ready> ")
        await shell.write("stty size; pwd\n")
        same((await shell.read_until("ready> ")).replace("\r", ""), "stty size; pwd\n17 91\n/usr\nready> ")
        await shell.resize(40, 10)
        await shell.write(b"stty size\n")
        assert "10 40\r\n" in await shell.read_until("ready> ")
        same((await shell.status()).cols, 40)
        same([(each.id, each.end) for each in await box.terminals() if each.id == "mine"], [("mine", None)])
        await fails(TimeoutError, shell.read(timeout=0.2))
        await fails(TimeoutError, shell.wait(timeout=0.2))
        again = await box.terminal(["sh"], env={"PS1": "ready> "}, cwd="/usr", id="mine")
        assert (await again.read_until("17 91")).startswith("ready> ")
        await fails(gloveport.ConflictError, box.terminal(["bash"], id="mine"))
        await shell.write("exit 3\n")
        same((await shell.wait(20)).exit_code, 3)
        assert "exit 3" in "".join([text async for text in shell])
        same((await shell.read(), shell.missing), (b"", 0))
        await fails(gloveport.ConflictError, shell.write("late"))
        await fails(gloveport.ConflictError, shell.resize(1, 1))
    await fails(gloveport.NotFoundError, shell.status())
    await shell.close()
    await again.close()
    await fails(gloveport.SandboxClosedError, again.write("late"))


async def a_terminal_reads_while_another_task_writes(box, make, scratch):
    async with await box.terminal("stty raw -echo; echo ready; head -c 300000 | md5sum; exec sleep 60") as terminal:
        assert await terminal.read_until("ready") == "ready"
        data = os.urandom(150_000).hex()
        reading = asyncio.ensure_future(terminal.read_until(b"-", timeout=40))
        await asyncio.gather(*(terminal.write(data[at : at + 60_000]) for at in range(0, 300_000, 60_000)))
        text = await reading
        whole = [hashlib.md5(data.encode()).hexdigest()] if not hasattr(box, "_value") else text.split()[:1]
        same(text.split()[-2:-1], whole)
    async with await box.terminal(["seq", "1", "400000"]) as terminal:
        # More than is held here: what the program wrote before its end is still there afterwards.
        same((await terminal.wait(30)).exit_code, 0)
        same("".join([text async for text in terminal]), "".join(f"{number}\r\n" for number in range(1, 400_001)))
    async with await box.terminal(["yes"]) as terminal:
        error = await fails(gloveport.GloveportError, terminal.read_until("no"))
        same(error.code, "too_much_output")
        await fails(gloveport.InvalidRequestError, terminal.read_until(""))
    async with await box.terminal("kill -9 $$") as terminal:
        end = await terminal.wait(20)
        same((end.exit_code, end.signal), (137, 9))


async def files_are_read_and_written(box, make, scratch):
    path = box.path("files") / "a.txt"
    await fails(FileNotFoundError, path.write_text("x"))
    await path.write_text("grüße\n", parents=True, mode=0o640)
    same((await path.read_text(), await path.read_bytes()), ("grüße\n", "grüße\n".encode()))
    await fails(FileExistsError, path.write_bytes(b"", exclusive=True))
    status = await path.stat()
    same((status.size, oct(status.mode), status.kind, status.filemode()), (8, "0o640", "file", "-rw-r-----"))
    same((status.is_file(), status.is_dir(), status.is_symlink()), (True, False, False))
    same((await path.exists(), await path.is_file(), await path.is_dir()), (True, True, False))
    same(await (path / "below").exists(), False)
    error = await fails(FileNotFoundError, box.path("files/none").read_bytes())
    assert isinstance(error, gloveport.RemoteFileNotFoundError) and error.code == "not_found" and error.remedy, error
    await fails(IsADirectoryError, box.path("files").read_bytes())
    empty = path.with_name("empty")
    await empty.write_bytes(b"")
    same(await empty.read_bytes(), b"")


async def directories_are_listed_made_and_removed(box, make, scratch):
    root = box.path("tree")
    await root.joinpath("a", "b").mkdir(parents=True)
    await fails(FileExistsError, (root / "a" / "b").mkdir())
    await fails(FileExistsError, (root / "a" / "b").mkdir(parents=True))
    await (root / "a" / "b").mkdir(exist_ok=True)
    await (root / "a").mkdir(parents=True, exist_ok=True)
    await fails(FileNotFoundError, (root / "x" / "y").mkdir())
    for name in ("one.py", ".two.py", "a/three.py"):
        await (root / name).write_text("")
    await fails(FileExistsError, (root / "one.py").mkdir(exist_ok=True))
    same([path.name async for path in root.iterdir()], [".two.py", "a", "one.py"])
    same([str(path) async for path in root.glob("**/*.py")], ["tree/.two.py", "tree/a/three.py", "tree/one.py"])
    await fails(NotADirectoryError, listed(root / "one.py"))
    moved = await (root / "one.py").rename("tree/a/four.py")
    same((str(moved), await moved.exists(), await (root / "one.py").exists()), ("tree/a/four.py", True, False))
    await fails(FileExistsError, moved.rename(root / "a" / "three.py"))
    same(str(await moved.replace(root / "a" / "three.py")), "tree/a/three.py")
    await fails(gloveport.RemoteFileError, root.unlink())
    await (root / ".two.py").unlink()
    await (root / ".two.py").unlink(missing_ok=True)
    await root.rmtree()
    await fails(FileNotFoundError, root.rmtree())
    same(await root.is_dir(), False)


async def listed(path):
    return [each async for each in path.iterdir()]


async def lines_and_names_are_searched_for(box, make, scratch):
    root = box.path("searched")
    await (root / "a.py").write_text("import os\nOS = 1\nx = (\n", parents=True)
    await (root / "sub/b.txt").write_text("os\n", parents=True)
    await (root / ".git/c.py").write_text("os\n", parents=True)
    await (root / "sub/ignored.py").write_text("os\n")
    await (root / ".gitignore").write_text("ignored.py\n")
    found = await root.grep("os$", respect_ignore=True)
    same([(each.path, each.line, each.text) for each in found], [("a.py", 1, "import os"), ("sub/b.txt", 1, "os")])
    same((len(found), found.truncated, found.skipped), (2, False, ()))
    found = await root.grep("OS", ignore_case=True, hidden=True, globs=["*.py", "!a.py"], limit=1)
    same(([each.path for each in found.lines], found.truncated), ([".git/c.py"], True))
    found = await box.grep("(", "searched/a.py", literal=True, context=1)
    same([(each.line, each.is_match) for each in found], [(2, False), (3, True)])
    await fails(gloveport.InvalidRequestError, root.grep("("))
    await fails(FileNotFoundError, box.grep("x", "searched/none"))
    names = await root.find("**/*.py", "!a.py", respect_ignore=True)
    same([(each.path, each.size) for each in names], [(".git/c.py", 3)])
    same([each.path for each in await root.find("**/*.txt", hidden=False)], ["sub/b.txt"])


async def changes_of_files_are_watched(box, make, scratch):
    await box.path("watched/sub").mkdir(parents=True)
    where = (await box.run("realpath watched")).output.strip()
    async with await box.watch("watched", recursive=True, timeout=20) as watch:
        await box.path("watched/sub/new").write_text("x")
        await box.run("mkdir watched/more; rm -r watched/sub")
        seen = []
        async for change in watch:
            seen.append((change.kind, change.path.removeprefix(where), change.is_directory))
            if seen[-1] == ("removed", "/sub", True):
                break
    assert ("created", "/sub/new", False) in seen and ("created", "/more", True) in seen, seen
    begun = time.monotonic()
    watch = await box.path("watched").watch(timeout=0.3)
    await fails(TimeoutError, first_of(watch))
    assert 0.2 < time.monotonic() - begun < 5
    await watch.close()
    async with await box.watch("watched") as watch:
        await box.path("watched").rmtree()
        same([change.kind async for change in watch][-1], "removed")
    await fails(FileNotFoundError, box.watch("watched"))


async def first_of(items):
    async for item in items:
        return item


async def links_are_followed_or_not(box, make, scratch):
    await box.run("mkdir -p links && ln -sf /etc/passwd links/l && ln -sf nowhere links/dangling")
    link = box.path("links/l")
    same(((await link.stat()).kind, (await link.stat(follow_symlinks=False)).target), ("file", "/etc/passwd"))
    same(await box.path("links/dangling").exists(), False)


async def names_may_be_anything(box, make, scratch):
    await box.run("mkdir -p names && cd names && touch 'a b&c#?%' $'\\xff' $'new\\nline' ü; cd ..")
    names = [path.name async for path in box.path("names").iterdir()]
    same(names, ["a b&c#?%", "new\nline", "ü", "\udcff"])
    for name in names:
        same(await (box.path("names") / name).read_bytes(), b"")


async def paths_are_like_those_of_pathlib(box, make, scratch):
    path = box.path("/a/b.tar.gz")
    same((path.name, path.stem, path.suffix, path.parts), ("b.tar.gz", "b.tar", ".gz", ("/", "a", "b.tar.gz")))
    same((str(path.parent), str(path.with_suffix(".xz")), path.is_absolute()), ("/a", "/a/b.tar.xz", True))
    same((path, hash(path)), (box.path("/a") / "b.tar.gz", hash(box.path("/a/b.tar.gz"))))
    assert "/a/b.tar.gz" in repr(path)


async def large_files_go_through_piece_by_piece(box, make, scratch):
    data = os.urandom(1 << 20) * 9
    async with box.path("large").open("wb") as file:
        for at in range(0, len(data), 1 << 20):
            await file.write(data[at : at + (1 << 20)])
    async with box.path("large").open("rb") as file:
        same(await file.read(10), data[:10])
        same(b"".join([piece async for piece in file]), data[10:])
    async with box.path("large").open("rb") as file:
        await file.read(5)
        same(await file.read(), data[5:])
    file = box.path("large").open("wb")
    await file.write(b"other")
    file.discard()
    try:
        async with box.path("large").open("wb") as file:
            await file.write(b"half")
            raise KeyError
    except KeyError:
        pass
    same((await box.path("large").stat()).size, len(data))
    file = box.path("small").open("wb")
    await file.write(b"all")
    await file.close()
    same(await box.path("small").read_bytes(), b"all")
    reader = box.path("large").open("rb")
    await reader.close()


async def files_and_trees_are_copied(box, make, scratch):
    tree = scratch / "up"
    (tree / "sub").mkdir(parents=True)
    (tree / "sub" / "script").write_text("#!/bin/sh\n")
    (tree / "sub" / "script").chmod(0o750)
    (tree / "big").write_bytes(os.urandom(700_001))
    (tree / "link").symlink_to("sub/script")
    os.link(tree / "big", tree / "again")
    (tree / ("long" * 40)).write_text("long")
    copied = await box.upload(tree, "copied/deep")
    same((copied.files, copied.bytes), (5, 2 * 700_001 + 14))
    same((await box.run("stat -c %a copied/deep/sub/script; readlink copied/deep/link")).output, "750\nsub/script\n")
    back = scratch / "down"
    same((await box.download("copied/deep", back)).files, 5)
    for name in ("big", "again", "sub/script", "long" * 40):
        same((back / name).read_bytes(), (tree / name).read_bytes())
    same(os.readlink(back / "link"), "sub/script")
    same(stat.S_IMODE((back / "sub/script").stat().st_mode) & 0o700, 0o700)
    same((await box.upload(tree / "sub" / "script", "one/script")).files, 1)
    same((await box.download("one/script", scratch / "script")).bytes, 10)
    same(stat.S_IMODE((scratch / "script").stat().st_mode), 0o750)
    await fails(FileNotFoundError, box.download("one/none", scratch / "none"))
    same(sorted(path.name for path in scratch.iterdir()), ["down", "script", "up"])


async def a_hostile_tree_stays_in_its_place(box, make, scratch):
    await box.run(
        "mkdir -p hostile && ln -sf /etc hostile/etc && mkfifo hostile/fifo && touch hostile/s && chmod 4755 hostile/s"
    )
    error = await fails(gloveport.GloveportError, box.download("hostile", scratch / "hostile"))
    same(error.code, "unsafe_tree")
    same(list(scratch.iterdir()), [scratch / "hostile"])
    assert not any(path.is_symlink() and os.readlink(path).startswith("/") for path in (scratch / "hostile").iterdir())


async def a_sandbox_is_paused_and_resumed(box, make, scratch):
    await box.pause()
    try:
        same((await box.state()).state, "paused")
        error = await fails(gloveport.PausedError, box.run("echo no"))
        same((error.code, error.status), ("paused", 503))
    finally:
        await box.resume()
    same((await box.state()).state, "running")
    same((await box.run("echo yes")).output, "yes\n")


async def many_share_one_sandbox(box, make, scratch):
    results = await asyncio.gather(*(box.run(f"echo {number}", env={"N": "1"}) for number in range(24)))
    same([result.output for result in results], [f"{number}\n" for number in range(24)])
    results = await asyncio.gather(*(box.run(f"echo {number}") for number in range(24)))
    same([result.output for result in results], [f"{number}\n" for number in range(24)])


async def a_session_is_attached_to_and_connected_to(box, make, scratch):
    await box.run("export HERE=yes")
    other = await make.attach(box.id, runtime="local")
    same((other.id, other.workspace, (await other.run("echo $HERE")).output), (box.id, box.workspace, "yes\n"))
    await other.close()
    await fails(gloveport.SandboxClosedError, other.run("echo"))
    third = await make.connect(box.url(), key_of(box))
    async with third:
        same(((await third.run("echo $HERE")).output, third.id, third.isolation), ("yes\n", "", ""))
    same((await box.run("echo $HERE")).output, "yes\n")
    await fails(gloveport.SessionError, make.attach("py-no-such-session", runtime="local"))


async def a_sandbox_has_what_it_was_started_with(box, make, scratch):
    (scratch / "mine").mkdir()
    described = make(
        workspace=scratch / "mine",
        env={"PLAIN": "a b"},
        secrets={"HIDDEN": "hunter2"},
        ports={"web": 8123},
        labels={"team": "infra"},
        isolation="none",
        flags=("--ttl", "1h"),
    )
    await fails(gloveport.SandboxClosedError, described.run("echo"))
    async with described as own:
        same((await own.run('echo "$PLAIN $HIDDEN"')).output, "a b hunter2\n")
        same(
            (own.labels["team"], own.runtime, own.isolation, own.workspace),
            ("infra", "local", "none", str(scratch / "mine")),
        )
        assert own.url("web").startswith("http") and own.ports["web"] == own.url("web"), own.ports
        await own.run("echo there > file")
        try:
            own.url("none")
            raise AssertionError("a port that is not there has a URL")
        except KeyError as error:
            assert "web" in str(error)
    same((scratch / "mine" / "file").read_text(), "there\n")
    opened = await make(isolation="none").open()
    await opened.close()
    await opened.close()
    await fails(gloveport.SandboxClosedError, opened.open())


async def the_history_of_a_session_is_read(box, make, scratch):
    program = [gloveport.find_program(), "session", "exec", box.id, "--", "echo", "noted; false"]
    done = await asyncio.to_thread(subprocess.run, program, capture_output=True, text=True)
    same((done.stdout, done.returncode), ("noted\n", 1))
    action, observation = await box.events(kinds=["run"])
    same((action.kind, action.is_action, action.source), ("run", True, "user"))
    same((action.data["command"], action.message), ("echo noted; false", "Running command: echo noted; false"))
    same((observation.is_action, observation.cause, observation.kind), (False, action.id, "run"))
    assert "noted" in observation.content and observation.time, observation
    same([each.id for each in await box.events(since=action.id, most=1)], [action.id])
    same(await box.events(since=10_000), [])


async def the_tools_of_a_sandbox_are_called(box, make, scratch):
    tools = {tool.name: tool for tool in await box.tools.list()}
    assert {"shell", "read_file", "search_files"} <= set(tools), tools
    assert "command" in tools["shell"].input_schema["properties"] and tools["shell"].description
    result = await box.tools.call("shell", {"command": "echo from a tool"})
    assert "from a tool" in result.text and not result.is_error and result.structured, result
    same(result.check(), result)
    result = await box.tools.call("read_file", {"path": "/nowhere"})
    same(result.is_error, True)
    error = await fails(gloveport.ToolFailedError, asyncio.to_thread(result.check))
    assert str(error) == result.text, error
    await fails(gloveport.ToolFailedError, box.tools.call("no-such-tool"))
    await fails(TimeoutError, box.tools.call("shell", {"command": "sleep 20"}, timeout=0.5))


#: A server of MCP with one tool.
MCP_SERVER = """
import json, os, sys
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    if asked["method"] == "initialize":
        version = asked["params"]["protocolVersion"]
        result = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}
    elif asked["method"] == "tools/list":
        result = {"tools": [{"name": "greet", "description": "Greets.", "inputSchema": {"type": "object"}}]}
    elif asked["method"] == "tools/call":
        words = [os.environ["GREETING"], *sys.argv[1:], asked["params"]["arguments"]["who"]]
        result = {"content": [{"type": "text", "text": " ".join(words)}]}
    else:
        result = {}
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
"""


async def mcp_servers_run_in_a_sandbox(box, make, scratch):
    await box.path("server.py").write_text(MCP_SERVER)
    where = (await box.run("realpath server.py; command -v python3")).output.split()
    greeter = gloveport.McpServer("greeter", where[1], (where[0], "dear"), {"GREETING": "hello"})
    assert "hello" not in repr(greeter)
    same(await box.mcp.set_servers(greeter), "")
    same([(tool.name, tool.description) for tool in await box.mcp.list()], [("greet", "Greets.")])
    result = await box.mcp.call("greet", {"who": "Ada"})
    same((result.text, result.is_error, result.structured), ("hello dear Ada", False, None))
    same([(each.name, each.state) for each in await box.mcp.servers()], [("greeter", "ready")])
    assert "none" in await box.mcp.set_servers(gloveport.McpServer("none", "no-such-program"))
    error = await fails(gloveport.ServerFailedError, box.mcp.set_servers(gloveport.McpServer("two words", "")))
    same((error.status, error.code), (500, "refused"))
    await box.mcp.set_servers()
    await fails(gloveport.NotFoundError, box.mcp.list())
    same(await box.mcp.servers(), [])


async def what_a_runtime_cannot_do_is_told(box, make, scratch):
    for call in (
        box.snapshot(),
        box.fork(),
        box.network.show(),
        box.network.log(),
        box.network.allow("a.test"),
        box.network.deny("a.test"),
        box.remove_snapshot("none", runtime="local"),
    ):
        error = await fails(gloveport.SessionError, call)
        assert str(error), error
    await fails(gloveport.SessionError, box.snapshots("local"))
    await fails(gloveport.InvalidRequestError, make_one(make, image="a", from_snapshot="b"))
    other = await make.connect(box.url(), key_of(box))
    await fails(gloveport.SessionError, other.events())
    await other.close()


async def make_one(make, **named):
    return make(**named)


def key_of(box):
    return (box._value if hasattr(box, "_value") else box)._session.key


async def what_cannot_be_started_says_why(box, make, scratch):
    for named, word in (
        ({"runtime": "no-such-runtime"}, "no-such-runtime"),
        ({"isolation": "much"}, "much"),
        ({"flags": ("--no-such",)}, "--no-such"),
    ):
        error = await fails(gloveport.SessionError, make(**named).open())
        assert word in str(error), error


CASES = [
    value
    for name, value in list(globals().items())
    if asyncio.iscoroutinefunction(value)
    and value.__module__ == __name__
    and name not in ("fails", "first_of", "listed", "make_one")
]


async def cells_run_in_kernels(make, scratch):
    """With the plugin jupyter, and an interpreter that has IPython."""
    async with make(
        isolation="none", plugins=["jupyter"], env={"GLOVEPORT_PYTHON": os.environ.get("TEST_IPYTHON", "")}
    ) as box:
        cell = await box.run_code("x = 41\nprint('out')\nimport sys; print('err', file=sys.stderr)\nx + 1")
        same(
            (cell.stdout, cell.stderr, cell.text, cell.reason, cell.error), ("out\n", "err\n", "42", "completed", None)
        )
        same(cell.check(), cell)
        parts = []
        cell = await box.run_code(
            "from IPython.display import HTML, display; display(HTML('<b>x</b>')); 1/0", on_output=parts.append
        )
        same((cell.displays[0]["text/html"], cell.error.name, cell.reason), ("<b>x</b>", "ZeroDivisionError", "raised"))
        assert "ZeroDivisionError" in "".join(parts)
        error = await fails(gloveport.CellFailedError, asyncio.to_thread(cell.check))
        same(error.code, "raised")
        same((await box.run_code("'x' in globals()", kernel="other")).text, "False")
        cell = await box.run_code("import time; time.sleep(60)", timeout=0.5)
        same(cell.reason, "timed_out")
        running = asyncio.ensure_future(box.run_code("import time; time.sleep(60)"))
        await asyncio.sleep(0.7)
        await box.interrupt_kernel()
        same((await running).error.name, "KeyboardInterrupt")
        await box.restart_kernel()
        same((await box.run_code("'x' in globals()")).text, "False")
        await fails(gloveport.NotFoundError, box.interrupt_kernel("unknown"))


#: A page with a field, a list and a link.
PAGE = """<!doctype html><title>Form</title><h1>Hello</h1><style>body {height: 4000px}</style>
<form action=done><label>Name <input name=who></label><select name=size aria-label=Size><option>small<option>large</select>
<input type=file aria-label=File><button>Send</button></form><a href="other.html">Elsewhere</a>
<script>console.warn("from the page"); localStorage.setItem("kept", "yes")</script>"""


async def a_browser_is_used(make, scratch):
    """With Chromium."""
    async with make(isolation="none") as box:
        browser = box.browser
        same((await browser.status()).state, "idle")
        status = await browser.start()
        assert status.pid and status.version, status
        await box.path("www/index.html").write_text(PAGE, parents=True)
        await box.path("www/other.html").write_text("<title>Other</title><p>It is elsewhere.")
        where = (await box.run("realpath www")).output.strip()
        server = await box.processes.start(["python3", "-um", "http.server", "0", "--bind", "127.0.0.1"], cwd=where)
        told = (await first_of(server.output())).data.decode()
        url = f"http://127.0.0.1:{told.split(' port ')[1].split()[0]}"
        page = (await browser.navigate(f"{url}/")).check()
        same((page.title, page.url, len(page.pages)), ("Form", f"{url}/", 1))
        assert "Hello" in page.tree and "Hello" in await browser.markdown()
        name = gloveport.Element(role="textbox", name="Name")
        (await browser.fill(name, "Ada")).check()
        (await browser.click(name)).check()
        (await browser.press("End")).check()
        (await browser.type(" L")).check()
        (await browser.select(gloveport.Element(selector="select"), ["large"])).check()
        (await browser.hover("Send")).check()
        (await browser.scroll(0, 100)).check()
        await box.path("file.txt").write_text("x")
        where = (await box.run("realpath file.txt")).output.strip()
        (await browser.upload(gloveport.Element(selector="input[type=file]"), [where])).check()
        same((await browser.page()).title, "Form")
        error = await fails(
            gloveport.BrowserFailedError, asyncio.to_thread((await browser.click("Nothing like it")).check)
        )
        assert "Nothing like it" in str(error), error
        page = (await browser.click("Send")).check()
        assert "who=Ada+L" in page.url and "size=large" in page.url, page.url
        page = (await browser.navigate("back", wait="parsed")).check()
        page = (await browser.navigate(f"{url}/other.html", new_page=True)).check()
        same((page.title, [each.active for each in page.pages]), ("Other", [False, True]))
        first = page.pages[0].id
        same((await browser.activate_page(first)).check().title, "Form")
        page = (await browser.close_page(page.pages[1].id)).check()
        same(len(page.pages), 1)
        picture = await browser.screenshot(full_page=True)
        assert picture.startswith(b"\x89PNG") and len(await browser.screenshot("Send")) < len(picture)
        assert (await browser.pdf(landscape=True, scale=0.5)).startswith(b"%PDF")
        entries, next_one = await browser.console()
        assert "from the page" in [each.text for each in entries], entries
        same((await browser.console(next_one))[0], [])
        entries, _ = await browser.network()
        assert ("GET", f"{url}/", "Document", 200) in [
            (each.method, each.url, each.kind, each.status) for each in entries
        ], entries
        assert (await browser.har())["log"]
        state = await browser.storage()
        assert "kept" in str(state), state
        await browser.set_storage(state)


async def files_of_a_container_are_kept_and_forked(make, scratch):
    """With Docker."""
    async with make("docker", image="gloveport-test/debian:12") as box:
        await box.run("echo kept > ~/kept; export GONE=1")
        home = (await box.run("echo $HOME")).output.strip()
        async with await box.fork() as other:
            assert other.id != box.id and other.runtime == "docker", other.id
            same((await other.run("cat ~/kept; echo [$GONE]")).output, "kept\n[]\n")
            await other.run("echo changed > ~/kept")
            fork = other.id
        same((await box.run("cat ~/kept")).output, "kept\n")
        snapshot = await box.snapshot(f"py-{os.urandom(4).hex()}")
        try:
            found = [each for each in await box.snapshots("docker") if each.image == snapshot.image]
            same([(each.name, each.session_id, each.runtime) for each in found], [(snapshot.name, box.id, "docker")])
            async with make(from_snapshot=snapshot) as again:
                same((await again.path(f"{home}/kept").read_text(), again.runtime), ("kept\n", "docker"))
        finally:
            await box.remove_snapshot(snapshot)
        same([each for each in await box.snapshots("docker") if each.image == snapshot.image], [])
        await fails(gloveport.SessionError, box.remove_snapshot(snapshot))
    await fails(gloveport.SessionError, make.attach(fork, runtime="docker"))


async def the_network_is_changed_while_a_sandbox_runs(make, scratch):
    """With the isolation container, which has a gate."""
    async with make(isolation="container", network=["a.test", "b.test:443"]) as box:
        state = await box.network.show()
        same((set(state.allowed), state.denied), ({"a.test", "b.test:443"}, ()))
        await box.run(
            "curl -sS -m 5 http://c.test/ || python3 -c 'import urllib.request as u; u.urlopen(\"http://c.test\")'"
        )
        asked = {each.target: each.allowed for each in await box.network.log()}
        same(asked.get("c.test:80"), False)
        assert "c.test" in (await box.network.allow("c.test")).allowed
        same((await box.network.deny("a.test")).denied, ("a.test",))

"""What a sandbox can do, for both clients: each case gets a sandbox and whatever makes others."""

import asyncio
import os
import stat
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
    third = await make.connect(box.url(), box._value._session.key if hasattr(box, "_value") else box._session.key)
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
    if asyncio.iscoroutinefunction(value) and value.__module__ == __name__ and name not in ("fails", "listed")
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

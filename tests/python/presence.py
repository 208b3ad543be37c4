"""Sandboxes of gateways whose clients are gone without a word, and those whose clients are there and do nothing."""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import threading
import time

import gloveport
from cases import fails, same
from gateways import KEY, gateway, until_empty
from gloveport import Gateway

#: Seconds after which an abandoned sandbox ends here, and a multiple of that.
SHORT, LONG = 2, 5


async def an_open_sandbox_outlives_the_time_after_which_an_abandoned_one_ends(make, scratch):
    # The gateway would wake what is paused for who uses it.
    with gateway("--wake") as (url, _):
        async with make.gateway(url, KEY) as there:
            ours = [await there.start(abandoned_after=SHORT, session_id=f"ours-{number}") for number in range(3)]
            at_gateway, inside = ours[1:]
            endless = await there.start(abandoned_after=None)
            assert await there.pause(at_gateway)
            await inside.pause()
            # What its caller gives a time to is not kept, and neither is what was only found and is looked at.
            idle = await there.start(idle=1)
            await there.start(kept=True, idle=1, session_id="kept")
            found = await there.get("kept")
            same((await found.state()).idle_limit_seconds, 1.0)
            is_over = False
            until = time.monotonic() + LONG
            while time.monotonic() < until:
                await asyncio.sleep(0.2)
                if not is_over:
                    try:
                        await found.state()
                        await there.info(found)
                    except gloveport.GloveportError:
                        is_over = True
            stays = {box.id for box in (*ours, endless)}
            same({each.id for each in await there.list()}, stays)
            await fails(gloveport.SandboxGoneError, idle.run("true"))
            same([(await box.state()).idle_limit_seconds for box in (ours[0], endless)], [SHORT, None])
            assert (await ours[0].state()).idle_seconds < SHORT
            # Nobody has woken it, and they go on for as long as before.
            same([(await there.info(box)).state for box in (at_gateway, inside)], ["paused", "paused"])
            await there.resume(at_gateway)
            await inside.resume()
            await asyncio.sleep(LONG)
            for box in ours:
                same((await box.run("echo on")).output, "on\n")
            same({each.id for each in await there.list()}, stays)
            error = await fails(gloveport.InvalidRequestError, there.fork(ours[0], kept=True))
            assert "abandoned_after=None" in error.remedy and ours[0].id in error.message, error
            for box in (*ours, endless, idle, found):
                await box.close()
            same(await there.list(), [])


async def limits_of_a_gateway_that_are_shorter_hold_and_a_client_that_is_there_keeps_to_them(make, scratch):
    with gateway("--idle-stop", f"{SHORT}s") as (url, _):
        async with make.gateway(url, KEY) as there:
            async with await there.start() as box, await there.start(abandoned_after=None) as other:
                same([(await each.state()).idle_limit_seconds for each in (box, other)], [SHORT, SHORT])
                await asyncio.sleep(LONG)
                same([each.id for each in await there.list()], [box.id])
                same((await box.run("echo on")).output, "on\n")


async def a_container_has_all_of_its_idle_time_when_it_goes_on(make, scratch):
    """With Docker."""
    with gateway("--runtime", "docker") as (url, _):
        async with make.gateway(url, KEY) as there:
            described = {"image": "gloveport-test/debian:12", "ttl": 600}
            async with await there.start(**described, idle=SHORT) as box, await there.start(**described) as ours:
                await box.run("true")
                await there.pause(box)
                await asyncio.sleep(LONG)
                same((await there.info(box)).state, "paused")
                await there.resume(box)
                await asyncio.sleep(SHORT / 2)
                assert SHORT > (await box.state()).idle_seconds > 0.1
                until = time.monotonic() + 10 * SHORT
                while box.id in [each.id for each in await there.list()] and time.monotonic() < until:
                    await asyncio.sleep(0.1)
                same([each.id for each in await there.list() if each.id in (box.id, ours.id)], [ours.id])
                # A fork has the times of its source, which is ours and has to be told that we are there.
                async with await ours.fork() as other:
                    same([(await each.state()).idle_limit_seconds for each in (ours, other)], [300.0, 300.0])


CHILD = f"""
import asyncio, os, sys, time
import gloveport
url, key, way = sys.argv[1:]
if way == "async":
    async def main():
        box = await gloveport.AsyncGateway(url, key).start(abandoned_after={SHORT})
        print(box.id, flush=True)
        await asyncio.sleep(60)
    asyncio.run(main())
else:
    box = gloveport.Gateway(url, key).start(abandoned_after={SHORT})
    if way == "forks" and os.fork() == 0:
        # It neither keeps nor ends what is its parent's.
        time.sleep({LONG} * 3)
        os._exit(0)
    print(box.id, flush=True)
    time.sleep(60)
"""


def an_interpreter_that_is_killed_leaves_no_sandbox_at_a_gateway():
    with gateway() as (url, _), Gateway(url, KEY) as there:
        ways = ("sync", "async", "forks")
        programs = [
            subprocess.Popen([sys.executable, "-c", CHILD, url, KEY, way], stdout=subprocess.PIPE, text=True)
            for way in ways
        ]
        try:
            ids = {program.stdout.readline().strip() for program in programs}
            time.sleep(LONG)
            assert {each.id for each in there.list()} == ids, (ids, there.list())
        finally:
            for program in programs:
                program.send_signal(signal.SIGKILL)
                program.wait()
                program.stdout.close()
        begun = time.monotonic()
        assert (left := until_empty(there, 3 * SHORT)) == [], left
        assert time.monotonic() - begun < LONG


def a_forked_process_neither_keeps_nor_ends_what_is_its_parents():
    with gateway() as (url, _), Gateway(url, KEY) as there:
        box = there.start(abandoned_after=SHORT)
        if (child := os.fork()) == 0:
            with contextlib.suppress(BaseException):
                own = there.start(abandoned_after=SHORT)
                time.sleep(LONG)
                own.run("true").check()
                own.close()
                box.close()
                os._exit(0)
            os._exit(1)
        _, status = os.waitpid(child, 0)
        assert status == 0, status
        assert [each.id for each in there.list()] == [box.id]
        assert box.run("echo here").output == "here\n"
        box.close()
        assert there.list() == []


def what_fails_in_saying_that_a_client_is_there_is_tried_again_and_told_to_nobody():
    from attacks import Proxy

    raised = []
    before, threading.excepthook = threading.excepthook, raised.append
    try:
        with gateway() as (url, process), Gateway(url, KEY) as there:
            proxy = Proxy(url)
            try:
                with Gateway(proxy.url, KEY) as through, through.start(abandoned_after=2 * SHORT) as box:
                    proxy.limits = [0, 100, 0, 100]
                    time.sleep(LONG)
                    # A gateway that does not answer for a while.
                    process.send_signal(signal.SIGSTOP)
                    time.sleep(SHORT)
                    process.send_signal(signal.SIGCONT)
                    time.sleep(LONG)
                    assert proxy.limits == [] and [each.id for each in there.list()] == [box.id]
                    threads = [each.name for each in threading.enumerate() if "presence" in each.name]
                    with through.start(abandoned_after=SHORT):
                        same([each.name for each in threading.enumerate() if "presence" in each.name], threads)
                    same(len(threads), 1)
                    # Somebody else has ended it.
                    there.delete(box.id)
                    time.sleep(SHORT)
            finally:
                proxy.close()
            until = time.monotonic() + 10
            while any("presence" in each.name for each in threading.enumerate()):
                assert time.monotonic() < until, threading.enumerate()
                time.sleep(0.05)
    finally:
        threading.excepthook = before
    assert raised == [], raised


def a_sandbox_that_is_closed_where_nobody_can_be_asked_ends_all_the_same():
    from attacks import Proxy

    with gateway() as (url, _), Gateway(url, KEY) as there:
        proxy = Proxy(url)
        box = Gateway(proxy.url, KEY).start(abandoned_after=SHORT)
        proxy.close()
        try:
            box.close()
        except gloveport.SessionError as error:
            assert error.code == "not_ended", error
        assert (left := until_empty(there, 3 * SHORT)) == [], left
        box._guard.release()


ATTACKS = [
    an_interpreter_that_is_killed_leaves_no_sandbox_at_a_gateway,
    a_forked_process_neither_keeps_nor_ends_what_is_its_parents,
    what_fails_in_saying_that_a_client_is_there_is_tried_again_and_told_to_nobody,
    a_sandbox_that_is_closed_where_nobody_can_be_asked_ends_all_the_same,
]

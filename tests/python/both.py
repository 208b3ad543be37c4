"""The sync client by the methods of the async one, so that both go through the same cases, and which methods were used.

What is a coroutine of the async client runs in a thread; what it returns is wrapped again.
"""

import asyncio
import inspect

import gloveport

PAIRS = {
    gloveport.Sandbox: gloveport.AsyncSandbox,
    gloveport.Browser: gloveport.AsyncBrowser,
    gloveport.Command: gloveport.AsyncCommand,
    gloveport.CommandStream: gloveport.AsyncCommandStream,
    gloveport.Gateway: gloveport.AsyncGateway,
    gloveport.Mcp: gloveport.AsyncMcp,
    gloveport.Network: gloveport.AsyncNetwork,
    gloveport.Process: gloveport.AsyncProcess,
    gloveport.Processes: gloveport.AsyncProcesses,
    gloveport.RemotePath: gloveport.AsyncRemotePath,
    gloveport.RemoteWriter: gloveport.AsyncWriter,
    gloveport.Terminal: gloveport.AsyncTerminal,
    gloveport.Tools: gloveport.AsyncTools,
    gloveport.Watch: gloveport.AsyncWatch,
}
END = object()


def wrapped(value):
    if type(value) in PAIRS:
        return Waited(value, PAIRS[type(value)])
    if hasattr(value, "readinto"):
        return Waited(value, gloveport.AsyncReader)
    if inspect.isgenerator(value) or type(value).__name__ in ("Items", "list_iterator"):
        return Waited(value, None)
    return value


def plain(value):
    return value._value if isinstance(value, Waited) else value


class Waited:
    """A value of the sync client as one of the async one."""

    def __init__(self, value, kind):
        self._value, self._kind = value, kind

    def __getattr__(self, name):
        found = getattr(self._value, name)
        if not callable(found):
            return wrapped(found)

        def call(*arguments, **named):
            return found(*map(plain, arguments), **{key: plain(value) for key, value in named.items()})

        async def call_in_thread(*arguments, **named):
            return wrapped(await asyncio.to_thread(call, *arguments, **named))

        if inspect.iscoroutinefunction(getattr(self._kind, name, None)):
            return call_in_thread
        return lambda *arguments, **named: wrapped(call(*arguments, **named))

    async def __aenter__(self):
        return wrapped(await asyncio.to_thread(self._value.__enter__))

    async def __aexit__(self, *error):
        await asyncio.to_thread(self._value.__exit__, *error)

    async def __aiter__(self):
        iterator = iter(self._value)
        while (item := await asyncio.to_thread(next, iterator, END)) is not END:
            yield wrapped(item)

    def __truediv__(self, other):
        return wrapped(self._value / plain(other))

    def __str__(self):
        return str(self._value)

    def __repr__(self):
        return repr(self._value)

    def __eq__(self, other):
        return self._value == plain(other)

    def __hash__(self):
        return hash(self._value)


class Sync:
    """Makes sandboxes of the sync client."""

    name = "sync"

    def __call__(self, *arguments, **named):
        return wrapped(gloveport.Sandbox(*arguments, **named))

    async def connect(self, *arguments):
        return wrapped(await asyncio.to_thread(gloveport.Sandbox.connect, *arguments))

    async def attach(self, *arguments, **named):
        return wrapped(await asyncio.to_thread(gloveport.Sandbox.attach, *arguments, **named))

    def gateway(self, *arguments):
        return wrapped(gloveport.Gateway(*arguments))


class Async:
    """Makes sandboxes of the async client."""

    name = "async"

    async def connect(self, *arguments):
        return await gloveport.AsyncSandbox.connect(*arguments)

    async def attach(self, *arguments, **named):
        return await gloveport.AsyncSandbox.attach(*arguments, **named)

    def __call__(self, *arguments, **named):
        return gloveport.AsyncSandbox(*arguments, **named)

    def gateway(self, *arguments):
        return gloveport.AsyncGateway(*arguments)


class Inventory:
    """Which public functions there are, and which were used."""

    def __init__(self):
        self.there, self.used = set(), set()
        for name in gloveport.__all__:
            kind = getattr(gloveport, name)
            if not inspect.isclass(kind):
                continue
            if issubclass(kind, Exception):
                continue
            for owner in kind.__mro__:
                if owner.__module__.startswith("gloveport"):
                    for member, value in list(vars(owner).items()):
                        # What `io` asks a file about itself is no function of ours.
                        if not member.startswith("_") and member != "writable":
                            self._watch(owner, member, value)

    def _watch(self, owner, member, value):
        label = f"{owner.__name__}.{member}"
        if label in self.there:
            return
        if isinstance(value, property):
            getter = value.fget
            self._replace(owner, member, label, property(lambda this: self._count(label, getter(this))))
        elif isinstance(value, classmethod):
            inner = value.__func__
            counting = self._coroutine if inspect.iscoroutinefunction(inner) else self._plain
            self._replace(owner, member, label, classmethod(counting(label, inner)))
        elif inspect.isasyncgenfunction(value) or inspect.isfunction(value):
            counted = self._coroutine(label, value) if inspect.iscoroutinefunction(value) else self._plain(label, value)
            self._replace(owner, member, label, counted)

    def _replace(self, owner, member, label, counted):
        self.there.add(label)
        setattr(owner, member, counted)

    def _count(self, label, result):
        self.used.add(label)
        return result

    def _plain(self, label, function):
        def call(*arguments, **named):
            self.used.add(label)
            return function(*arguments, **named)

        return call

    def _coroutine(self, label, function):
        async def call(*arguments, **named):
            self.used.add(label)
            return await function(*arguments, **named)

        return call

    def missing(self):
        return sorted(self.there - self.used)

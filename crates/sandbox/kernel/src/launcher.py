"""Runs ipykernel for one client that must not miss anything.

What differs from `python -m ipykernel_launcher`:

* Text of both streams stands in one queue, so its order is the one in which it was written. It is cut into small
  messages, and whoever writes faster than the client reads waits, so nothing is dropped and memory is bounded.
* All text is written into a ring in a file that the client can read, too, before anything else happens to it. What a
  kernel that is killed had not sent is taken from there.
* What programs write to the descriptors 1 and 2 comes before what Python prints later, and belongs to its cell.
* A thread belongs to the cell that has started it.
* Strings that JSON cannot carry, or that are larger than the client keeps, are replaced before they are sent.
"""

import asyncio
import codecs
import contextvars
import fcntl
import functools
import json
import mmap
import os
import select
import signal
import struct
import sys
import termios
import threading
import traceback
import weakref

HERE = os.path.dirname(os.path.abspath(__file__))
# An ordinary kernel does not have the directory of its launcher in its path.
sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or ".") != HERE or entry == ""]

try:
    import zmq
    from ipykernel.displayhook import ZMQShellDisplayHook
    from ipykernel.iostream import OutStream
    from ipykernel.ipkernel import IPythonKernel
    from ipykernel.kernelapp import IPKernelApp
    from ipykernel.zmqshell import ZMQDisplayPublisher
    from jupyter_client.session import extract_header
except ImportError:
    traceback.print_exc()
    # The client knows by it that another `ipykernel` is needed.
    sys.exit(97)

# Characters of one message.
PIECE = 32 * 1024
# Messages that may be on their way before a writer waits.
WINDOW = 8
# Seconds that text may wait for more.
DELAY = 0.05

# The header of the request that code belongs to, as far as its context knows.
origin = contextvars.ContextVar("gloveport_origin")
# The same for threads, whose context is empty.
threads = weakref.WeakKeyDictionary()


class Journal:
    """A ring with the latest text, and how much there was in all."""

    def __init__(self, path):
        with open(path, "r+b") as file:
            self.memory = mmap.mmap(file.fileno(), 0)
        self.room = len(self.memory) - 8
        self.count = 0

    def add(self, data):
        start = self.count % self.room
        head = data[: self.room - start]
        self.memory[8 + start : 8 + start + len(head)] = head
        tail = data[len(head) :]
        self.memory[8 : 8 + len(tail)] = tail
        # The count comes last: whatever it covers is there.
        self.count += len(data)
        struct.pack_into("<Q", self.memory, 0, self.count)


class Outlet:
    """The queue of what both streams write."""

    def __init__(self, journal):
        self.journal = journal
        self.forked = False
        self.lock = threading.RLock()
        self.pieces = []
        self.length = 0
        self.source = None
        self.ticking = False
        self.sent = 0
        os.register_at_fork(after_in_child=self.after_fork)

    def after_fork(self):
        self.forked = True
        self.lock = threading.RLock()
        self.pieces = []

    def put(self, stream, text):
        """Takes text of a stream, and waits while there is too much on its way."""
        parent = stream.origin()
        for start in range(0, len(text), PIECE):
            piece = text[start : start + PIECE]
            try:
                data = piece.encode()
            except UnicodeEncodeError:
                piece = without_surrogates(piece)
                data = piece.encode()
            with self.lock:
                if self.source is not None and (self.source[0] is not stream or self.source[1] is not parent):
                    self.emit()
                self.source = (stream, parent)
                self.journal.add(data)
                self.pieces.append(piece)
                self.length += len(piece)
                if self.length >= PIECE:
                    self.emit()
            self.wait(stream)
        if self.pieces and not self.ticking:
            self.ticking = True
            stream.pub_thread.schedule(functools.partial(self.tick_later, stream))

    def emit(self):
        """Sends what there is."""
        with self.lock:
            if not self.pieces:
                return
            stream, parent = self.source
            text = "".join(self.pieces)
            self.pieces = []
            self.length = 0
            self.sent += 1
            stream.send(parent, text, self.journal.count)

    def wait(self, stream):
        """Waits until what was sent is on its way to the client."""
        thread = stream.pub_thread.thread
        if self.sent < WINDOW or not thread.is_alive() or thread is threading.current_thread():
            return
        self.sent = 0
        done = threading.Event()
        stream.pub_thread.schedule(done.set)
        while not done.wait(1):
            if not thread.is_alive():
                return

    def tick_later(self, stream):
        stream.pub_thread.io_loop.call_later(DELAY, self.tick, stream)

    def tick(self, stream):
        """Sends what has waited. Whoever holds the lock may wait for this very thread, so this does not wait for it."""
        if not self.lock.acquire(blocking=False):
            self.tick_later(stream)
            return
        try:
            self.ticking = False
            self.emit()
        finally:
            self.lock.release()


# Whoever takes something from a pipe passes it on before somebody else takes or writes.
taking = threading.RLock()


class Descriptor:
    """A standard descriptor as a pipe into a stream."""

    def __init__(self, stream, number):
        self.stream = stream
        self.original = os.dup(number)
        self.read, self.write = os.pipe()
        os.dup2(self.write, number)
        self.decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def take(self):
        """Takes what is in the pipe now."""
        count = bytearray(4)
        fcntl.ioctl(self.read, termios.FIONREAD, count)
        (count,) = struct.unpack("i", count)
        if count:
            text = self.decoder.decode(os.read(self.read, count))
            if text:
                self.stream.outlet.put(self.stream, text)


class Stream(OutStream):
    """`sys.stdout` or `sys.stderr`."""

    outlet = None
    made = []
    # The descriptors that have something.
    waiting = select.poll()
    # Only one thread at a time may ask it.
    asking = threading.Lock()

    def __init__(self, session, pub_thread, name, echo=None, **_ignored):
        super().__init__(session, pub_thread, name, watchfd=False)
        # The log of the kernel itself goes there.
        self.descriptor = Descriptor(self, {"stdout": 1, "stderr": 2}[name])
        self._original_stdstream_copy = self.descriptor.original
        self.current = {}
        Stream.made.append(self)
        Stream.waiting.register(self.descriptor.read, select.POLLIN)
        if len(Stream.made) == 2:
            threading.Thread(target=watch, name="descriptors", daemon=True).start()

    def fileno(self):
        return self.descriptor.write

    def set_parent(self, parent):
        super().set_parent(parent)
        self.current = extract_header(parent)
        origin.set(self.current)

    def origin(self):
        """Header of the request that the code which writes belongs to."""
        try:
            return origin.get()
        except LookupError:
            return threads.get(threading.current_thread(), self.current)

    def write(self, string):
        if not isinstance(string, str):
            raise TypeError(f"write() argument must be str, not {type(string)}")
        if self.pub_thread is None:
            raise ValueError("I/O operation on closed file")
        if self.outlet.forked:
            data = memoryview(string.encode(errors="replace"))
            while data:
                data = data[os.write(self.descriptor.write, data) :]
            return len(string)
        catch_up()
        self.outlet.put(self, string)
        return len(string)

    def flush(self):
        if self.pub_thread is not None and not self.outlet.forked:
            catch_up()
            self.outlet.emit()

    def send(self, parent, text, end):
        msg = self.session.msg("stream", {"name": self.name, "text": text}, parent=parent, metadata={"end": end})
        for hook in getattr(self, "_hooks", ()):
            msg = hook(msg)
            if msg is None:
                return
        self.session.send(self.pub_thread, msg, ident=self.topic)


def catch_up():
    """Takes what programs have written, so that it comes before what is written next."""
    if not Stream.asking.acquire(blocking=False):
        # Another thread does it, or this one in what a signal has interrupted.
        return
    try:
        some = Stream.waiting.poll(0)
    finally:
        Stream.asking.release()
    if some:
        take_all()
    else:
        # What another thread has taken is passed on before it gives this back. It may wait for the very thread that
        # sends, so this does not wait for ever.
        if taking.acquire(timeout=1):
            taking.release()


def take_all():
    """Takes what is in the pipes of both descriptors."""
    with taking:
        for stream in Stream.made:
            try:
                stream.descriptor.take()
            except (OSError, ValueError):
                # The user's code has closed it.
                pass


def watch():
    """Takes what programs write while no code of the cell does. One thread for both descriptors keeps their order."""
    poll = select.poll()
    for stream in Stream.made:
        poll.register(stream.descriptor.read, select.POLLIN)
    left = len(Stream.made)
    while left:
        for number, event in poll.poll():
            if event & ~select.POLLIN:
                # The user's code has closed it.
                poll.unregister(number)
                left -= 1
        take_all()


class Kernel(IPythonKernel):
    """An IPython kernel whose cells end when all that they wrote is in the queue, and end always."""

    # The queue keeps the order, so there is nothing to wait for.
    _execute_sleep = 0

    @functools.wraps(IPythonKernel.do_execute)
    async def do_execute(self, *args, **kwargs):
        # A cell may have put something else into `sys.stdout`, so the parent does not come this way.
        for stream in Stream.made:
            stream.set_parent(self.get_parent("shell"))
        wake_for_signals()
        try:
            return await super().do_execute(*args, **kwargs)
        except Exception as error:
            text = traceback.format_exc()
            Stream.outlet.put(Stream.made[1], text)
            return {
                "status": "error",
                "ename": type(error).__name__,
                "evalue": str(error),
                "traceback": [text],
                "execution_count": self.execution_count,
                "user_expressions": {},
                "payload": [],
            }
        finally:
            take_all()
            Stream.outlet.emit()
            mend_streams()


class Application(IPKernelApp):
    """An application that neither drops nor queues without a bound what the client is slow to read."""

    def init_iopub(self, context):
        context.setsockopt(zmq.SNDHWM, 2 * WINDOW)
        context.setsockopt(zmq.XPUB_NODROP, 1)
        try:
            super().init_iopub(context)
        finally:
            for option in (zmq.SNDHWM, zmq.XPUB_NODROP):
                context.sockopts.pop(option, None)


def wake_for_signals():
    """Lets a signal wake a loop that waits, or `await` could not be interrupted."""
    try:
        signal.set_wakeup_fd(asyncio.get_running_loop()._csock.fileno(), warn_on_full_buffer=False)
    except (AttributeError, RuntimeError, ValueError):
        # A loop of another kind, or not the main thread.
        pass


def mend_streams():
    """Replaces streams of the user that do not work any more: the next cells could not run with them."""
    for stream in Stream.made:
        try:
            getattr(sys, stream.name).flush()
        except Exception:
            setattr(sys, stream.name, stream)


def with_streams(function):
    """A function that needs streams that work."""

    @functools.wraps(function)
    def called(*args, **kwargs):
        mend_streams()
        return function(*args, **kwargs)

    return called


def without_surrogates(text):
    return "".join("\ufffd" if "\ud800" <= character <= "\udfff" else character for character in text)


def clean(value, change):
    """The same value with changed strings."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {clean(key, change): clean(item, change) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [clean(item, change) for item in value]
    return value


def packer(pack, text_limit, image_limit):
    """A packer that takes any string, and cuts what the client does not keep anyway."""

    def shorten(text):
        if len(text) <= text_limit:
            return text
        half = text_limit // 2
        return f"{text[:half]}\n[{len(text) - 2 * half} characters are left out here]\n{text[len(text) - half :]}"

    def shortened(content):
        if "data" in content and isinstance(content["data"], dict):
            data = {}
            for kind, item in content["data"].items():
                if isinstance(item, str) and kind.startswith("image/"):
                    # An empty picture counts as one that is left out.
                    data[kind] = item if len(item) <= image_limit else ""
                else:
                    data[kind] = clean(item, shorten)
            content = dict(content, data=data)
        if "traceback" in content:
            content = clean(content, shorten)
        return content

    def packed(value):
        if isinstance(value, dict):
            value = shortened(value)
        try:
            return pack(value)
        except ValueError:
            return pack(clean(value, without_surrogates))

    return packed


def follow_threads():
    """Lets threads know the request that they belong to."""
    start = threading.Thread.start

    @functools.wraps(start)
    def start_here(self):
        try:
            threads[self] = origin.get()
        except LookupError:
            parent = threads.get(threading.current_thread())
            if parent is not None:
                threads[self] = parent
        return start(self)

    threading.Thread.start = start_here

    # The threads of a pool belong to whoever gives them something to do.
    from concurrent.futures import ThreadPoolExecutor

    submit = ThreadPoolExecutor.submit

    @functools.wraps(submit)
    def submit_here(self, fn, /, *args, **kwargs):
        return submit(self, contextvars.copy_context().run, fn, *args, **kwargs)

    ThreadPoolExecutor.submit = submit_here


def main():
    with open(os.path.join(HERE, "settings.json"), encoding="utf-8") as file:
        settings = json.load(file)
    if settings["packages"]:
        sys.path.append(settings["packages"])
    sys.modules["gloveport_launcher"] = sys.modules["__main__"]
    Stream.outlet = Outlet(Journal(os.path.join(HERE, "journal")))
    app = Application.instance(kernel_class=Kernel, outstream_class="gloveport_launcher.Stream")
    app.initialize(
        [
            *sys.argv[1:],
            "--InteractiveShell.colors=nocolor",
            "--HistoryManager.enabled=False",
            "--HistoryManager.hist_file=:memory:",
        ]
    )
    app.session.pack = packer(app.session.pack, settings["text_limit"], settings["image_limit"])
    del sys.modules["gloveport_launcher"]
    for owner, name in ((ZMQShellDisplayHook, "finish_displayhook"), (ZMQDisplayPublisher, "_flush_streams")):
        if hasattr(owner, name):
            setattr(owner, name, with_streams(getattr(owner, name)))
    follow_threads()
    line = f"{settings['token']} {sys.executable}\n"
    os.write(Stream.made[0].descriptor.original, line.encode(errors="surrogateescape"))
    app.start()


if __name__ == "__main__":
    main()

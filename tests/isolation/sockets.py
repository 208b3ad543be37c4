"""Sockets that programs of a sandbox use among each other. Ends with 0 if they can."""

import os
import socket
import threading

name = f"socket-{os.getpid()}"
link = name + "-link"
os.symlink(name, link)
for kind in (socket.SOCK_STREAM, socket.SOCK_SEQPACKET):
    with socket.socket(socket.AF_UNIX, kind) as server:
        server.bind(name)
        server.listen(100)
        for path in (name, f"{os.getcwd()}/{name}", link):
            with socket.socket(socket.AF_UNIX, kind) as client:
                client.connect(path)
                accepted, _ = server.accept()
                accepted.send(b"hello")
                assert client.recv(10) == b"hello", path
                accepted.close()

        def connect():
            for _ in range(20):
                with socket.socket(socket.AF_UNIX, kind) as client:
                    client.connect(name)

        threads = [threading.Thread(target=connect) for _ in range(5)]
        for thread in threads:
            thread.start()
        for _ in range(100):
            server.accept()[0].close()
        for thread in threads:
            thread.join()
    os.unlink(name)
os.unlink(link)
try:
    socket.socket(socket.AF_UNIX).connect("there-is-none")
except FileNotFoundError:
    pass

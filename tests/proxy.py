"""A TCP proxy that loses answers, hangs and cuts, for any server that answers only what it was asked."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Self


class Proxy:
    """Forwards 127.0.0.1:`port` to the target. Threads; use as a context manager.

    `drop_next_reply()`: the request is done, its answer thrown away and the connection closed (`close=False`:
    left open, so that the client waits).
    `stall()` / `resume()`: answers are held back, and come late. `cut()`: all connections are closed at once.
    `rewrite` is given whatever comes by, in either direction, and says what goes on instead.
    """

    def __init__(
        self,
        target_port: int,
        target_host: str = "127.0.0.1",
        *,
        rewrite: Callable[[bytes], bytes] = lambda data: data,
    ) -> None:
        self._target = (target_host, target_port)
        self._rewrite = rewrite
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._flowing = threading.Event()
        self._flowing.set()
        self._lock = threading.Lock()
        self._drops = 0
        self._closing = True
        self._sockets: set[socket.socket] = set()
        self.dropped = 0
        """How many answers were thrown away so far."""

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.close()
        self.resume()
        self.cut()

    def drop_next_reply(self, count: int = 1, *, close: bool = True) -> None:
        with self._lock:
            self._drops = count
            self._closing = close

    def stall(self) -> None:
        self._flowing.clear()

    def resume(self) -> None:
        self._flowing.set()

    def cut(self) -> None:
        with self._lock:
            doomed, self._sockets = self._sockets, set()
        for one in doomed:
            _close(one)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
                server = socket.create_connection(self._target)
            except OSError:
                return
            with self._lock:
                self._sockets |= {client, server}
            threading.Thread(target=self._requests, args=(client, server), daemon=True).start()
            threading.Thread(target=self._replies, args=(server, client), daemon=True).start()

    def _requests(self, client: socket.socket, server: socket.socket) -> None:
        self._pump(client, server)

    def _replies(self, server: socket.socket, client: socket.socket) -> None:
        self._pump(server, client, is_reply=True)

    def _pump(self, source: socket.socket, sink: socket.socket, *, is_reply: bool = False) -> None:
        try:
            while data := source.recv(65536):
                if is_reply:
                    self._flowing.wait()
                    if self._drop():
                        if self._closing:
                            break
                        continue
                sink.sendall(self._rewrite(data))
        except OSError:
            pass
        finally:
            with self._lock:
                self._sockets -= {source, sink}
            _close(source)
            _close(sink)

    def _drop(self) -> bool:
        with self._lock:
            if not self._drops:
                return False
            self._drops -= 1
            self.dropped += 1
            return True


def _close(one: socket.socket) -> None:
    with suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)
    one.close()

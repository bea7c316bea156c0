"""Real processes for race tests: started together, heard, killed, and never left behind.

    results = race(bump, path, 250, processes=8)      # bump(number, path, 250) in eight processes at once

    with Worker(hold, url) as worker:                 # hold(url) in a process of its own
        worker.hear()                                 # what it said by `tell(...)`
        worker.kill()

The function must be one that another process can import: at the top of a module, not a lambda. Its
arguments and its result must be picklable. Every process imports the function's module anew, so a module of
few imports starts sooner.
"""

from __future__ import annotations

import os
import pickle
import queue
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import IO, Any, Self

_ROOT = Path(__file__).resolve().parent.parent


class WorkerDied(Exception):
    """The process ended without a result: killed, or gone by `os._exit`."""


class Worker:
    """One function call in a process of its own; leaving the `with` block kills what still runs."""

    def __init__(self, work: Callable[..., Any], *arguments: Any, gate: bool = False) -> None:
        """Start the process; with `gate` it waits, everything imported, until `go`."""
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.processes"],
            cwd=_ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        assert self._process.stdin is not None
        # Two messages: the second can only be read once the first has told where modules are found.
        pickle.dump(sys.path, self._process.stdin)
        pickle.dump((work, arguments, gate), self._process.stdin)
        self._process.stdin.flush()
        self._messages: queue.Queue[tuple[str, Any]] = queue.Queue()
        self._ready = threading.Event()
        self._said: list[Any] = []
        self._end: tuple[str, Any] | None = None
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def go(self, within: float = 30.0) -> None:
        """Open the gate, once the process stands in front of it."""
        self.ready(within)
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # it is dead; `result` will say so
            self._process.stdin.write(b"go\n")
            self._process.stdin.flush()

    def ready(self, within: float = 30.0) -> None:
        """Wait until the process has imported the function and is about to call it."""
        if not self._ready.wait(within):
            raise TimeoutError(f"process {self.pid} was not ready within {within} seconds")

    def hear(self, within: float = 10.0) -> Any:
        """Return the next thing the function said by `tell`."""
        until = time.monotonic() + within
        while not self._said:
            if self._end is not None:
                self.result()  # raises what it raised
                raise WorkerDied(f"process {self.pid} returned and said nothing more")
            self._next(until, within)
        return self._said.pop(0)

    def result(self, within: float = 60.0) -> Any:
        """Return what the function returned, or raise what it raised, or `WorkerDied`, or `TimeoutError`."""
        until = time.monotonic() + within
        while self._end is None:
            self._next(until, within)
        kind, value = self._end
        if kind == "returned":
            return value
        if kind == "raised":
            raise value
        raise WorkerDied(f"process {self.pid} ended with {self._process.wait(5)} and no result")

    def kill(self) -> None:
        """Kill the process and what it started (SIGKILL), and wait until it is gone."""
        self.sigkill()
        self._process.wait()

    def sigkill(self) -> None:
        self.send(signal.SIGKILL)

    def sigstop(self) -> None:
        """Freeze the process: a machine that swaps, a garbage collector that does not come back."""
        self.send(signal.SIGSTOP)

    def sigcont(self) -> None:
        self.send(signal.SIGCONT)

    def send(self, number: signal.Signals) -> None:
        if self.alive:
            os.killpg(self.pid, number)

    def close(self) -> None:
        """Kill what still runs and let go of the pipes."""
        self.kill()
        self._reader.join(5)
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            with suppress(BrokenPipeError):  # something was still to be written to a process that is dead
                pipe.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _next(self, until: float, within: float) -> None:
        try:
            kind, value = self._messages.get(timeout=max(0.0, until - time.monotonic()))
        except queue.Empty:
            raise TimeoutError(f"process {self.pid} was not done within {within} seconds") from None
        if kind == "said":
            self._said.append(value)
        else:
            self._end = (kind, value)

    def _read(self) -> None:
        assert self._process.stdout is not None
        try:
            while True:
                kind, value = pickle.load(self._process.stdout)
                if kind != "said":  # about to begin, or ended before it could
                    self._ready.set()
                if kind != "ready":
                    self._messages.put((kind, value))
        except Exception:  # its end of the pipe is closed, perhaps in the middle of a message
            self._ready.set()
            self._messages.put(("died", None))


def race(work: Callable[..., Any], *arguments: Any, processes: int = 8, within: float = 60.0) -> list[Any]:
    """Call `work(number, *arguments)` in that many processes at the same moment; return all results in order.

    The first error of any of them comes out here, and nothing is left running. `within` counts from the
    moment the processes are let go.
    """
    with ExitStack() as stack:
        workers = [
            stack.enter_context(Worker(work, number, *arguments, gate=True)) for number in range(processes)
        ]
        for worker in workers:
            worker.ready()
        for worker in workers:
            worker.go()
        until = time.monotonic() + within
        return [worker.result(max(0.0, until - time.monotonic())) for worker in workers]


_out: IO[bytes] | None = None


def tell(value: Any) -> None:
    """Inside a worker: say something to the test, which gets it from `hear`."""
    _send("said", value)


def _send(kind: str, value: Any) -> None:
    if _out is None:
        raise RuntimeError("only a function that a Worker runs can tell its test something")
    _out.write(pickle.dumps((kind, value)))
    _out.flush()


def _main() -> None:
    global _out  # one process, one pipe to its test
    _out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what the work prints must not get between the messages
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs are born deaf to it
    sys.path[:] = pickle.load(sys.stdin.buffer)
    try:
        work, arguments, gate = pickle.load(sys.stdin.buffer)
        _send("ready", None)
        if gate:
            sys.stdin.buffer.readline()
        threading.Thread(target=_leave_with_the_test, daemon=True).start()
        _send("returned", work(*arguments))
    except BaseException as error:
        _send("raised", _portable(error))


def _leave_with_the_test() -> None:
    os.read(0, 1)  # nothing more is sent: it returns when the test run is gone, however it went
    os._exit(70)


def _portable(error: BaseException) -> BaseException:
    """Return the error as one that the test can unpickle, with the worker's traceback as a note."""
    text = "".join(traceback.format_exception(error))
    error.add_note(f"in process {os.getpid()}:\n{text}")
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(text)
    return error


if __name__ == "__main__":
    # As the module that the work imports too, so that its `tell` finds the pipe.
    from tests.processes import _main as main

    main()

"""The queues on PostgreSQL that we are measured against, each set up as its own documentation has it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from typing import Any

from benchmarks.queue_models import plain
from benchmarks.queue_ways import BATCH, Drain, Open, Way

PROCRASTINATE, PGQUEUER = "procrastinate", "pgqueuer"

AT_ONCE = 20
"""Jobs that one of procrastinate's workers has in hand at a time."""


def _in_a_loop(
    work: Callable[[str, list[int]], AbstractAsyncContextManager[Callable[[], Any]]],
    loop: Callable[[], Callable[[], asyncio.AbstractEventLoop] | None] = lambda: None,
) -> Open:
    """A worker for asyncio as one for blocking code, in one event loop from its beginning to its end."""

    @contextmanager
    def open_(url: str, done: list[int]) -> Iterator[Drain]:
        with asyncio.Runner(loop_factory=loop()) as runner:

            async def enter() -> Callable[[], Any]:
                return await opened.__aenter__()

            async def leave() -> None:
                await opened.__aexit__(None, None, None)

            opened = work(plain(url), done)
            drain = runner.run(enter())
            yield lambda: runner.run(drain())
            runner.run(leave())

    return open_


# procrastinate: an asyncio worker with several jobs in hand, on its own pool of connections


def _app(url: str, done: list[int]) -> tuple[Any, Any]:
    from procrastinate import App, PsycopgConnector

    async def work(number: int) -> None:
        done.append(number)

    app = App(connector=PsycopgConnector(conninfo=url))
    return app, app.task(name="work")(work)


@asynccontextmanager
async def procrastinate(url: str, done: list[int]) -> Any:
    """A worker that ends when there is no job left."""
    app, _ = _app(url, done)
    async with app.open_async():
        yield lambda: app.run_worker_async(wait=False, concurrency=AT_ONCE, install_signal_handlers=False)


def fill_procrastinate(url: str, numbers: range) -> None:
    """Jobs deferred in one batch."""

    async def main() -> None:
        app, task = _app(plain(url), [])
        async with app.open_async():
            if numbers.start == 1:
                await app.schema_manager.apply_schema_async()
            await task.batch_defer_async(*({"number": number} for number in numbers))

    asyncio.run(main())


# pgqueuer: asyncpg, and uvloop, as its own command `pgq run` has


def _uvloop() -> Callable[[], asyncio.AbstractEventLoop]:
    import uvloop

    new: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop  # untyped where it is not installed
    return new


@asynccontextmanager
async def pgqueuer(url: str, done: list[int]) -> Any:
    """A worker that takes batches and ends when there is no job left."""
    import asyncpg
    from pgqueuer import AsyncpgDriver, Queries, QueueManager
    from pgqueuer.types import QueueExecutionMode

    connection = await asyncpg.connect(url)

    async def work(job: Any) -> None:
        done.append(int(job.payload))

    async def drain() -> None:
        manager = QueueManager(Queries(AsyncpgDriver(connection)))
        manager.entrypoint("work")(work)
        await manager.run(batch_size=BATCH, mode=QueueExecutionMode.drain)

    yield drain
    await connection.close()


def fill_pgqueuer(url: str, numbers: range) -> None:
    """Jobs added in one batch."""

    async def main() -> None:
        import asyncpg
        from pgqueuer import AsyncpgDriver, Queries

        connection = await asyncpg.connect(plain(url))
        queries = Queries(AsyncpgDriver(connection))
        if numbers.start == 1:
            await queries.install()
        count = len(numbers)
        await queries.enqueue(["work"] * count, [str(number).encode() for number in numbers], [0] * count)
        await connection.close()

    asyncio.run(main())


PEERS = [
    Way(
        PROCRASTINATE,
        _in_a_loop(procrastinate),
        fill_procrastinate,
        "procrastinate_jobs",
        "SELECT count(*), extract(epoch FROM max(at)) FROM procrastinate_events WHERE type = 'succeeded'",
    ),
    Way(
        PGQUEUER,
        _in_a_loop(pgqueuer, _uvloop),
        fill_pgqueuer,
        "pgqueuer",
        "SELECT count(*), extract(epoch FROM max(created)) FROM pgqueuer_log WHERE status = 'successful'",
    ),
]

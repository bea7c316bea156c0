"""PostgreSQL's NOTIFY for one queue: every statement that makes rows claimable tells, when its transaction commits."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

from sqlalchemy import Boolean, Table, literal
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement

from reservable.leasing.queues import Queue

LONGEST = 63
"""Bytes of a channel's name in PostgreSQL."""


def channel_of(table: Table) -> str:
    """The channel of a queue: `reservable_queue_videos`; a digest in place of a name that would be too long."""
    channel = f"reservable_queue_{table.fullname}"
    if len(channel.encode()) <= LONGEST:
        return channel
    return f"reservable_queue_{sha256(table.fullname.encode()).hexdigest()[:32]}"


class tells(FunctionElement[bool]):  # noqa: N801 - reads as the SQL function it is
    """SQL that is always true, and has PostgreSQL tell the channel; other databases cannot."""

    type = Boolean()
    inherit_cache = True


@compiles(tells)
def _mute(element: tells, compiler: Any, **_: Any) -> str:  # noqa: ARG001
    return "1 = 1"


@compiles(tells, "postgresql")
def _notify(element: tells, compiler: Any, **options: Any) -> str:
    return f"pg_notify({compiler.process(element.clauses, **options)}, '') IS NOT NULL"


def told(queue: Queue) -> tells:
    """The condition that tells whoever waits for this queue's rows."""
    return tells(literal(channel_of(queue.table)))

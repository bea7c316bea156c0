"""Rows that a session adds are told of, as everything is that makes rows claimable."""

from __future__ import annotations

from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from reservable.leasing.telling import told
from reservable.queue.options import options_of
from reservable.queue.statuses import Status
from reservable.sqlalchemy.queue.columns import QueueColumns
from reservable.sqlalchemy.queue.queues import queue_of


def after_flush(session: Session, *_: Any) -> None:
    """New rows that can be claimed are told of by the transaction that they are part of."""
    new = {type(row) for row in session.new if isinstance(row, QueueColumns) and _is_pending(row)}
    for queue in {queue_of(model) for model in new}:
        connection = session.connection(bind_arguments={"mapper": queue.mapper})
        if connection.dialect.name == "postgresql":
            connection.execute(select(told(queue)))


def _is_pending(row: Any) -> bool:
    options = options_of(type(row))
    return options.notify and vars(row).get("status") == options.values.value(Status.PENDING)

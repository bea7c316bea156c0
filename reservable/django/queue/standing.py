"""How the rows of a queue stand: what is due, running, over, and how many there are."""

from __future__ import annotations

from typing import Any

from django.db.models import Count, Q

from reservable.django.queue.clock import Now
from reservable.django.queue.conditions import is_more_than_filters
from reservable.queue.moves import CLAIM, If
from reservable.queue.options import options_of
from reservable.queue.statuses import Status, Value


def due(model: Any) -> Any:
    """Rows that can be claimed now."""
    found: Any = Q(pk__in=[])
    for role, condition in CLAIM.sources.items():
        found |= _in_status(model, role) & _when(model, condition)
    return found


def running(model: Any) -> Any:
    """Rows whose lease is not over."""
    return _in_status(model, Status.RUNNING) & Q(retry_at__gt=Now())


def expired(model: Any) -> Any:
    """Rows that are running, and whose lease is over."""
    return _in_status(model, Status.RUNNING) & Q(retry_at__lte=Now())


def counts(rows: Any) -> dict[Value, int]:
    """How many rows of a queryset have each stored status, zeros too."""
    model = rows.model
    if is_more_than_filters(rows):
        rows = model._base_manager.using(rows.db).filter(pk__in=rows.values("pk"))
    found: dict[Value, int] = dict.fromkeys(options_of(model).values.values, 0)
    found.update(rows.order_by().values_list("status").annotate(reservable_count=Count("*")))
    return found


def _in_status(model: Any, role: Status) -> Any:
    statuses = options_of(model).values
    return Q(status=statuses.value(role)) if role in statuses else Q(pk__in=[])


def _when(model: Any, condition: If) -> Any:
    limit = options_of(model).max_attempts
    over: Any = Q(retry_at__lte=Now())
    return over & Q(attempts__lt=limit) if condition is If.OVER and limit is not None else over

"""Deleting rows of a queue that ended long ago."""

# Django has no types, and what pyright guesses of its sources is wrong.
# pyright: reportGeneralTypeIssues=false

from __future__ import annotations

from typing import Any

from django.db import connections
from django.db.transaction import atomic

from reservable import durations
from reservable.django.queue.clock import Moment
from reservable.django.queue.desks import ModelDesk
from reservable.leasing.columns import now, span

BATCH = 1000
"""Rows that are deleted in one transaction."""


def prune(queryset: Any, desk: ModelDesk, older_than: Any) -> int:
    """Delete the rows of a queryset that ended so long ago, in batches; how many of the model itself it was.

    By Django's own `delete()`, with what refers to them and its signals. Rows that somebody has locked wait for the
    next time.
    """
    cutoff = Moment(now() - span(durations.delay(older_than)))
    model = queryset.model
    ended = desk.queue.statuses.ended
    rows = queryset.using(desk.alias).filter(status__in=ended, finished_at__lte=cutoff).order_by("pk")
    features = connections[desk.alias].features
    own_table = ("self",) if features.has_select_for_update_of else ()
    key = [field.attname for field in model._meta.pk_fields]

    def batch() -> tuple[int, int]:
        with atomic(using=desk.alias):
            locked = rows
            if features.has_select_for_update_skip_locked:
                locked = rows.select_for_update(skip_locked=True, of=own_table)
            keys = [row.pk for row in locked.only(*key)[:BATCH]]
            _, deleted = rows.filter(pk__in=keys).delete()
            return len(keys), deleted.get(model._meta.label, 0)

    pruned, found = 0, BATCH
    while found == BATCH:
        found, deleted = desk.beside(batch)
        pruned += deleted
    return pruned

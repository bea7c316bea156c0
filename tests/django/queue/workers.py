"""What worker processes do with rows of Django's."""

from __future__ import annotations

from typing import Any

from tests.django.project import Databases, Router, configure
from tests.processes import tell


def drain_queue(number: int, databases: Databases, alias: str) -> list[int]:
    """Work on rows, several at a time, until none is left; returns which."""
    configure(databases)
    Router.writes = alias
    from django.db import connections

    from tests.django.shop.models import Job

    worked: list[int] = []
    while leases := Job.objects.claim(limit=7):
        for lease in leases:
            with lease:
                worked.append(lease.row.pk)
    connections.close_all()
    return worked


def work_until_told(databases: Databases, alias: str) -> Any:
    """Start the row, tell of it, and complete it when the lease is lost, or never."""
    configure(databases)
    Router.writes = alias
    from reservable import LeaseLost
    from tests.django.shop.models import Kept

    [lease] = Kept.objects.claim()
    try:
        with lease:
            tell(lease.attempt)
            lease.lost.wait()
    except LeaseLost:
        return "lost"
    return "completed"

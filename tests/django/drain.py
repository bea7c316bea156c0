"""What a worker process of the race does: take the next row, work on it, give it back."""

from __future__ import annotations

from tests.django.project import Databases, Router, configure


def drain(number: int, databases: Databases, alias: str) -> list[int]:
    """Work on rows until none is left; returns which."""
    configure(databases)
    Router.writes = alias
    from django.db import connections

    from tests.django.shop.models import Video

    worked: list[int] = []
    waiting = Video.objects.ready_for_download()
    while (video := waiting.first_reserved("drain", "5 minutes")) is not None:
        worked.append(video.pk)
        Video.objects.filter(pk=video.pk).update(path="done")
        assert video.release("drain")
    connections.close_all()
    return worked

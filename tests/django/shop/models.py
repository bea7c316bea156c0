"""Models of every kind that can be reserved."""

from __future__ import annotations

import uuid
from typing import Any

from django.db import models

from reservable import Backoff, QueueOptions
from reservable.django import Queued, QueuedManager, Reservable, ReservableManager, ReservableQuerySet


class Channel(models.Model):
    name = models.CharField(max_length=50)


class VideoQuerySet(ReservableQuerySet):
    def ready_for_download(self) -> Any:
        return self.filter(path="").order_by("place")


class Video(Reservable, models.Model):
    title = models.CharField(max_length=50, default="")
    path = models.CharField(max_length=50, default="")
    place = models.IntegerField(default=0)
    channel = models.ForeignKey(Channel, models.CASCADE, null=True, related_name="videos")

    objects = VideoQuerySet.as_manager()


class Short(Video):
    """A proxy."""

    class Meta:
        proxy = True


class Film(Video):
    """A child by multi-table inheritance."""

    minutes = models.IntegerField(default=0)


class Named(Reservable, models.Model):
    """An abstract base."""

    objects = ReservableManager()

    class Meta:
        abstract = True


class Book(Named):
    code = models.CharField(max_length=50, primary_key=True)


class Ticket(Named):
    id = models.UUIDField(primary_key=True, default=uuid.uuid4)


class Seat(Reservable, models.Model):
    """Without a manager of its own, and with a primary key of two columns."""

    pk = models.CompositePrimaryKey("hall", "number")
    hall = models.IntegerField()
    number = models.IntegerField()


class Day(Reservable, models.Model):
    """A primary key that SQL cannot write as Python does."""

    date = models.DateField(primary_key=True)
    done = models.BooleanField(default=False)


class Chosen(Reservable, models.Model):
    __reservable_name__ = "old name"


class Job(Queued):
    """A queue."""

    __queue__ = QueueOptions(max_attempts=2, backoff=Backoff(base="1 hour", factor=1, jitter=0))

    title = models.CharField(max_length=50, default="")
    channel = models.ForeignKey(Channel, models.CASCADE, null=True, blank=True)


class Kept(Reservable, Queued):
    """With a lease that tests can wait for, another primary key, and both mixins."""

    __queue__ = QueueOptions(lease=2)

    id = models.UUIDField(primary_key=True, default=uuid.uuid4)
    title = models.CharField(max_length=50, default="")
    data = models.JSONField(null=True)


class Stage(Queued):
    """With steps and with whole numbers for statuses."""

    __queue__ = QueueOptions(
        steps=("download", "convert"),
        statuses={"pending": 1, "running": 2, "succeeded": 3, "failed": 4, "cancelled": 5, "paused": 6},
    )


class Strict(Queued):
    """Whose leases are over when they are over."""

    __queue__ = QueueOptions(
        max_attempts=2, strict=True, guard="raise", backoff=Backoff(base="1 hour", factor=1, jitter=0)
    )


class QuickJob(Job):
    """A proxy of a queue."""

    class Meta:
        proxy = True


class LongJob(Job):
    """A child of a queue by multi-table inheritance."""

    minutes = models.IntegerField(default=0)


class Errand(Queued):
    """A queue whose default manager is another's."""

    title = models.CharField(max_length=50, default="")

    objects = models.Manager()
    queue = QueuedManager()


class Turn(Queued):
    """A key of two parts, and columns whose names have to be quoted."""

    pk = models.CompositePrimaryKey("hall", "number")
    hall = models.CharField(max_length=20, db_column="Hall: which")
    number = models.IntegerField()
    order = models.IntegerField(default=0)

    class Meta(Queued.Meta):
        abstract = False
        db_table = "shop Turn"


class Hour(Queued):
    """Keys that SQLite, at least, stores as another type."""

    key = models.DateTimeField(primary_key=True)


class Length(Queued):
    key = models.DurationField(primary_key=True)


class Price(Queued):
    key = models.DecimalField(primary_key=True, max_digits=12, decimal_places=6)


class Shelf(models.Model):
    code = models.CharField(max_length=10, unique=True)


class Item(Queued):
    """Points at something by another column than its key."""

    shelf = models.ForeignKey(Shelf, models.CASCADE, to_field="code", null=True)

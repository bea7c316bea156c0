"""Videos that a job downloads."""

from typing import Any, ClassVar

from django.db import models

from reservable.django import Reservable, ReservableQuerySet


class VideoQuerySet(ReservableQuerySet):
    def ready_for_download(self) -> Any:
        return self.filter(path="").order_by("id")


class Video(Reservable, models.Model):
    title = models.CharField(max_length=100)
    url = models.URLField()
    path = models.CharField(max_length=255, default="", blank=True)

    objects: ClassVar[Any] = VideoQuerySet.as_manager()

    def __str__(self) -> str:
        return str(self.title)

"""A job as a cron line runs it."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand

from tests.django.shop.models import Video


class Command(BaseCommand):
    def handle(self, *args: Any, **options: Any) -> None:
        while video := Video.objects.ready_for_download().first_reserved(self, "+6 hours"):
            video.path = f"/videos/{video.pk}.mp4"
            video.save()
            video.release(self)
            self.stdout.write(str(video.pk))

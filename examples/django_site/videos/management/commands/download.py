"""The job: `* * * * * python manage.py download`, on as many machines as you like."""

from pathlib import Path
from typing import Any
from urllib.request import urlopen

from django.conf import settings
from django.core.management.base import BaseCommand

from videos.models import Video


class Command(BaseCommand):
    help = "Downloads the videos that are not there yet, one after the other."

    def handle(self, *args: Any, **options: Any) -> None:
        while video := Video.objects.ready_for_download().first_reserved(self, "+6 hours"):
            try:
                video.path = fetch(video)
            except OSError as error:
                # It stays reserved, so that it is not tried again every minute.
                self.stderr.write(f"{video}: {error}")
                continue
            video.save(update_fields=["path"])
            video.release(self)
            self.stdout.write(f"{video}: {video.path}")


def fetch(video: Video) -> str:
    """Where the video has been saved. Raises `OSError`."""
    folder = Path(settings.MEDIA_ROOT)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{video.pk}.mp4"
    with urlopen(video.url, timeout=30) as answer:
        path.write_bytes(answer.read())
    return str(path)

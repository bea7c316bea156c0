"""The cron job: take the next video that nobody works on, download it, note what came. The file to copy.

Any number of these may run at once, on any number of machines: no two of them work on the same video. A video
that fails, or whose worker dies, keeps its reservation: nobody tries it again until the six hours are over.
"""

from __future__ import annotations

import hashlib
import logging
import os
from http.client import HTTPException
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

from sqlalchemy.orm import Session

from .model import Video

log = logging.getLogger(__name__)

CHUNK = 64 * 1024


def download_videos(session: Session, folder: Path) -> None:
    """Download until nothing is left. The session is made with `query_cls=ReservableQuery`."""
    while (video := next_video(session)) is not None:
        try:
            video.path, video.size, video.sha256 = download(video.url, folder, str(video.id))
        except (OSError, HTTPException) as error:
            session.rollback()
            log.warning("%s: %s", video.url, error)
            continue  # not released: that is the barrier against trying it again every minute
        session.commit()
        video.release("download")  # after the commit, so that whoever looks next sees that it is done


def next_video(session: Session) -> Video | None:
    """The first video without a file that nobody has reserved; it is ours now."""
    missing = session.query(Video).filter(Video.path.is_(None)).order_by(Video.id)
    # SQLAlchemy's types know nothing of query_cls; reservable.first_reserved(session, select(Video)...) is typed.
    video: Video | None = missing.first_reserved("download", "+6 hours")  # type: ignore[attr-defined]
    return video


def download(url: str, folder: Path, name: str) -> tuple[str, int, str]:
    """Fetch a URL into the folder; path, size in bytes and SHA-256 of what came. A file is there whole or not at all."""
    path = folder / f"{name}{Path(urlsplit(url).path).suffix}"
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    request = Request(url, headers={"User-Agent": f"downloader/{os.getpid()}"})
    size, digest = 0, hashlib.sha256()
    try:
        with urlopen(request, timeout=60) as response, part.open("wb") as file:
            while chunk := response.read(CHUNK):
                file.write(chunk)
                digest.update(chunk)
                size += len(chunk)
            expected = response.headers["Content-Length"]
        if expected is not None and size != int(expected):
            raise OSError(f"the connection broke after {size:,} of {int(expected):,} bytes")
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
    return str(path), size, digest.hexdigest()

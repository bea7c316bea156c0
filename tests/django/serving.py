"""A web server of Django's with a thread for each request, in a process of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from django.db import transaction
from django.http import HttpResponse
from django.urls import path

from tests.django.project import Databases, configure, migrate
from tests.processes import tell

let_go = threading.Event()


def serve(databases: Databases) -> None:
    """Make the tables, tell the port, and answer until the process is killed."""
    configure(databases, ROOT_URLCONF="tests.django.serving")
    migrate("default")
    from django.core.servers.basehttp import ThreadedWSGIServer, WSGIRequestHandler
    from django.core.wsgi import get_wsgi_application
    from django.db import connection

    from tests.django.shop.models import Video

    Video.objects.create(pk=1)
    connection.close()

    class Quiet(WSGIRequestHandler):
        def log_message(self, *_: Any) -> None:
            """Nothing."""

    server = ThreadedWSGIServer(("127.0.0.1", 0), Quiet)
    server.set_app(get_wsgi_application())
    tell(server.server_address[1])
    server.serve_forever()


def reserved(request: Any, key: str) -> str:
    """What comes of it, as text; `?read` reads first, as most views do."""
    from reservable import BackendError
    from tests.django.shop.models import Video

    video = Video.objects.get(pk=1) if "read" in request.GET else Video(pk=1)
    try:
        return str(video.reserve(key, "1h"))
    except BackendError as error:
        return f"BackendError: {error}"


def held(request: Any, key: str) -> str:
    """As `reserved`, which is told to the test; the request goes on until it is let go."""
    found = reserved(request, key)
    tell(found)
    if not let_go.wait(60):
        raise TimeoutError("nobody has let this request go")
    return found


def released(_: Any) -> str:
    """Let go whoever is held."""
    let_go.set()
    return "all"


def view(work: Callable[..., str], *, atomic: bool) -> Any:
    def answered(request: Any, **arguments: Any) -> HttpResponse:
        from django.db import connection

        assert connection.in_atomic_block is atomic
        return HttpResponse(work(request, **arguments))

    return answered if atomic else transaction.non_atomic_requests(answered)


urlpatterns = [
    path("reserve/<str:key>", view(reserved, atomic=True)),
    path("hold/<str:key>", view(held, atomic=True)),
    path("plain/reserve/<str:key>", view(reserved, atomic=False)),
    path("plain/hold/<str:key>", view(held, atomic=False)),
    path("let-go", view(released, atomic=False)),
]

"""Django takes psycopg2 where there is no Psycopg 3."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from tests.django.test_contract import plain

CODE = """
import json, sys
sys.modules["psycopg"] = None
from tests.django.project import Router, configure, pointed
configure(json.loads(sys.argv[1]))
Router.writes = "postgresql"
from django.db import connections, transaction
from tests.django.shop.models import Ticket, Video
assert connections["postgresql"].Database.__name__ == "psycopg2"
one, two = Video.objects.create(), Video.objects.create()
with transaction.atomic(using="postgresql"):
    assert one.reserve("k 100%", "1h")
    assert Video.objects.get(pk=one.pk).reserve("k 100%") is False
    assert Video.objects.order_by("pk").first_reserved("k 100%") == two
assert list(Video.objects.unreserved("k 100%")) == []
ticket = Ticket.objects.create()
assert Ticket.objects.first_reserved("k") == ticket
assert list(Ticket.objects.reserved("k")) == [ticket]
with one.reservation("long", 2, renew=True, wait=1) as held:
    end = held.expires_at
    while held.expires_at == end: pass
assert one.release("k 100%")
Video.objects.all().delete(); Ticket.objects.all().delete()
"""


def test_psycopg2(project: Any, clean: None, request: pytest.FixtureRequest) -> None:
    if "postgresql" not in project:
        request.getfixturevalue("postgresql_url")
    done = subprocess.run(
        [sys.executable, "-c", CODE, json.dumps(plain(project))],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr

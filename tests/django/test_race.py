from __future__ import annotations

from typing import Any

import pytest

from tests.django.drain import drain
from tests.django.test_contract import plain
from tests.processes import race


@pytest.mark.parametrize("kind", ["postgresql", "mariadb"])
def test_processes_work_on_every_row_exactly_once(
    kind: str, project: Any, clean: None, request: pytest.FixtureRequest
) -> None:
    if kind not in project:
        request.getfixturevalue(f"{kind}_url")
    from tests.django.shop.models import Video

    Video.objects.using(kind).bulk_create([Video(place=place) for place in range(300)])
    every = sorted(Video.objects.using(kind).values_list("pk", flat=True))
    worked = race(drain, plain(project), kind, processes=6, within=120)
    assert sorted(pk for process in worked for pk in process) == every

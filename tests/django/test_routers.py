from __future__ import annotations

from typing import Any

import pytest

from reservable import NotSupported
from tests.django.project import pointed

pytestmark = pytest.mark.usefixtures("clean")


def model() -> Any:
    from tests.django.shop.models import Video

    return Video


def names(alias: str) -> list[str]:
    from reservable.django.models import Reservation

    return sorted(Reservation.objects.using(alias).values_list("name", flat=True))


def test_reads_may_go_to_a_replica_and_reservations_never() -> None:
    """`other` is a replica that lags: it has the rows as they were, and no reservations."""
    with pointed(writes="default"):
        one, two = model().objects.create(), model().objects.create()
    with pointed(writes="other"):
        model().objects.create(pk=one.pk)
        model().objects.create(pk=two.pk)
    with pointed(writes="default", reads="other"):
        model().objects.using("default").filter(pk=one.pk).update(path="done")
        old = model().objects.get(pk=one.pk)
        assert (old._state.db, old.path) == ("other", "")
        assert old.reserve("k")
        assert names("default") == [f"shop.video:{one.pk}:k"]
        assert names("other") == []
        assert old.is_reserved("k")
        assert old.release("k")
        found = model().objects.ready_for_download().first_reserved("k")
        assert found == two
        assert found._state.db == "default"
        assert list(model().objects.reserved("k")) == [two]
        assert model().objects.filter(path="").unreserved("k").order_by("pk").count() == 0
        with pytest.raises(NotSupported, match="'other'"):
            list(model().objects.using("other").reserved("k"))
        assert found.release("k")


def test_using_is_honoured_and_the_reservations_have_one_place() -> None:
    with pointed(writes="default"):
        one = model().objects.using("other").create()
        assert model().objects.first_reserved("k") is None
        found = model().objects.using("other").first_reserved("k")
        assert found == one
        assert found._state.db == "other"
        assert names("default") == [f"shop.video:{one.pk}:k"]
        assert names("other") == []
        assert model().objects.using("other").first_reserved("k") is None


def test_the_model_of_the_reservations_has_a_database_of_its_own() -> None:
    with pointed(writes="default", reservations="other"):
        videos = [model().objects.create() for _ in range(15)]
        assert videos[0].reserve("k")
        assert model().objects.take_reserved("k", limit=20) == videos[1:]
        assert len(names("other")) == 15
        assert names("default") == []
        with pytest.raises(NotSupported, match=r"'other'.*'default'"):
            list(model().objects.unreserved("k"))


def test_prune_and_the_command_go_where_reservations_live() -> None:
    from io import StringIO

    from django.core.management import CommandError, call_command

    from tests.waiting import eventually

    with pointed(writes="default", reservations="other"):
        one = model().objects.create()
        one.reserve("brief", 0.01)
        one.reserve("k", "1h")
        eventually(lambda: not one.is_reserved("brief"))
        out = StringIO()
        call_command("reservable", "list", "shop.video:*", stdout=out)
        [line] = out.getvalue().splitlines()
        assert line.startswith(f"shop.video:{one.pk}:k\t")
        call_command("reservable", "release", f"shop.video:{one.pk}:k", stdout=out)
        assert not one.is_reserved("k")
        with pytest.raises(CommandError, match="nobody holds"):
            call_command("reservable", "release", f"shop.video:{one.pk}:k", stdout=out)
        assert len(names("other")) == 2
        call_command("reservable", "prune", stdout=out)
        assert out.getvalue().endswith("removed 2\n")
        assert names("other") == []

"""Under Django's own test classes: each test begins without reservations, wherever they live."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from tests.django.conftest import Twice

pytestmark = pytest.mark.usefixtures("clean")


def body(case: Any) -> None:
    """What a user's test does; leaves something reserved behind."""
    from django.db import transaction

    from tests.django.shop.models import Video

    video = Video.objects.create(pk=1, title="x")
    other = Video.objects.create(pk=2)
    assert video.reserve("k", "1h")
    assert not Video.objects.get(pk=1).reserve("k")
    assert list(Video.objects.reserved("k")) == [video]
    assert list(Video.objects.unreserved("k")) == [other]
    assert Video.objects.first_reserved("k") == other
    assert Video.objects.first_reserved("k") is None
    with transaction.atomic(using=min(case.databases)):
        video.title = "y"
        video.save()
        assert not Video.objects.get(pk=1).reserve("k")
    assert video.release("k")
    assert video.reserve("k")


@pytest.mark.parametrize("kind", ["default", "postgresql", "mariadb", "memory"])
def test_in_a_testcase(kind: str, twice: Twice) -> None:
    twice("TestCase", kind, body)


@pytest.mark.parametrize("kind", ["default", "postgresql", "mariadb", "memory"])
def test_after_a_rollback_in_a_testcase(kind: str, twice: Twice) -> None:
    """The test's transaction is the database, and a savepoint in it takes back what a real rollback leaves."""

    def rolled_back(case: Any) -> None:
        from django.db import transaction

        from tests.django.shop.models import Video

        video = Video.objects.create()
        with pytest.raises(ZeroDivisionError), transaction.atomic(using=kind):
            assert video.reserve("k")
            raise ZeroDivisionError
        assert video.is_reserved("k") == (kind == "memory")

    twice("TestCase", kind, rolled_back)


@pytest.mark.parametrize("kind", ["postgresql", "mariadb", "memory"])
def test_in_a_transactiontestcase(kind: str, twice: Twice) -> None:
    twice("TransactionTestCase", kind, body)


SUITE = """
import sys, time
from tests.django.project import configure, database

configure({"default": database(sys.argv[1])})
from django.db import transaction
from django.test import TestCase, TransactionTestCase
from django.test.runner import DiscoverRunner
from tests.django.shop.models import Video


class InTransactions(TransactionTestCase):
    def test_beside_one(self):
        with transaction.atomic():
            assert Video.objects.create().reserve("k")

    def test_kept_alive(self):
        with Video.objects.create().reservation("k", 0.6, renew=True) as held:
            first = held.expires_at
            while held.expires_at == first:
                time.sleep(0.01)


class Runner(DiscoverRunner):
    def build_suite(self, *_, **__):
        suite = self.test_suite()
        suite.addTests(self.test_loader.loadTestsFromTestCase(InTransactions))
        return suite


sys.exit(Runner(verbosity=1, interactive=False).run_tests([]))
"""


@pytest.mark.parametrize("kind", ["postgresql", "mariadb"])
def test_a_test_runner_can_drop_its_database_when_the_tests_are_over(
    kind: str, request: pytest.FixtureRequest
) -> None:
    url = request.getfixturevalue(f"{kind}_url")
    ran = subprocess.run(
        [sys.executable, "-c", SUITE, url], capture_output=True, text=True, timeout=120, check=False
    )
    assert ran.returncode == 0, ran.stderr
    assert "Ran 2 tests" in ran.stderr

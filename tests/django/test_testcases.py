"""Under Django's own test classes: each test begins without reservations, wherever they live."""

from __future__ import annotations

import unittest
from typing import Any

import pytest

from tests.django.project import pointed

pytestmark = pytest.mark.usefixtures("clean")


def run(case: Any) -> None:
    outcome = unittest.TestResult()
    unittest.defaultTestLoader.loadTestsFromTestCase(case).run(outcome)
    assert outcome.testsRun == 2
    assert not outcome.errors + outcome.failures, [text for _, text in outcome.errors + outcome.failures]


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
def test_in_a_testcase(kind: str, project: Any, request: pytest.FixtureRequest) -> None:
    from django.test import TestCase

    if kind not in project:
        request.getfixturevalue(f"{kind}_url")

    class Case(TestCase):
        databases = {kind}  # noqa: RUF012 - as Django's manual writes it
        test_one = body
        test_two = body

    with pointed(writes=kind):
        run(Case)


@pytest.mark.parametrize("kind", ["postgresql", "mariadb", "memory"])
def test_in_a_transactiontestcase(kind: str, project: Any, request: pytest.FixtureRequest) -> None:
    from django.test import TransactionTestCase

    if kind not in project:
        request.getfixturevalue(f"{kind}_url")

    class Case(TransactionTestCase):
        databases = {kind}  # noqa: RUF012 - as Django's manual writes it
        test_one = body
        test_two = body

    with pointed(writes=kind):
        run(Case)

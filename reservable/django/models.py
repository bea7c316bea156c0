"""The table of reservations, for Django's tools: one row a name, as every other user of the table sees it."""

from __future__ import annotations

from typing import ClassVar

from django.db import models

from reservable.backends.database.schema import DEFAULT_TABLE, NAME_LENGTH, OWNER_LENGTH, TOKEN_LENGTH
from reservable.django.fields import ExactField


class Reservation(models.Model):
    """One name, and who holds it: a row whose `until` is past is over.

    Only to be looked at: reservations are made by the verbs of `Reservable`. Where its router sends the writes of
    this model, there reservations live.
    """

    name = ExactField(max_length=NAME_LENGTH, primary_key=True)
    token = ExactField(max_length=TOKEN_LENGTH)
    owner = models.CharField(max_length=OWNER_LENGTH)
    fence = models.BigIntegerField()
    since = models.BigIntegerField()
    until = models.BigIntegerField()

    class Meta:
        db_table = DEFAULT_TABLE
        default_permissions = ("view",)
        permissions: ClassVar[list[tuple[str, str]]] = [("release_reservation", "Can release reservation")]

    def __str__(self) -> str:
        return str(self.name)

"""The columns of the table of reservations that are compared byte for byte."""

from __future__ import annotations

from typing import Any

from django.db import models

_EXACT = {"postgresql": "C", "mysql": "ascii_bin"}


class ExactField(models.CharField):
    """Text whose collation is that of `reservable.backends.database.schema`, whatever the database's own is.

    A server that folds case would make one reservation out of two.
    """

    def check(self, **options: Any) -> Any:
        """All that Django has to say but mysql.W003, which fears for the length of the key.

        It is about 255 characters of four bytes; a character of this collation is one byte, and InnoDB's keys have 3072.
        """
        return [found for found in super().check(**options) if found.id != "mysql.W003"]

    def db_parameters(self, connection: Any) -> Any:
        parameters = super().db_parameters(connection)
        parameters["collation"] = _EXACT.get(connection.vendor)
        return parameters

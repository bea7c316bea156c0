"""The columns of the table of reservations that are compared byte for byte."""

from __future__ import annotations

from typing import Any

from django.db import models

_EXACT = {"postgresql": "C", "mysql": "ascii_bin"}


class ExactField(models.CharField):
    """Text whose collation is that of `reservable.backends.database.schema`, whatever the database's own is.

    A server that folds case would make one reservation out of two.
    """

    def db_parameters(self, connection: Any) -> Any:
        parameters = super().db_parameters(connection)
        parameters["collation"] = _EXACT.get(connection.vendor)
        return parameters

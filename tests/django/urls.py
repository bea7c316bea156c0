"""Views that reserve."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse
from django.urls import path

from tests.django.shop.models import Video


def reserve(request: Any, pk: int) -> HttpResponse:
    return HttpResponse(str(Video.objects.get(pk=pk).reserve("download", "1h")))


def fail(request: Any, pk: int) -> HttpResponse:
    Video.objects.get(pk=pk).reserve("download", "1h")
    raise ZeroDivisionError


async def areserve(request: Any, pk: int) -> HttpResponse:
    video = await Video.objects.aget(pk=pk)
    return HttpResponse(str(await video.areserve("download", "1h")))


async def wrongly(request: Any, pk: int) -> HttpResponse:
    video = await Video.objects.aget(pk=pk)
    return HttpResponse(str(video.reserve("download", "1h")))


urlpatterns = [
    path("reserve/<int:pk>", reserve),
    path("fail/<int:pk>", fail),
    path("areserve/<int:pk>", areserve),
    path("wrongly/<int:pk>", wrongly),
]

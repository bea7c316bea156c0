"""The admin twice: the default site, and one of a project's own."""

from __future__ import annotations

from django.contrib import admin
from django.urls import path

from reservable.django.admin import ReservationAdmin
from reservable.django.models import Reservation
from reservable.django.queue.admin import QueuedAdmin
from tests.django.shop.models import Book, Errand, Film, Job, LongJob, Short, Video

admin.site.register([Video, Book])


@admin.register(Job)
class JobAdmin(QueuedAdmin, admin.ModelAdmin):
    list_display = ("title",)
    fields = ("title", "priority")


own = admin.AdminSite(name="own")
own.register(Reservation, ReservationAdmin)
own.register([Short, Film])


@admin.register(LongJob, Errand, site=own)
class OwnAdmin(QueuedAdmin, admin.ModelAdmin):
    list_display = ("title",)


urlpatterns = [path("admin/", admin.site.urls), path("own/", own.urls)]

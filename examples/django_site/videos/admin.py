"""The page of the videos. That of the reservations comes with `reservable.django`."""

from django.contrib import admin

from videos.models import Video


@admin.register(Video)
class VideoAdmin(admin.ModelAdmin):
    list_display = ("title", "url", "path")
    search_fields = ("title",)

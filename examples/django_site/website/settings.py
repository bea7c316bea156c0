"""As `django-admin startproject` makes them, with `reservable.django` and the app of this site."""

import os
from pathlib import Path

FOLDER = Path(os.environ.get("SITE_FOLDER", Path(__file__).parents[1]))
"""Where the database and the downloads are."""

SECRET_KEY = os.environ.get("SITE_SECRET_KEY", "for an example alone")
DEBUG = True
ALLOWED_HOSTS = ["localhost", "127.0.0.1", "testserver"]
ROOT_URLCONF = "website.urls"

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "reservable.django",
    "videos",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
]

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]

DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": FOLDER / "site.sqlite",
        "OPTIONS": {"timeout": 30},
    }
}

DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
MEDIA_ROOT = FOLDER / "media"
STATIC_URL = "static/"
TIME_ZONE = "UTC"
USE_TZ = True

_REQUEST_LOG = {"level": os.environ.get("SITE_REQUEST_LOG", "INFO")}
LOGGING = {
    "version": 1,
    "incremental": True,
    "loggers": {"django.server": _REQUEST_LOG, "django.request": _REQUEST_LOG},
}
"""As Django's own, from this level on."""

"""A shop with SQLite, PostgreSQL and MariaDB. SHOP_FOLDER is the folder of its files, SHOP_ALIAS the database that it uses."""

import os
from urllib.parse import urlsplit

FOLDER = os.environ["SHOP_FOLDER"]
SECRET_KEY = "of the tests"
DEBUG = False
ALLOWED_HOSTS = ["*"]
ROOT_URLCONF = "project.urls"

DEFAULT_AUTO_FIELD = "frazil.django.SnowflakeAutoField"
FRAZIL = os.environ.get("SHOP_FRAZIL", f"standard store=file:{FOLDER}/ids")

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.humanize",
    "django.contrib.messages",
    "django.contrib.sessions",
    "rest_framework",
    "frazil.django",
    "shop",
    "ledger",
]
AUTH_USER_MODEL = "shop.Customer"
MIDDLEWARE = [
    "django.contrib.sessions.middleware.SessionMiddleware",
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
STATIC_URL = "static/"
USE_TZ = True
TIME_ZONE = "UTC"


def server(engine, variable):
    url = urlsplit(os.environ[variable])
    return {
        "ENGINE": f"django.db.backends.{engine}",
        "HOST": url.hostname,
        "PORT": url.port,
        "USER": url.username,
        "PASSWORD": url.password,
        "NAME": url.path[1:],
    }


DATABASES = {
    "default": {"ENGINE": "django.db.backends.sqlite3", "NAME": f"{FOLDER}/shop.sqlite3", "OPTIONS": {"timeout": 60}},
    "postgresql": server("postgresql", "FRAZIL_TEST_POSTGRESQL"),
    "mariadb": server("mysql", "FRAZIL_TEST_MARIADB"),
}
DATABASE_ROUTERS = ["project.routing.Router"]

CELERY_BROKER_URL = CELERY_RESULT_BACKEND = os.environ["FRAZIL_TEST_REDIS"]

"""Django's settings. Three lines of them are frazil's."""

import os
from urllib.parse import unquote, urlsplit

DEFAULT_AUTO_FIELD = "frazil.django.SnowflakeAutoField"
FRAZIL = os.environ["FRAZIL"]
INSTALLED_APPS = ["frazil.django", "rest_framework", "drf_spectacular", "board"]

url = urlsplit(os.environ["DATABASE_URL"])
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.postgresql",
        "HOST": url.hostname,
        "PORT": url.port,
        "USER": unquote(url.username or ""),
        "PASSWORD": unquote(url.password or ""),
        "NAME": url.path[1:],
        # A connection that a restart of the database has cut is replaced before it is used.
        "CONN_MAX_AGE": 60,
        "CONN_HEALTH_CHECKS": True,
    }
}

SECRET_KEY = "the board signs nothing"
ALLOWED_HOSTS = ["127.0.0.1", "localhost"]
ROOT_URLCONF = "board.urls"
WSGI_APPLICATION = "board.wsgi.application"
MIDDLEWARE = ["django.middleware.common.CommonMiddleware"]
# The API's paths have no slash at their ends.
APPEND_SLASH = False

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [],
    "DEFAULT_PERMISSION_CLASSES": [],
    "UNAUTHENTICATED_USER": None,
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["rest_framework.parsers.JSONParser"],
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
}
SPECTACULAR_SETTINGS = {"TITLE": "Message board", "VERSION": "1"}

"""The paths of the page and the API."""

from pathlib import Path

from django.http import HttpRequest, HttpResponse
from django.urls import path
from drf_spectacular.views import SpectacularJSONAPIView

from . import api

PAGE = Path(__file__).parent.parent / "index.html"


def page(request: HttpRequest) -> HttpResponse:
    return HttpResponse(PAGE.read_bytes())


urlpatterns = [
    path("", page),
    path("openapi.json", SpectacularJSONAPIView.as_view()),
    path("api/topics", api.Topics.as_view()),
    path("api/messages", api.Messages.as_view()),
    # <snowflake:id> would answer 404 to values that are not IDs; this returns the reason.
    path("api/messages/<str:id>", api.OneMessage.as_view()),
]

import os

from django.http import JsonResponse
from django.shortcuts import get_object_or_404
from frazil import FrazilError
from frazil.django import SnowflakeJSONEncoder

from .models import Item
from .tasks import insert


def item(request, id):
    found = get_object_or_404(Item, pk=id)
    return JsonResponse({"id": found.pk, "name": found.name, "price": found.price}, encoder=SnowflakeJSONEncoder)


def mint(request, count):
    """Inserts rows, half of them one at a time. Returns their keys and the process ID."""
    try:
        return JsonResponse({"pid": os.getpid(), "ids": insert(count)}, encoder=SnowflakeJSONEncoder)
    except FrazilError as error:
        return JsonResponse({"error": error.name, "why": str(error)}, status=500)

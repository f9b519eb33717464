import os
import uuid

from celery import shared_task
from celery.signals import worker_process_shutdown
from frazil.django import close_snowflake

from .models import Item


@worker_process_shutdown.connect
def give_back(**_):
    close_snowflake()


def insert(count):
    names = [str(uuid.uuid4()) for _ in range(count)]
    items = Item.objects.bulk_create(Item(name=name) for name in names[: count // 2])
    items += [Item.objects.create(name=name) for name in names[count // 2 :]]
    return [item.pk for item in items]


@shared_task
def mint(count):
    return os.getpid(), insert(count)

"""Two tables whose keys are IDs of frazil, and a foreign key between them. The settings define the keys, not the models."""

import datetime

from django.db import models
from frazil.django import SnowflakeManager, created_at, get_layout


class Topic(models.Model):
    title = models.CharField(max_length=100)

    class Meta:
        db_table = "topics"


class Message(models.Model):
    topic = models.ForeignKey(Topic, models.CASCADE)
    author = models.CharField(max_length=100)
    text = models.CharField(max_length=2000)

    objects = SnowflakeManager()

    class Meta:
        db_table = "messages"

    # The time and the node number are in the ID.
    @property
    def created(self) -> datetime.datetime:
        return created_at(self)

    @property
    def node(self) -> int:
        return get_layout().decode(self.pk).node

"""An application that moves from counters to IDs. Its first migration has AutoField and BigAutoField."""

from django.db import models
from frazil.django import SnowflakeAutoField


class Account(models.Model):
    id = SnowflakeAutoField(primary_key=True)
    name = models.CharField(max_length=50)


class Label(models.Model):
    id = SnowflakeAutoField(primary_key=True)
    name = models.CharField(max_length=50)


class Entry(models.Model):
    id = SnowflakeAutoField(primary_key=True)
    account = models.ForeignKey(Account, models.CASCADE)
    before = models.ForeignKey("self", models.CASCADE, null=True)
    labels = models.ManyToManyField(Label)
    amount = models.IntegerField()

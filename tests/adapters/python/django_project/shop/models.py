from django.contrib.auth.models import AbstractUser
from django.contrib.contenttypes.fields import GenericForeignKey, GenericRelation
from django.contrib.contenttypes.models import ContentType
from django.db import models
from frazil.django import SnowflakeAutoField, SnowflakeManager


class Customer(AbstractUser):
    """The user model, swapped."""


class Profile(models.Model):
    customer = models.OneToOneField(Customer, models.CASCADE, primary_key=True)
    text = models.TextField()


class Named(models.Model):
    """An abstract model with its own key."""

    number = SnowflakeAutoField(primary_key=True)
    name = models.CharField(max_length=100, unique=True)

    class Meta:
        abstract = True

    def __str__(self):
        return self.name


class Category(Named):
    pass


class Tag(Named):
    pass


class Item(models.Model):
    category = models.ForeignKey(Category, models.CASCADE, null=True, blank=True, related_name="items")
    name = models.CharField(max_length=100, unique=True)
    price = models.IntegerField(default=0)
    tags = models.ManyToManyField(Tag, blank=True)
    comments = GenericRelation("Comment", content_type_field="kind")

    objects = SnowflakeManager()

    def __str__(self):
        return self.name


class Book(Item):
    """A model with its own table."""

    pages = models.IntegerField(default=0)


class Cheap(Item):
    class Meta:
        proxy = True


class Comment(models.Model):
    kind = models.ForeignKey(ContentType, models.CASCADE)
    object_id = models.BigIntegerField()
    about = GenericForeignKey("kind", "object_id")
    text = models.TextField()

    class Meta:
        indexes = [models.Index(fields=["kind", "object_id"], name="shop_comment_about")]

"""Django's own test classes with IDs as keys. test_django.py runs them by `manage.py test`."""

from django.db import transaction
from django.test import TestCase, TransactionTestCase

from .models import Category, Item


class Data(TestCase):
    @classmethod
    def setUpTestData(cls):
        cls.category = Category.objects.create(name="books")
        cls.items = Item.objects.bulk_create(Item(name=f"item {n}", category=cls.category) for n in range(10))

    def test_one(self):
        self.assertEqual({item.pk for item in self.category.items.all()}, {item.pk for item in self.items})
        self.category.name = "changed"
        self.category.save()

    def test_other(self):
        self.assertEqual(self.category.name, "books")
        self.assertEqual(Category.objects.get(pk=self.category.pk).name, "books")


class Sequences(TransactionTestCase):
    # TransactionTestCase resets every sequence of the database. These tables have none.
    reset_sequences = True

    def test_one(self):
        with self.assertRaises(RuntimeError), transaction.atomic():
            lost = Item.objects.create(name="lost")
            raise RuntimeError
        self.assertGreater(Item.objects.create(name="kept").pk, lost.pk)

    def test_other(self):
        self.assertEqual(Item.objects.count(), 0)

"""The shop in django-ninja, whose ModelSchemas show keys as IDs."""

from frazil.pydantic import SnowflakeId
from ninja import ModelSchema, NinjaAPI, Schema

from .models import Book, Category, Item, Profile

api = NinjaAPI()


class ItemSchema(ModelSchema):
    class Meta:
        model = Item
        fields = ["id", "name", "price", "category", "tags"]


class ItemIn(ModelSchema):
    class Meta:
        model = Item
        fields = ["name", "category", "tags"]


class CategorySchema(ModelSchema):
    items: list[SnowflakeId]

    class Meta:
        model = Category
        fields = ["number"]

    @staticmethod
    def resolve_items(category):
        return [item.pk for item in category.items.all()]


class BookSchema(ModelSchema):
    class Meta:
        model = Book
        fields = "__all__"
        exclude = ["comments"]


class ProfileSchema(ModelSchema):
    class Meta:
        model = Profile
        fields = ["customer"]


class Handmade(Schema):
    id: SnowflakeId
    next: SnowflakeId | None = None


@api.get("/items/{snowflake:id}", response=ItemSchema)
def one(request, id: SnowflakeId):
    return Item.objects.get(pk=id)


@api.get("/items", response=list[ItemSchema])
def many(request, after: SnowflakeId = 0):
    return Item.objects.filter(pk__gt=after)


@api.post("/items", response=ItemSchema)
def make(request, given: ItemIn):
    item = Item.objects.create(name=given.name, category_id=given.category)
    item.tags.set(given.tags)
    return item


@api.get("/categories/{id}", response=CategorySchema)
def category(request, id: SnowflakeId):
    return Category.objects.get(pk=id)


@api.get("/books", response=list[BookSchema])
def books(request):
    return Book.objects.all()


@api.get("/profiles", response=list[ProfileSchema])
def profiles(request):
    return Profile.objects.all()


@api.get("/handmade/{int:id}", response=Handmade)
def handmade(request, id: SnowflakeId):
    return {"id": id}


@api.get("/model/{id}", response=Handmade)
def model(request, id: SnowflakeId):
    return Handmade(id=id, next=id)


@api.post("/echo", response=Handmade)
def echo(request, given: ItemIn):
    return {"id": given.category, "next": given.tags[0]}

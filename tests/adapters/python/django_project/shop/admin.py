from django.contrib import admin

from .models import Category, Item, Tag


class ItemInline(admin.TabularInline):
    model = Item
    fields = ["name", "price"]
    extra = 1


@admin.register(Category)
class CategoryAdmin(admin.ModelAdmin):
    search_fields = ["name"]
    inlines = [ItemInline]


@admin.register(Item)
class ItemAdmin(admin.ModelAdmin):
    autocomplete_fields = ["category"]
    raw_id_fields = ["tags"]
    list_display = ["id", "name", "price"]
    list_editable = ["price"]
    list_filter = ["category"]


admin.site.register(Tag)

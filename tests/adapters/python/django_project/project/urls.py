from django.contrib import admin
from django.urls import path
from shop import views
from shop.api import api

urlpatterns = [
    path("admin/", admin.site.urls),
    path("ninja/", api.urls),
    path("items/<snowflake:id>/", views.item, name="item"),
    path("mint/<int:count>/", views.mint),
]

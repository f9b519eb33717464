from django.contrib import admin
from django.urls import path
from shop import views

urlpatterns = [
    path("admin/", admin.site.urls),
    path("items/<snowflake:id>/", views.item, name="item"),
    path("mint/<int:count>/", views.mint),
]

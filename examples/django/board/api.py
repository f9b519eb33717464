"""The API, in Django REST framework. Its serializers show IDs as strings by themselves, because frazil.django is in INSTALLED_APPS."""

from typing import Any

from drf_spectacular.utils import extend_schema
from frazil.django.rest_framework import SnowflakeField
from rest_framework import generics, serializers
from rest_framework.exceptions import NotFound
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from .models import Message, Topic


class Text(serializers.CharField):
    """A field for text; CharField also accepts numbers."""

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            self.fail("invalid")
        return super().to_internal_value(data)


class TopicSerializer(serializers.ModelSerializer):
    title = Text(max_length=100)

    class Meta:
        model = Topic
        fields = ["id", "title"]


class MessageSerializer(serializers.ModelSerializer):
    author = Text(max_length=100)
    text = Text(max_length=2000)
    created = serializers.DateTimeField(read_only=True)
    node = serializers.IntegerField(read_only=True)

    class Meta:
        model = Message
        fields = ["id", "topic", "author", "text", "created", "node"]


class Wanted(serializers.Serializer):
    """The wanted messages: of a topic, from `since` on and before `until`; `before` is the last ID of the page before."""

    topic = SnowflakeField(required=False)
    since = serializers.DateTimeField(required=False)
    until = serializers.DateTimeField(required=False)
    before = SnowflakeField(required=False)
    limit = serializers.IntegerField(min_value=1, max_value=1000, default=50)


class Topics(generics.ListCreateAPIView):
    queryset = Topic.objects.order_by("title")[:1000]
    serializer_class = TopicSerializer


class Messages(generics.ListCreateAPIView):
    serializer_class = MessageSerializer
    queryset = Message.objects.all()

    @extend_schema(parameters=[Wanted])
    def get(self, request: Request) -> Response:
        """The newest messages first."""
        wanted = Wanted(data=request.query_params)
        wanted.is_valid(raise_exception=True)
        query = wanted.validated_data
        # Bounds of the key: a day is found by the primary key's index, without a column for the time.
        found = Message.objects.created_between(query.get("since"), query.get("until")).order_by("-pk")
        if "topic" in query:
            found = found.filter(topic=query["topic"])
        if "before" in query:
            found = found.filter(pk__lt=query["before"])
        return Response(MessageSerializer(found[: query["limit"]], many=True).data)


class OneMessage(APIView):
    @extend_schema(responses=MessageSerializer)
    def get(self, request: Request, id: str) -> Response:
        message = Message.objects.filter(pk=SnowflakeField().run_validation(id)).first()
        if message is None:
            raise NotFound(f"unknown message {id}")
        return Response(MessageSerializer(message).data)

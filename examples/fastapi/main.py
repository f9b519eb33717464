"""A message board: IDs are integers in Python and PostgreSQL, and strings wherever JavaScript reads them."""

import contextlib
import pathlib
from collections.abc import AsyncGenerator, Iterator
from datetime import datetime
from typing import Annotated

import frazil
from fastapi import Depends, FastAPI, HTTPException, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, JSONResponse
from frazil.pydantic import SnowflakeId, SnowflakeIdIn
from pydantic import AwareDatetime, BaseModel, StringConstraints
from sqlalchemy import orm, select

import models
from models import ids


@contextlib.asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncGenerator[None]:
    yield
    # The last request is answered, so another process may have the node number.
    await ids.aclose()


app = FastAPI(title="Message board", lifespan=lifespan)


@app.exception_handler(RequestValidationError)
def refuse(request: Request, error: RequestValidationError) -> JSONResponse:
    """Reports each error and its place, without the value, which may be text that no answer can hold, such as half of a surrogate pair."""
    reasons = [{"loc": reason["loc"], "msg": reason["msg"]} for reason in error.errors()]
    return JSONResponse({"detail": reasons}, status_code=422)


def session() -> Iterator[orm.Session]:
    with models.Session() as opened:
        yield opened


Session = Annotated[orm.Session, Depends(session)]
# PostgreSQL accepts no NUL characters.
Line = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=100, pattern=r"^[^\x00]*$")]
Words = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=2000, pattern=r"^[^\x00]*$")]


class NewTopic(BaseModel):
    title: Line


class Topic(NewTopic):
    id: SnowflakeId


class NewMessage(BaseModel):
    topic: SnowflakeIdIn
    author: Line
    text: Words


class Message(BaseModel):
    id: SnowflakeId
    topic: SnowflakeId
    author: str
    text: str
    created: datetime
    node: int


def show(row: models.Message) -> Message:
    """A message in the API; the time and the node number are in the ID."""
    parts = ids.layout.decode(row.id)
    return Message(id=row.id, topic=row.topic_id, author=row.author, text=row.text, created=parts.time, node=parts.node)


def first_id(time: datetime) -> int:
    """The smallest ID of a millisecond: smaller IDs were made before it."""
    try:
        return ids.layout.min_id(time)
    except (frazil.errors.BeforeEpochError, frazil.errors.LayoutExpiredError) as error:
        raise HTTPException(422, str(error)) from error


@app.post("/api/topics", status_code=201)
def create_topic(new: NewTopic, session: Session) -> Topic:
    row = models.Topic(title=new.title)
    session.add(row)
    session.commit()
    return Topic(id=row.id, title=row.title)


@app.get("/api/topics")
def list_topics(session: Session) -> list[Topic]:
    rows = session.scalars(select(models.Topic).order_by(models.Topic.title).limit(1000))
    return [Topic(id=row.id, title=row.title) for row in rows]


@app.post("/api/messages", status_code=201)
def create_message(new: NewMessage, session: Session) -> Message:
    if session.get(models.Topic, new.topic) is None:
        raise HTTPException(422, f"unknown topic {new.topic}")
    row = models.Message(topic_id=new.topic, author=new.author, text=new.text)
    session.add(row)
    session.commit()
    return show(row)


@app.get("/api/messages")
def list_messages(
    session: Session,
    topic: SnowflakeId | None = None,
    since: AwareDatetime | None = None,
    until: AwareDatetime | None = None,
    before: SnowflakeId | None = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 50,
) -> list[Message]:
    """The newest messages first, from `since` on and before `until`; `before` is the last ID of the page before."""
    query = select(models.Message).order_by(models.Message.id.desc()).limit(limit)
    if topic is not None:
        query = query.where(models.Message.topic_id == topic)
    if since is not None:
        query = query.where(models.Message.id >= first_id(since))
    if until is not None:
        query = query.where(models.Message.id < first_id(until))
    if before is not None:
        query = query.where(models.Message.id < before)
    return [show(row) for row in session.scalars(query)]


@app.get("/api/messages/{id}")
def get_message(id: SnowflakeId, session: Session) -> Message:
    row = session.get(models.Message, id)
    if row is None:
        raise HTTPException(404, f"unknown message {id}")
    return show(row)


@app.get("/", include_in_schema=False)
def page() -> FileResponse:
    return FileResponse(pathlib.Path(__file__).with_name("index.html"))

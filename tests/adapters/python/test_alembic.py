"""Alembic's own command line over models with columns of IDs."""

import json
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import sql
from sqlalchemy import MetaData, create_engine, inspect, text

MODELS = """
    import frazil
    from frazil.sqlalchemy import SnowflakeType
    from sqlalchemy import ForeignKey, String
    from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

    ids = frazil.Snowflake("standard", node=1)

    class Base(DeclarativeBase):
        pass

    class User(Base):
        __tablename__ = "user_"
        id: Mapped[int] = mapped_column(SnowflakeType, primary_key=True, default=ids)
        name: Mapped[str] = mapped_column(String(50))

    class Item(Base):
        __tablename__ = "item"
        id: Mapped[int] = mapped_column(SnowflakeType, primary_key=True, default=ids)
        user_id: Mapped[int] = mapped_column(ForeignKey("user_.id"))
        parent_id: Mapped[int | None] = mapped_column(ForeignKey("item.id"))
"""


class Project:
    """A folder made by `alembic init`, whose env.py knows the models."""

    def __init__(self, folder, url, commands):
        self.folder, self.engine, self.commands = folder, create_engine(url), commands
        (folder / "models.py").write_text(textwrap.dedent(MODELS))
        self.run("init", "migrations")
        ini, env = folder / "alembic.ini", folder / "migrations/env.py"
        ini.write_text(
            "\n".join(f"sqlalchemy.url = {url}" if line.startswith("sqlalchemy.url") else line for line in ini.read_text().split("\n"))
        )
        assert "target_metadata = None" in env.read_text()
        env.write_text(env.read_text().replace("target_metadata = None", "import models\ntarget_metadata = models.Base.metadata"))

    def run(self, *arguments):
        print(json.dumps([str(self.folder), *arguments]), file=self.commands.stdin, flush=True)
        status, said = json.loads(self.commands.stdout.readline())
        assert status == 0, said
        return said

    def migrations(self):
        return {path.name: path.read_text() for path in (self.folder / "migrations/versions").glob("*.py")}


@pytest.fixture(scope="module")
def commands():
    program = Path(__file__).with_name("alembic_commands.py")
    with subprocess.Popen([sys.executable, program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as commands:
        yield commands
        commands.stdin.close()


@pytest.fixture(params=sql.DATABASES)
def project(request, tmp_path, commands):
    project = Project(tmp_path, sql.url(request.param, tmp_path), commands)
    yield project
    left = MetaData()
    left.reflect(project.engine)
    left.drop_all(project.engine)
    project.engine.dispose()


def test_a_migration_is_written_once_and_names_no_generator(project):
    project.run("revision", "--autogenerate", "-m", "first")
    [migration] = project.migrations().values()
    assert "sa.Column('id', sa.BigInteger(), autoincrement=False, nullable=False)" in migration
    assert not any(word in migration for word in ("frazil", "Snowflake", "default", "models")), migration
    project.run("upgrade", "head")
    assert "No new upgrade operations" in project.run("check")
    project.run("revision", "--autogenerate", "-m", "second")
    [second] = [body for name, body in project.migrations().items() if "second" in name]
    assert "op." not in second
    project.run("upgrade", "head")

    for table, column in ("user_", "id"), ("item", "id"), ("item", "user_id"), ("item", "parent_id"):
        [present] = [each for each in inspect(project.engine).get_columns(table) if each["name"] == column]
        assert present["type"].compile(project.engine.dialect).startswith("BIGINT")
        assert present["default"] is None and present.get("autoincrement") in (False, "auto", None)
    project.run("downgrade", "base")
    assert inspect(project.engine).get_table_names() == ["alembic_version"]


def test_a_migration_needs_no_models(project):
    project.run("revision", "--autogenerate", "-m", "first")
    env = project.folder / "migrations/env.py"
    env.write_text(env.read_text().replace("import models\ntarget_metadata = models.Base.metadata", "target_metadata = None"))
    (project.folder / "models.py").unlink()
    project.run("upgrade", "head")
    assert "user_" in inspect(project.engine).get_table_names()
    statements = project.run("upgrade", "head", "--sql").upper()
    assert "ID BIGINT NOT NULL" in statements and not any(word in statements for word in ("SERIAL", "AUTO", "IDENTITY"))


def test_a_narrow_column_becomes_bigint(project):
    with project.engine.begin() as connection:
        connection.execute(text("CREATE TABLE user_ (id INTEGER NOT NULL PRIMARY KEY, name VARCHAR(50) NOT NULL)"))
    project.run("revision", "--autogenerate", "-m", "first")
    [migration] = project.migrations().values()
    assert "type_=sa.BigInteger()" in migration
    # SQLite cannot alter a column in place. MariaDB cannot alter it because the migration first adds a foreign key that refers to it.
    if project.engine.dialect.name == "postgresql":
        project.run("upgrade", "head")
        assert "No new upgrade operations" in project.run("check")


RENDER_ITEM = """
import sqlalchemy as sa

def render_item(kind, item, context):
    return "sa.Text()" if kind == "type" and isinstance(item, sa.String) else False

"""


def test_a_render_item_of_the_program_is_kept(project):
    env = project.folder / "migrations/env.py"
    configured = env.read_text().replace("target_metadata=target_metadata", "target_metadata=target_metadata, render_item=render_item")
    env.write_text(configured.replace("import models\n", f"{RENDER_ITEM}import models\n"))
    project.run("revision", "--autogenerate", "-m", "first")
    [migration] = project.migrations().values()
    assert "sa.Text()" in migration and "sa.BigInteger()" in migration and "frazil" not in migration

"""`help()` shows the stub: its docstrings, and its signatures with types."""

import ast
import inspect
from pathlib import Path

import frazil
import pytest
from frazil import _frazil

STUB = ast.parse((Path(frazil.__file__).parent / "_frazil.pyi").read_text())
ALIASES = {
    item.target.id: item.value for item in STUB.body if isinstance(item, ast.AnnAssign) and ast.unparse(item.annotation) == "TypeAlias"
}


class Shown(ast.NodeTransformer):
    """A signature as `help()` shows it: without the object itself, private names, and the keys of keywords."""

    def visit_Name(self, node):
        return self.visit(ALIASES[node.id]) if node.id in ALIASES else node


def signature(function):
    arguments = function.args
    for arguments_of_it in (arguments.posonlyargs, arguments.args):
        arguments_of_it[:] = [argument for argument in arguments_of_it if argument.arg not in ("self", "cls")]
    if arguments.kwarg and getattr(arguments.kwarg.annotation, "value", None) and arguments.kwarg.annotation.value.id == "Unpack":
        arguments.kwarg.annotation = None
    return ast.unparse(Shown().visit(arguments)), ast.unparse(Shown().visit(function.returns))


def documented():
    """The documented functions, classes and methods of the stub, each with the object of the module. CPython documents its own slots."""
    for item in STUB.body:
        if not isinstance(item, ast.FunctionDef | ast.ClassDef) or item.name.startswith("_"):
            continue
        members = item.body if isinstance(item, ast.ClassDef) else []
        inside = [(item.name, member) for member in members if isinstance(member, ast.FunctionDef) and not member.name.startswith("__")]
        for of, found in [(None, item), *inside]:
            shown = getattr(_frazil, of or found.name, None)
            # A subclass has the method of its base.
            if ast.get_docstring(found) and (of is None or found.name in vars(shown)):
                yield pytest.param(found, getattr(shown, found.name) if of else shown, id=f"{of}.{found.name}" if of else found.name)


@pytest.mark.parametrize("item, shown", list(documented()))
def test_help_is_the_stub(item, shown):
    doc = inspect.getdoc(shown)
    is_property = any(ast.unparse(decorator) == "property" for decorator in item.decorator_list)
    if isinstance(item, ast.FunctionDef) and not is_property:
        head, doc = doc.split("\n\n", 1)
        [written] = ast.parse(f"def {head}: ...").body
        assert (written.name, signature(written)) == (item.name, signature(item))
        assert inspect.signature(shown), "it can be called by its signature"
    assert doc == ast.get_docstring(item)


def test_all_of_the_stub_is_compared():
    assert len(list(documented())) > 140

"""docs/django.md as a new user follows it: every block, in order, in an empty project."""

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
GUIDE = (ROOT / "docs/django.md").read_text()
SHELL = "# python manage.py shell\n"


def test_the_guide(tmp_path):
    blocks = re.findall(r"^```(\w+)\n(.*?)^```$", GUIDE, re.MULTILINE | re.DOTALL)
    assert {language for language, _ in blocks} == {"sh", "py"} and len(blocks) > 10
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("DJANGO", "SHOP", "FRAZIL"))}
    environment |= {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "FRAZIL_HOME": str(tmp_path / "state"),
        "FRAZIL_STORE": os.environ["FRAZIL_TEST_POSTGRESQL"],
    }

    def run(*command, stdin=""):
        done = subprocess.run(command, check=False, input=stdin, capture_output=True, text=True, timeout=180, cwd=tmp_path, env=environment)
        assert done.returncode == 0, f"{command}\n{stdin}\n{done.stdout}{done.stderr}"
        return done.stdout

    printed = ""
    for language, code in blocks:
        if language == "sh":
            # These packages are installed already.
            run("sh", "-ec", re.sub(r"^pip install 'frazil\[django\]'$", "python -c 'import frazil.django'", code, flags=re.MULTILINE))
        elif code.startswith(SHELL):
            # With -c, because the shell hides errors of input lines.
            printed += run("python", "manage.py", "shell", "-c", code)
        else:
            path = re.match(r"# (\S+\.py)\n", code)[1]
            with (tmp_path / path).open("a") as file:
                file.write(f"\n{code}")
    assert "not float" in printed
    # The output has the key of the guide's first row, and the number of rows. The settings in the end are those for production.
    assert re.search(r"^\d{18,19}$", printed, re.MULTILINE) and re.search(r"^1001$", printed, re.MULTILINE)
    run(
        "python",
        "-c",
        "import os; os.environ['DJANGO_SETTINGS_MODULE'] = 'mysite.settings'; import django; django.setup(); import shop.tasks",
    )
    code = """
from shop.models import Order
from shop.serializers import OrderSerializer
from frazil.django import get_snowflake
order = Order.objects.first()
assert OrderSerializer(order).data["id"] == str(order.pk)
print(get_snowflake().lease.store)
"""
    assert "postgresql" in run("python", "manage.py", "shell", "-c", code)

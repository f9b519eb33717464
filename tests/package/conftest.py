"""What a user installs, in clean environments away from the source tree.

`make package` names the folder of its release artefacts in FRAZIL_PACKAGES: the full form. Without it the artefacts are those
that `make test` has built before: the short form.
"""

import os
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
PACKAGES = os.environ.get("FRAZIL_PACKAGES")


@pytest.fixture(scope="session")
def packages():
    """The folder of release artefacts; None in the short form."""
    return Path(PACKAGES).resolve() if PACKAGES else None


@pytest.fixture(scope="session")
def example():
    """The first code block in a language of a document of the repository."""

    def find(language, document="README.md"):
        return re.search(rf"^```{language}\n(.*?)^```$", (ROOT / document).read_text(), re.MULTILINE | re.DOTALL)[1]

    return find

"""A fixture that plants rules."""

import pytest

from fwdad.rules.core.adjoints import TRANSPOSES
from fwdad.rules.core.define import frule
from fwdad.rules.core.registry import RULES


@pytest.fixture
def plant():
    """Register a rule for a fresh function, and take it away again."""
    planted = []

    def register(function, body, **options):
        frule(function, **options)(body)
        planted.append(function)
        return function

    yield register
    for function in planted:
        RULES.pop(function)
        TRANSPOSES.pop(function, None)

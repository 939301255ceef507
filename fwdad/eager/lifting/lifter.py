"""What the parts of the lifter see of the whole of it."""

from __future__ import annotations

import ast
from typing import Any, Protocol

from fwdad.eager.lifting.scopes import Scopes


class Lifter(Protocol):
    """The recursion of the lifter, and the scopes around the node that it has come to."""

    scopes: Scopes

    def visit(self, node: ast.AST) -> Any:
        """A node with hooks; a statement may become several."""

    def generic_visit(self, node: ast.AST) -> ast.AST:
        """A node whose parts have been visited."""

    def block(self, body: list[ast.stmt]) -> list[ast.stmt]:
        """The statements of a block, with hooks."""

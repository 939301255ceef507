"""Operations that stay alive though their results are unused, because they may raise."""

from __future__ import annotations

from typing import Any

from fwdad.ops.record import own_op


@own_op(constant=True, pure=True)
def computed(*values: Any) -> bool:  # noqa: ARG001
    """True, once the values are computed: an operation keeps what it reads alive."""
    return True

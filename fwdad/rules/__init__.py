"""The rules, one file per area; importing this package registers them all."""

from fwdad.rules import einsum as einsum
from fwdad.rules import products as products
from fwdad.rules import transposes as transposes

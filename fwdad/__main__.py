"""The command line, ``python -m fwdad``."""

import argparse
import sys
from collections.abc import Sequence

from fwdad.core.version import version


def positive(text: str) -> int:
    """Read a positive integer."""
    number = int(text)
    if number < 1:
        message = f"{text} is not a positive number"
        raise argparse.ArgumentTypeError(message)
    return number


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m fwdad", description="Derivatives of the NumPy program you already have."
    )
    parser.add_argument("--version", action="store_true", help="print the version")
    commands = parser.add_subparsers(dest="command", title="commands")
    demo = commands.add_parser(
        "demo",
        help="solve the POLLU air-pollution kinetics with an exact Jacobian",
        description=(
            "Solve the stiff POLLU kinetics by SciPy's BDF, once with fwdad's Jacobian and once "
            "with SciPy's finite differences; print both beside the published solution. "
            "The exit status is 1 if the error exceeds 1e-6."
        ),
    )
    demo.add_argument(
        "--repeat", type=positive, default=3, metavar="N", help="solves to time (default: 3)"
    )
    options = parser.parse_args(arguments)
    if options.version:
        print(f"fwdad {version()}")
        return 0
    if options.command is None:
        parser.print_help()
        return 0
    from fwdad.examples import demo as example  # noqa: PLC0415 (loads the integrators, which --help does not need)

    return example.run(repeat=options.repeat)


if __name__ == "__main__":
    sys.exit(main())

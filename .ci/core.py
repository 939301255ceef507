"""What the memory of a process that died says: gdb -batch -nx -x .ci/core.py PROGRAM CORE.

The stack, machine code of Numba's included; the instruction, the registers, what the processor
objected to, and what the pages in question may be used for. Python's own handler has raised the
signal a second time, so what happened is looked up where the kernel has put it for that handler.
"""

import re

import gdb

_ERROR, _ADDRESS = 192, 216  # bytes behind the start of what the kernel keeps, on x86-64 Linux
_BITS = ("page was there", "was a write", "by the program", "bad entry", "was to be executed")


def _signal_frame():
    frame = gdb.newest_frame()
    while frame is not None and frame.type() != gdb.SIGTRAMP_FRAME:
        frame = frame.older()
    return frame


def _pages(address):
    """The lines that tell which part of the memory an address is in."""
    for line in gdb.execute("maintenance info sections", to_string=True).splitlines():
        found = re.search(r"(0x[0-9a-f]+)->(0x[0-9a-f]+) at \S+ (.*)", line)
        if found and int(found[1], 16) <= address < int(found[2], 16):
            yield found[0]


def _number(text):
    return int(gdb.parse_and_eval(text)) & (2**64 - 1)


def _show(command):
    print(f"--- {command}")
    try:
        print(gdb.execute(command, to_string=True)[:8000])
    except gdb.error as error:
        print(error)


_show("bt 40")
frame = _signal_frame()
places = []
if frame is not None:
    frame.select()
    error, address = (_number(f"*(long *)($sp + {k})") for k in (_ERROR, _ADDRESS))
    told = [name if error >> k & 1 else f"not ({name})" for k, name in enumerate(_BITS)]
    print(f"--- the processor objected to {address:#x}: {', '.join(told)}")
    places.append(address)
    frame.older().select()
for command in ("info registers", "x/24i $pc-48", "x/12i $pc", "x/96a $sp"):
    _show(command)
for place in (*places, _number("$pc")):
    print(f"--- {place:#x} lies in", *_pages(place))

"""Checkpointing: loops and calls that run again in the reverse pass, so that less is kept.

In comes a loop or call marked by ``checkpoint``; out come a forward pass that keeps some
states, by the schedule of ``ir.primitives.checkpoint_schedule``, and a reverse pass that starts
from them.
"""

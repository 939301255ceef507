"""Reversible programs: functions that run backwards without a stack."""

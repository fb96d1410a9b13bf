"""Tests of windrow.streams."""

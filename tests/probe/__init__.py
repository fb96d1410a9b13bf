"""Tests of windrow.probe."""

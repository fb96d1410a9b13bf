"""Slow, obvious references that say what a query's result is: DuckDB, plain Python, and a generator of questions."""

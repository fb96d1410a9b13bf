"""Windrow beside its peers and its limits: each `bench_NAME` has a `DESCRIPTION` and `run(quick)`."""

"""Where it happens: batches, and the runtimes that feed them."""

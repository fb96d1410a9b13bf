"""What is asked: SQL text or the builder in, one frozen specification out (`spec.QuerySpec`)."""

"""How a step matches: kernels that propose candidate pairs, and compiled predicates that decide."""

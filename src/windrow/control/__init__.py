"""How plans follow the load: statistics in, plan out. No clock, no files, no Spark."""

"""The join on Spark: the same plan, probes and batches, run by Structured Streaming.

This is the only package that may import pyspark.
"""

"""Where tuples come from: generators of known patterns, recorded files, and the replay that cuts both into batches.

arrivals      when tuples come                          files        recorded files as sources
synthetic     the GrubJoin process: known lags          formats      Parquet, CSV, Arrow
shared_keys   three streams of known selectivities      event_time   any time column as microseconds
                                                        replay       all streams in step, batch by batch
"""

"""The ring of Pipelined State Partitioning: what it costs, how long it should be, how its slices follow the load.

    model        L_C, L_PSP, service and output rate, latency, bandwidth        (PSP, sections 5.1 to 5.3)
    length       how many slices, for the lowest latency or the highest output  (5.2)
    lengths      a length for each stream                                       (5.4)
    balance      slices of equal work, bounds by count, segments given away     (5.5, 6)
    relocation   nodes that come and go                                         (6)

All pure: from statistics and limits to numbers. Windows lie on a ring by age, the newest rows at its head:

    age       0 ──────── W/3 ─────── 2W/3 ──────── W
    node      head         2          3 (tail)          rows move on as they age, results pass round the ring

"Slices" here are spans of age that nodes hold; `windrow.plan.slices` is about how Spark's workers share the rows.
"""

"""A simulated cluster: joins spread over many nodes, by the tuple, on a clock that is made up.

    feed          the rows of all streams, in the order in which they come
    layout        which ages of each window lie on which node of a ring
    matching      what a probe finds: by a condition, or by chance at a given selectivity
    node          one sliced join: its states, its four primitives
    ring          PSP and PSP-I: nodes, links, one row after the other or several at once
    reslicing     a ring that is sliced anew while it runs
    aligned       ATR and
    coordinated   CTR, to compare with
    outcome       what a run tells

It is there to verify what PSP promises and to say what more nodes would do; nothing real runs on it. A run is a
function of its arguments and its seed.
"""

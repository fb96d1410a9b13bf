"""The benches at sizes that take no time: they run, and every peer agrees with us."""

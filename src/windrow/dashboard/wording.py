"""Numbers as people read them: spans, counts, sizes, times."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SIZES = ("B", "kB", "MB", "GB", "TB", "PB")
_UNITS = (("d", 86_400), ("h", 3600), ("m", 60))


def span_text(seconds: float) -> str:
    """A span, by its two largest units.

    >>> [span_text(s) for s in (18_000, 20, 0.25, 2.5, 75, 93_600, 0)]
    ['5 h 00 m', '20 s', '250 ms', '2.5 s', '1 m 15 s', '1 d 02 h', '0 s']
    """
    seconds = abs(seconds)
    if 0 < seconds < 0.9995:
        return f"{seconds * 1000:.3g} ms"
    if seconds < 59.95:
        return f"{seconds:.3g} s"
    whole = round(seconds)
    for number, (unit, size) in enumerate(_UNITS):
        if whole >= size:
            below, below_size = (*_UNITS, ("s", 1))[number + 1]
            return f"{whole // size} {unit} {whole % size // below_size:02d} {below}"
    return f"{whole} s"


def count_text(count: float) -> str:
    """A count, short where it is large.

    >>> [count_text(n) for n in (0, 12, 1234, 56_789, 1_234_567, 2.5e9)]
    ['0', '12', '1,234', '56.8 k', '1.23 M', '2.5 G']
    """
    for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if count >= size * (10 if unit == "k" else 1):
            return f"{count / size:.3g} {unit}"
    return f"{count:,.0f}" if count >= 10 or count == int(count) else f"{count:.2g}"


def size_text(size: float) -> str:
    """A number of bytes.

    >>> size_text(999), size_text(1_234_567)
    ('999 B', '1.2 MB')
    """
    unit = 0
    while size >= 1000 and unit + 1 < len(_SIZES):
        size, unit = size / 1000, unit + 1
    return f"{size:.1f} {_SIZES[unit]}" if unit else f"{size:.0f} B"


def share_text(share: float) -> str:
    """A share, with as many digits as it takes to tell it from none and from all.

    >>> [share_text(s) for s in (0, 0.00004, 0.0123, 0.5, 0.998, 1)]
    ['0 %', '0.004 %', '1.2 %', '50 %', '99.8 %', '100 %']
    """
    percent = 100 * share
    if percent in (0, 100) or 10 <= percent < 99:
        return f"{percent:.0f} %"
    return f"{percent:.1f} %" if percent >= 1 else f"{percent:.1g} %"


def time_text(time_us: int | None) -> str | None:
    """An event time in UTC; None where it is not known.

    >>> time_text(1_700_000_000_250_000), time_text(None), time_text(2**62)
    ('2023-11-14 22:13:20.250', None, '4611686018427387904 us')
    """
    if time_us is None:
        return None
    try:
        return (_EPOCH + timedelta(microseconds=time_us)).replace(tzinfo=None).isoformat(" ", "milliseconds")
    except OverflowError:
        return f"{time_us} us"


def window_text(window_us: int | None, window_rows: int | None) -> str:
    """A window.

    >>> window_text(20_000_000, None), window_text(None, 1000), window_text(None, None)
    ('20 s', '1,000 rows', 'unbounded')
    """
    if window_rows is not None:
        return f"{window_rows:,} rows"
    return "unbounded" if window_us is None else span_text(window_us / 1e6)

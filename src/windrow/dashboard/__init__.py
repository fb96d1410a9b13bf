"""The live page of a join: it reads event files, and nothing else.

    events/*.json ─ history ─▶ batches ─ view ─▶ one plain value ─ server ─▶ page, metrics

What to show is decided by pure functions from events to a value that JSON knows (`windrow.dashboard.view`), so it is
tested without a browser; the page in `static/` draws that value.
"""

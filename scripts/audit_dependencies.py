"""Known weaknesses of the pinned packages, where a database that knows them can be reached; else a note and no more.

    python scripts/audit_dependencies.py [CONSTRAINTS]      exit code 1 if a pinned version has a known weakness

The database speaks the protocol of OSV (https://google.github.io/osv.dev/post-v1-querybatch/): all pins in one
question, a list of identifiers for each as the answer. WINDROW_AUDIT_URL names another one, or none if it is empty.
"""

from __future__ import annotations

import json
import os
import sys
import urllib.error
import urllib.request
from pathlib import Path

DATABASE = "https://api.osv.dev/v1/querybatch"
PATIENCE_S = 10.0


def pins(constraints: Path) -> list[tuple[str, str]]:
    """The packages of a file of constraints, with their versions."""
    lines = (line.partition("#")[0].strip() for line in constraints.read_text(encoding="utf-8").splitlines())
    return [(name, version) for name, mark, version in (line.partition("==") for line in lines) if mark]


def weaknesses(packages: list[tuple[str, str]], database: str) -> dict[tuple[str, str], list[str]]:
    """What the database knows against packages: identifiers, for those that have any."""
    asked = {"queries": [{"package": {"name": n, "ecosystem": "PyPI"}, "version": v} for n, v in packages]}
    request = urllib.request.Request(database, json.dumps(asked).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
        results = json.load(answer)["results"]
    found = {
        package: sorted(str(each["id"]) for each in result.get("vulns", ()))
        for package, result in zip(packages, results, strict=True)
    }
    return {package: known for package, known in found.items() if known}


def main(arguments: list[str]) -> int:
    """Ask, and print what is known."""
    root = Path(__file__).resolve().parent.parent
    packages = pins(Path(arguments[0]) if arguments else root / "constraints.txt")
    database = os.environ.get("WINDROW_AUDIT_URL", DATABASE)
    if not packages:
        print("no pinned packages were found: nothing was audited")
        return 1
    try:
        if not database:
            raise OSError("WINDROW_AUDIT_URL is empty")
        found = weaknesses(packages, database)
    except (OSError, ValueError, KeyError, TypeError) as error:
        reason = error.reason if isinstance(error, urllib.error.URLError) else error
        print(f"dependencies were not audited: no answer from a database of weaknesses ({reason})")
        return 0
    for (name, version), known in found.items():
        print(f"{name}=={version}: {', '.join(known)}")
    print(f"{len(packages)} pinned packages: {len(found)} with known weaknesses")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

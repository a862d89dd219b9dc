"""200 people who come all at once finish a study on two workers: is all as it should be, and how long does it take."""

from __future__ import annotations

import os
import tempfile
import time
import uuid
from collections import Counter
from pathlib import Path

from benchmarks._corpus import documents
from benchmarks._docs import markdown, write_table
from benchmarks._postgres import postgresql
from benchmarks._ratios import conditions
from benchmarks.server import command, first_lines, stopped
from finecomb import formats
from finecomb.annotators.simulated.simulated_people import CrowdTraits
from finecomb.collection.database.location import parse_location
from finecomb.collection.database.store import open_store
from finecomb.core.records import ONBOARDING_PHASES, Settings
from finecomb.protocols import load_shipped
from finecomb.server.rehearsal import RehearsalClock, simulate_concurrent_visits

PEOPLE = int(os.environ.get("FINECOMB_BENCH_PEOPLE", "200"))
TEXTS, EACH, WORKERS = 60, 10, 2


def main() -> None:
    """Serve, let everybody come, compare with what the design asks for, and write the table."""
    protocol = load_shipped("scarecrow")
    with tempfile.TemporaryDirectory() as temporary, postgresql() as url:
        study = Path(temporary) / "study"
        settings = Settings(protocols=(protocol.id,), annotators=EACH, skip=ONBOARDING_PHASES)
        formats.save([settings, protocol, *documents(TEXTS, 100)], study)
        db = f"{url}#{uuid.uuid4().hex}"
        process = command("serve", str(study), "--port", "0", "--db", db, "--workers", str(WORKERS))
        try:
            lines = first_lines(process)
            port = int(lines[2].split()[-1].partition("/join/")[0].rpartition(":")[2])
            store = open_store(parse_location(db))
            start = time.perf_counter()
            visits = simulate_concurrent_visits(store, RehearsalClock(), CrowdTraits(), port, PEOPLE, PEOPLE, seed=0)
            took = time.perf_counter() - start
            annotations = list(store.study().iter_annotations())
            store.close()
        finally:
            stopped(process)
    done = [one for one in annotations if one.status == "submitted"]
    per_text = Counter(one.document for one in done)
    twice = sum(count - 1 for count in Counter((one.document, one.annotator) for one in done).values())
    assert set(per_text.values()) == {EACH}, per_text
    assert (len(per_text), twice, len(done)) == (TEXTS, 0, len(annotations))
    marks = sum(len(one.marks) for one in done)
    row = (
        f"{PEOPLE}, {sum(visit.texts > 0 for visit in visits)} with a text",
        f"{TEXTS} x {EACH}",
        f"{len(done)}",
        f"{marks:,}",
        "0",
        "0",
        f"{took:.0f} s",
    )
    head = ("people at once", "texts x people", "handed in", "marks", "read twice", "leases lost", "time")
    write_table("performance.md", "crowd", markdown(head, [row]), conditions("psycopg", "uvicorn"))

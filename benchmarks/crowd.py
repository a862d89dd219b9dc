"""Load test: 200 annotators who arrive at once complete a study on two workers."""

from __future__ import annotations

import os
import tempfile
import time
import uuid
from collections import Counter
from pathlib import Path

from benchmarks._corpus import make_documents
from benchmarks._docs import markdown_table, write_table
from benchmarks._postgres import temporary_postgresql
from benchmarks._ratios import describe_conditions
from benchmarks.server import read_startup_lines, start_finecomb, stop_server
from finecomb import formats
from finecomb.annotators.simulated.simulated_people import CrowdTraits
from finecomb.collection.database.location import parse_location
from finecomb.collection.database.store import open_store
from finecomb.core.records import ONBOARDING_PHASES, Settings
from finecomb.protocols import load_shipped
from finecomb.server.rehearsal import RehearsalClock, simulate_concurrent_visits

PERSON_COUNT = int(os.environ.get("FINECOMB_BENCH_PEOPLE", "200"))
TEXT_COUNT, ANNOTATORS_PER_TEXT, WORKER_COUNT = 60, 10, 2


def main() -> None:
    """Serve a study to all annotators, check the result against the design, and write the table."""
    protocol = load_shipped("scarecrow")
    with tempfile.TemporaryDirectory() as temporary, temporary_postgresql() as url:
        study = Path(temporary) / "study"
        settings = Settings(protocols=(protocol.id,), annotators=ANNOTATORS_PER_TEXT, skip=ONBOARDING_PHASES)
        formats.save_records([settings, protocol, *make_documents(TEXT_COUNT, 100)], study)
        db = f"{url}#{uuid.uuid4().hex}"
        process = start_finecomb("serve", str(study), "--port", "0", "--db", db, "--workers", str(WORKER_COUNT))
        try:
            lines = read_startup_lines(process)
            port = int(lines[2].split()[-1].partition("/join/")[0].rpartition(":")[2])
            store = open_store(parse_location(db))
            start = time.perf_counter()
            visits = simulate_concurrent_visits(
                store, RehearsalClock(), CrowdTraits(), port, PERSON_COUNT, PERSON_COUNT, seed=0
            )
            took = time.perf_counter() - start
            annotations = list(store.read_study().iter_annotations())
            store.close()
        finally:
            stop_server(process)
    done = [one for one in annotations if one.status == "submitted"]
    per_text = Counter(one.document for one in done)
    twice = sum(count - 1 for count in Counter((one.document, one.annotator) for one in done).values())
    assert set(per_text.values()) == {ANNOTATORS_PER_TEXT}, per_text
    assert (len(per_text), twice, len(done)) == (TEXT_COUNT, 0, len(annotations))
    marks = sum(len(one.marks) for one in done)
    row = (
        f"{PERSON_COUNT}, {sum(visit.texts > 0 for visit in visits)} with a text",
        f"{TEXT_COUNT} x {ANNOTATORS_PER_TEXT}",
        f"{len(done)}",
        f"{marks:,}",
        "0",
        "0",
        f"{took:.0f} s",
    )
    head = ("people at once", "texts x people", "handed in", "marks", "read twice", "leases lost", "time")
    write_table("performance.md", "crowd", markdown_table(head, [row]), describe_conditions("psycopg", "uvicorn"))

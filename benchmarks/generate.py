"""Text generation with the small local model: share of time spent in the model, and tokens per second."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from finecomb.annotators.llm.local_models import local_model_install_hint
from finecomb.core.records import Document, ModelSettings
from finecomb.corpora.generation.decoding import decoding_grid
from finecomb.corpora.generation.generation import GenerationSettings, generate, plan_generation
from finecomb.corpora.generation.lengths import LengthRule
from finecomb.corpora.generation.local_model import TransformersEndpoint

MODEL, CONCURRENCY, MIN_BUSY_SHARE = "local:smollm2", 8, 0.9
SENTENCE = "The last ferry of the season left on Friday."


def main() -> None:
    if hint := local_model_install_hint(MODEL):
        print(f"skipped: the local model is not installed; {hint}")
        return
    settings = GenerationSettings(
        model=ModelSettings(model=MODEL, concurrency=CONCURRENCY),
        runtime="transformers",
        decodings=tuple(decoding_grid([0.4, 0.7, 0.9, 0.96], [0, 0.4, 0.7, 1], [0, 1])),
        rule=LengthRule(),
        tries=1,
    )
    run_plan = plan_generation(settings, [Document(id="p", text=SENTENCE)])
    started = time.monotonic()
    endpoint = run_plan.provider.open_endpoint(settings.model)
    assert isinstance(endpoint, TransformersEndpoint)
    print(f"model loaded in {time.monotonic() - started:.1f} s")
    with tempfile.TemporaryDirectory() as folder:
        started = time.monotonic()
        run = generate(run_plan, Path(folder), endpoint)
        took = time.monotonic() - started
    share = endpoint.computing / took
    print(
        f"{len(run.documents)} texts, {len(run.dropped)} given up, {run.calls} samples,"
        f" {CONCURRENCY} in parallel: {took:.1f} s"
    )
    print(f"  {endpoint.tokens / took:.0f} tokens per second")
    print(
        f"  model busy {share:.1%} of the time, {'within' if share >= MIN_BUSY_SHARE else 'BELOW'} {MIN_BUSY_SHARE:.0%}"
    )

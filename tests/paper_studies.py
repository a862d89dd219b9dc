"""Simulated studies in the designs of five papers: small, with everything that their tables and figures need.

Texts are made from a few invented sentences, readers are simulated. So every exhibit can be looked at before there are
data, and tests can render each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from finecomb.annotators.simulated.demo_study import build_demo_document, build_demo_truth, load_demo_texts
from finecomb.annotators.simulated.simulated_annotators import (
    SimulatedAnnotator,
    make_crowd,
    plant_errors,
    simulate_annotations,
)
from finecomb.core.errors import FinecombError, did_you_mean
from finecomb.core.protocol import Protocol
from finecomb.core.records import Annotation, Annotator, Document, Segment, Unit
from finecomb.core.study import Study, StudyItem
from finecomb.protocols import load_shipped
from finecomb.statistics.measures.mark_audit import draft_audit_annotations, draw_audit_sample
from finecomb.statistics.selection.view import view

DecodingSettings = Mapping[str, float]
_DECODING: tuple[DecodingSettings, ...] = tuple(
    {"top_p": top_p, "temperature": temperature, "frequency_penalty": penalty}
    for penalty in (0, 1)
    for top_p, temperature in ((0.96, 1), (0.4, 1), (0.96, 0.7))
)
_SENTENCES = (
    "The ferry left the island before the fog had lifted.", "Anna counted the crates and wrote the number down.",
    "Her brother kept the lamp, and he would not lend it to her.", "In spring the mill stood still for nine days.",
    "Paul asked the baker for work, and she gave him a broom.", "Nobody knew who had rung the bell.",
    "The choir sang in the barn because the church had no roof.", "Twelve boats came back with eleven nets.",
    "Marta said that she had seen him on the pier.", "The road to the harbour was closed after the storm.",
)  # fmt: skip


def paper_study(name: str, seed: int = 0) -> Study:
    """A simulated study in the design of a paper."""
    if name not in STUDY_BUILDERS:
        raise FinecombError(f"no simulated study is called {name!r}{did_you_mean(name, STUDY_BUILDERS)}")
    return Study.from_items(STUDY_BUILDERS[name](seed))


def _random_text(rng: np.random.Generator, sentences: int) -> str:
    return " ".join(_SENTENCES[int(at)] for at in rng.integers(len(_SENTENCES), size=sentences))


def _make_annotators(count: int, seed: int) -> list[SimulatedAnnotator]:
    return make_crowd(
        count, SimulatedAnnotator("reader", recall=0.6, precision=0.8, jitter=0.5, confusion=0.15), 0.08, seed
    )


def _simulate_marks(
    documents: Sequence[Document], protocol: Protocol, people: Sequence[SimulatedAnnotator], rate: float, seed: int
) -> Iterator[Annotation]:
    """What everybody marks of the same planted errors."""
    truth = {annotation.document: annotation for annotation in plant_errors(documents, protocol, rate, seed)}
    yield from simulate_annotations(documents, truth, people, protocol, seed)


_MACHINE_ANNOTATOR = SimulatedAnnotator("machine", recall=0.5, precision=0.6, jitter=1.0, confusion=0.2)


def _scarecrow_study(seed: int) -> Iterator[StudyItem]:
    """The demo's texts, those of one system under several decoding settings."""
    protocol, texts = load_shipped("scarecrow"), load_demo_texts()
    documents, truth = [], {}
    for text in texts:
        settings: Sequence[DecodingSettings] = ({},) if text.model == "human" else _DECODING[:1]
        for number, setting in enumerate(_DECODING if text.model == "comb-large" else settings):
            id = f"{text.id}-{number}" if number else text.id
            document = build_demo_document(text)
            documents.append(document.model_copy(update={"id": id, "meta": {**document.meta, **setting}}))
            mine = build_demo_truth(text, protocol)
            truth[id] = mine.model_copy(update={"id": f"{id}/truth", "document": id})
    people = _make_annotators(4, seed)
    yield protocol
    yield from documents
    yield from (person.to_annotator() for person in people)
    yield from simulate_annotations(documents, truth, people, protocol, seed)


def _accuracy_study(seed: int) -> Iterator[StudyItem]:
    """Three systems, three readers and a metric."""
    protocol, rng = load_shipped("accuracy"), np.random.default_rng(seed)
    documents = [
        Document(id=f"game-{number}", text=_random_text(rng, 8), meta={"model": f"system-{'abc'[number % 3]}"})
        for number in range(12)
    ]
    people = _make_annotators(3, seed)
    yield protocol
    yield from documents
    yield from (person.to_annotator() for person in people)
    yield Annotator(id=_MACHINE_ANNOTATOR.id, kind="checker")
    yield from _simulate_marks(documents, protocol, [*people, _MACHINE_ANNOTATOR], 6.0, seed)


def _snac_study(seed: int) -> Iterator[StudyItem]:
    """Summaries in segments by three systems; three readers who also rate them; a model, and a metric."""
    protocol, ratings, rng = load_shipped("snac"), load_shipped("likert"), np.random.default_rng(seed)
    documents = [_summary(f"story-{number}", "abc"[number % 3], number, rng) for number in range(15)]
    people = _make_annotators(3, seed)
    yield protocol
    yield ratings
    yield from documents
    yield from (person.to_annotator() for person in people)
    yield Annotator(id=_MACHINE_ANNOTATOR.id, kind="detector")
    yield Annotator(id="overlap", kind="detector")
    marked = list(_simulate_marks(documents, protocol, [*people, _MACHINE_ANNOTATOR], 5.0, seed))
    yield from marked
    for annotation in marked:
        if annotation.annotator != _MACHINE_ANNOTATOR.id:
            rating = int(np.clip(round(5 - len(annotation.marks) / 3 + rng.normal(0, 0.6)), 1, 5))
            yield _make_answers(annotation.document, annotation.annotator, ratings, {"coherence": rating})
    for document in documents:
        yield _make_answers(document.id, "overlap", ratings, {"score": float(rng.uniform(0, 1))})


def _summary(id: str, system: str, number: int, rng: np.random.Generator) -> Document:
    parts = [_random_text(rng, 3) for _ in range(4)]
    starts = np.cumsum([0, *(len(part) + 1 for part in parts)])
    segments = tuple(Segment(start=int(at), end=int(at) + len(part)) for at, part in zip(starts, parts, strict=False))
    meta = {"model": f"system-{system}", "split": ("train", "dev", "test")[number % 3]}
    return Document(id=id, text=" ".join(parts), segments=segments, meta=meta)


def _make_answers(document: str, annotator: str, protocol: Protocol, answers: dict[str, object]) -> Annotation:
    id = f"{document}/{annotator}/{protocol.name}"
    return Annotation.model_validate(
        {"id": id, "document": document, "annotator": annotator, "protocol": protocol.id, "answers": answers}
    )


SKILL_BY_CONDITION = {"none": 0.5, "instructions": 0.53, "examples": 0.58}
"""How often readers of each kind of training are right."""
_REASONS = {
    "grammar": "The commas are where nobody would put them.", "genre": "It reads like an advertisement.",
    "level-of-detail": "Too many small facts for a machine.", "factuality": "The dates do not fit together.",
    "common-sense": "Nobody would carry a lamp into the sea.",
    "writer-intent-and-expression": "A machine cannot make such a joke.",
}  # fmt: skip


def _clark_study(seed: int) -> Iterator[StudyItem]:
    """Readers of three kinds of training judge texts by people and two models in two domains; reasons are coded."""
    protocol, coding, rng = load_shipped("turing"), load_shipped("comments"), np.random.default_rng(seed)
    documents = [
        Document(id=f"{domain}-{model}-{number}", text=_random_text(rng, 5), meta={"model": model, "domain": domain})
        for domain in ("stories", "news") for model in ("human", "gpt2", "gpt3") for number in range(6)
    ]  # fmt: skip
    yield protocol
    yield coding
    yield from documents
    yield Annotator(id="coder", kind="human")
    for reader in range(72):
        condition = list(SKILL_BY_CONDITION)[reader % 3]
        domain, model = ("stories", "news")[reader // 3 % 2], ("gpt2", "gpt3")[reader // 6 % 2]
        yield Annotator(id=f"reader-{reader}", kind="human", condition=condition)
        read = [document for document in documents if document.meta["domain"] == domain]
        read = [document for document in read if document.meta["model"] in (model, "human")]
        for at in rng.permutation(len(read))[:5]:
            yield from _simulate_judgement(
                read[int(at)], f"reader-{reader}", protocol, coding, SKILL_BY_CONDITION[condition], rng
            )


def _simulate_judgement(
    document: Document, reader: str, protocol: Protocol, coding: Protocol, skill: float, rng: np.random.Generator
) -> Iterator[Annotation]:
    """A judgement with its reason, and for every third the codes of that reason."""
    machine = (document.meta["model"] != "human") == (rng.random() < skill)
    rating = (4 if rng.random() < 0.4 else 3) if machine else (1 if rng.random() < 0.4 else 2)
    code = list(_REASONS)[int(rng.integers(len(_REASONS)))]
    judgement = _make_answers(
        document.id, reader, protocol, {"rating": rating, "why" if rating == 1 else "change": _REASONS[code]}
    )
    yield judgement
    if rng.random() < 0.33:
        coded = _make_answers(document.id, "coder", coding, {"codes": (code,)})
        yield coded.model_copy(update={"id": f"{judgement.id}/codes", "about": judgement.id})


def simulate_audit(study: Study, seed: int = 0) -> Study:
    """A simulated audit of a study's marks: two in three are confirmed, fewer in human text."""
    protocol, auditor, rng = load_shipped("audit"), Annotator(id="auditor", kind="human"), np.random.default_rng(seed)
    sample = draw_audit_sample(view(study), 8, ("model",), seed)
    models = {document.id: document.meta.get("model") for document in study.iter_documents()}
    drafts = draft_audit_annotations(sample, auditor.id, protocol.id)
    judged = [
        draft.model_copy(
            update={"status": "submitted", "answers": {"verdict": _simulate_audit_verdict(models[draft.document], rng)}}
        )
        for draft in drafts
    ]
    return Study.from_items([*study.items(), protocol, auditor, *judged])


def _simulate_audit_verdict(model: object, rng: np.random.Generator) -> str:
    return "legitimate" if rng.random() < (0.3 if model == "human" else 0.67) else "not-legitimate"


_TOPIC_WORDS = (
    "harbour ferry anchor tide pilot cargo mast rope", "oven flour dough baker crust yeast salt butter",
    "engine wheel brake road tyre driver petrol bridge", "choir organ hymn tenor chord verse drum melody",
)  # fmt: skip
_SECTION_ORDER = ("introduction", "material-and-method", "result", "discussion", "conclusion")


def _deng_study(seed: int) -> Iterator[StudyItem]:
    """Articles in sections by people and by two systems that mix the order up; readers say whether it makes sense."""
    protocol, rng = load_shipped("sections"), np.random.default_rng(seed)
    yield protocol
    yield from (Annotator(id=f"reader-{number}", kind="human") for number in (1, 2))
    for model, slips, count in (("human", 0.02, 60), ("small", 0.4, 40), ("large", 0.15, 40)):
        for number in range(count):
            document = _article(f"{model}-{number}", model, slips, rng)
            yield document
            if number < 8:
                yield from (_coherence_verdict(document, f"reader-{reader}", protocol) for reader in (1, 2))


def _article(id: str, model: str, slips: float, rng: np.random.Generator) -> Document:
    """Sections in their usual order but for slips: one comes twice, or any other comes in its place."""
    kinds: list[str] = []
    for kind in _SECTION_ORDER:
        slip = rng.random() < slips
        kinds += [kind, kind] if slip and rng.random() < 0.5 else [str(rng.choice(_SECTION_ORDER)) if slip else kind]
    words = _TOPIC_WORDS[int(rng.integers(len(_TOPIC_WORDS)))].split()
    parts = [_section(rng, words, slips) for _ in kinds]
    starts = np.cumsum([0, *(len(part) + 1 for part in parts)])
    segments = tuple(
        Segment(start=int(at), end=int(at) + len(part), title=kind)
        for at, part, kind in zip(starts, parts, kinds, strict=False)
    )
    return Document(id=id, text=" ".join(parts), segments=segments, meta={"model": model})


def _section(rng: np.random.Generator, words: Sequence[str], slips: float) -> str:
    """A few sentences and words of one subject; where a system slips, persons are mixed up."""
    text = _random_text(rng, 3)
    if rng.random() < slips:
        text = text.replace(" she ", " he ").replace(" him", " her")
    return f"{text} Notes on {' and '.join(str(word) for word in rng.choice(words, 3, replace=False))}."


_WORDS_BY_LANGUAGE = {
    "german": "der die und nicht ein wir auf mit sich auch", "spanish": "el los que para una por con las del como",
    "french": "le les et dans nous pour qui sur pas est",
}  # fmt: skip


def _languages_study(seed: int) -> Iterator[StudyItem]:
    """Texts of one language each by people; a system that mixes two of them word by word."""
    rng = np.random.default_rng(seed)
    for model, count in (("human", 60), ("mixing", 24)):
        for number in range(count):
            own, other = (_WORDS_BY_LANGUAGE[name].split() for name in rng.permutation(list(_WORDS_BY_LANGUAGE))[:2])
            mixed = [*own, *other] if model == "mixing" else own
            language = next(name for name, words in _WORDS_BY_LANGUAGE.items() if words.split() == own)
            text = " ".join(str(word) for word in rng.choice(mixed, 40))
            yield Document(id=f"{model}-{number}", text=text, meta={"model": model, "language": language})


def _coherence_verdict(document: Document, reader: str, protocol: Protocol) -> Annotation:
    kinds = [segment.title for segment in document.segments]
    coherent = len(set(kinds)) == len(kinds) and sorted(kinds, key=_SECTION_ORDER.index) == kinds
    units = tuple(
        Unit(start=segment.start, end=segment.end, answers={"section": segment.title}) for segment in document.segments
    )
    return _make_answers(document.id, reader, protocol, {"coherent": coherent}).model_copy(update={"units": units})


STUDY_BUILDERS: Mapping[str, Callable[[int], Iterator[StudyItem]]] = {
    "scarecrow": _scarecrow_study, "thomson-reiter": _accuracy_study, "snac": _snac_study, "clark": _clark_study,
    "deng": _deng_study,
    "deng-languages": _languages_study,
}  # fmt: skip
"""Makers of the records of each study, from a seed."""

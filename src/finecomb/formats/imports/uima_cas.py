"""UIMA CAS files as rows: XMI and JSON, as INCEpTION, WebAnno and dkpro-cassis write them. Offsets are UTF-16 units."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator, Mapping
from typing import Any

from finecomb.core.errors import FormatError

_XMI_ID = "{http://www.omg.org/XMI}id"
_NOT_MARKS = frozenset(
    "DocumentAnnotation DocumentMetaData Token Sentence Sofa View Lemma POS Paragraph TagsetDescription".split()
)
_LABEL_FEATURES = ("label", "value", "category", "type", "identifier")
FEATURE_STRUCTURES = "%FEATURE_STRUCTURES"


def rows_from_xmi(text: str, name: str, stem: str) -> Iterator[dict[str, Any]]:
    """Yield one row per view of an XMI file: its text and its annotations."""
    try:
        root = ElementTree.fromstring(text)
    except ElementTree.ParseError as error:
        raise FormatError(f"{name}: invalid XML: {error}") from None
    structures = [{"id": node.get(_XMI_ID), "type": node.tag.rpartition("}")[2], **node.attrib} for node in root]
    yield from _rows(structures, stem)


def rows_from_json(value: Mapping[str, Any], stem: str) -> Iterator[dict[str, Any]]:
    """Yield one row per view of a CAS in JSON."""
    structures = [
        {
            "id": str(structure["%ID"]),
            "type": str(structure["%TYPE"]).rpartition(".")[2],
            **{key.removeprefix("@"): item for key, item in structure.items() if not key.startswith("%")},
        }
        for structure in value[FEATURE_STRUCTURES]
    ]
    yield from _rows(structures, stem)


def _rows(structures: list[dict[str, Any]], stem: str) -> Iterator[dict[str, Any]]:
    by_id = {structure["id"]: structure for structure in structures if structure["id"]}
    texts = [structure for structure in structures if structure["type"] == "Sofa" and "sofaString" in structure]
    for number, sofa in enumerate(texts):
        marks = []
        for structure in structures:
            is_here = str(structure.get("sofa")) == str(sofa["id"]) and "begin" in structure
            if not is_here or structure["type"] in _NOT_MARKS:
                continue
            label = next((structure[name] for name in _LABEL_FEATURES if isinstance(structure.get(name), str)), None)
            mark = {"begin": int(structure["begin"]), "end": int(structure["end"]), "label": label or structure["type"]}
            mark |= {key: structure[key] for key in ("severity", "explanation", "comment") if key in structure}
            earlier = by_id.get(str(structure.get("antecedent", "")))
            if earlier is not None and "begin" in earlier:
                mark |= {"antecedent_begin": int(earlier["begin"]), "antecedent_end": int(earlier["end"])}
            marks.append(mark)
        yield {"id": stem if not number else f"{stem}-{number}", "sofaString": sofa["sofaString"], "annotations": marks}

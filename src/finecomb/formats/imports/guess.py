"""Guesses of the roles of fields, from names and values of the first rows, and fields that look like marks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from finecomb.core.errors import param
from finecomb.formats.imports.paths import Path, parse_nested

NAMES_BY_ROLE: Mapping[str, tuple[str, ...]] = {
    "text": (
        *("text", "output", "response", "generation", "generated_text", "model_output", "model_output_text"),
        *("completion", "prediction", "generated", "hypothesis", "translation", "target_text", "tgt", "summary"),
        *("answer", "content", "message", "sentence", "body", "reply"),
    ),
    "id": (
        *("id", "document", "document_id", "doc_id", "docid", "doc", "text_id", "item_id", "item", "instance_id"),
        *("example_id", "sample_id", "custom_id", "segment_id", "seg_id", "record_id", "key", "uid", "uuid", "_id"),
    ),
    "prompt": ("prompt", "input", "question", "instruction", "query", "model_input", "source", "src", "article"),
    "system": ("system", "model", "model_id", "model_name", "setup_id", "generator", "summarizer", "provider"),
    "annotator": (
        *("annotator", "annotator_id", "annotator_name", "worker", "worker_id", "rater", "rater_id", "coder"),
        *("user", "user_id", "username", "judge", "evaluator", "labeler", "login", "reviewer", "annotated_by"),
    ),
    "start": (
        *("start", "begin", "start_offset", "start_i", "start_pos", "start_char", "char_start", "from"),
        *("begin_offset", "offset", "span_start", "offset_start", "startindex", "start_index"),
    ),
    "end": (
        *("end", "stop", "end_offset", "end_i", "end_pos", "end_char", "char_end", "to", "finish"),
        *("span_end", "offset_end", "endindex", "end_index"),
    ),
    "quote": (
        *("quote", "span", "span_text", "quoted", "extraction_text", "exact", "surface", "error_text", "error"),
        *("phrase", "words", "snippet", "marked_text", "highlight", "text", "excerpt", "value", "passage"),
    ),
    "label": (
        *("label", "category", "error_type", "error_category", "label_type", "type", "labels", "tag", "class"),
        *("extraction_class", "error_label", "kind", "code", "issue", "entity", "hard_label"),
    ),
    "severity": ("severity", "sev", "level"),
    "explanation": ("explanation", "reason", "rationale", "note", "notes", "justification"),
    "correction": ("correction", "corrected", "suggestion", "fix", "replacement"),
    "comment": ("comment", "comments", "remark"),
}
"""Names that fields of each role usually have, the most specific first."""
_NOT_MARKS = frozenset(
    "tokens token words sents sentences segments chunks passages messages conversations choices observations tool_calls"
    " events model_output_tokens contexts references relations scores steps sections turns actions".split()
)
_MARK_LIST_NAMES = (
    *("spans", "marks", "labels", "annotations", "entities", "errors", "error_spans", "hard_labels", "extractions"),
    *("label", "highlights", "hallucinations", "issues", "soft_labels", "mistakes", "findings"),
)
MAX_EXAMPLE_LENGTH = 40


@dataclass(frozen=True, slots=True)
class MarkList:
    """A list of marks in the data: the path of its items, and the paths of their roles."""

    path: str
    roles: Mapping[str, str]

    def as_options(self) -> str:
        """Return the mapping as options of the import."""
        return " ".join(param("map", f"'{role}={path}'") for role, path in self.roles.items())


def fold_name(name: str) -> str:
    """Return a field name for comparison: `Start Offset` and `startOffset` are `start_offset`."""
    spaced = "".join(f"_{letter}" if letter.isupper() and not name.isupper() else letter for letter in name.strip())
    folded = spaced.lower().replace(" ", "_").replace("-", "_").replace(".", "_")
    while "__" in folded:
        folded = folded.replace("__", "_")
    return folded.strip("_")


def best_field(role: str, names: Mapping[str, str]) -> str | None:
    """Return the field whose name fits a role best; `names` maps folded names to fields."""
    return next((names[name] for name in NAMES_BY_ROLE[role] if name in names), None)


def quote_name(name: str) -> str:
    """Return a field name as it is written in a path; names with special characters are quoted."""
    return f'"{name}"' if any(character in '.[]{}|"' for character in name) else name


def find_mark_lists(rows: Sequence[Mapping[str, Any]]) -> list[MarkList]:
    """Return the lists in the rows whose items look like marks: they have offsets, or a quote and a label."""
    lists: dict[str, MarkList] = {}
    for row in rows:
        for path, name, items in _nested_lists(row, "", ""):
            if path not in lists and fold_name(name) not in _NOT_MARKS and (roles := _mark_roles(path, items)):
                lists[path] = MarkList(path, roles)
    rank = {name: number for number, name in enumerate(_MARK_LIST_NAMES)}
    return sorted(lists.values(), key=lambda marks: rank.get(_last_name(marks.path), len(rank)))


def _last_name(path: str) -> str:
    return fold_name(path.replace("[]", "").replace("{}", "").rpartition(".")[2])


def _nested_lists(value: Any, path: str, name: str, depth: int = 0) -> Iterator[tuple[str, str, list[Any]]]:
    """Yield the lists in a value with the path of their items and their name."""
    if depth > 5:
        return
    if isinstance(value, str):
        value = parse_nested(value)
    if isinstance(value, dict):
        lists = [item for item in value.values() if isinstance(item, list)]
        if path and len(lists) == len(value) and all(map(_is_range_list, lists)) and any(lists):
            yield f"{path}{{}}[]", name, [item for items in lists for item in items]
            return
        for key, item in value.items():
            inner = f"{path}.{quote_name(key)}" if path else quote_name(key)
            yield from _nested_lists(item, inner, key, depth + 1)
    elif isinstance(value, list) and value:
        yield f"{path}[]", name, value
        if isinstance(value[0], dict):
            for item in value[:3]:
                yield from _nested_lists(item, f"{path}[]", name, depth + 1)


def _is_range_list(items: Any) -> bool:
    return isinstance(items, list) and all(
        isinstance(item, list) and len(item) in (2, 3) and all(type(number) is int for number in item[:2])
        for item in items
    )


def _mark_roles(path: str, items: list[Any]) -> dict[str, str] | None:
    if items and _is_range_list(items):
        roles = {"start": f"{path}[0]", "end": f"{path}[1]"}
        return roles | ({"label": f"{path}[2]"} if all(len(item) == 3 for item in items) else {})
    objects = [item for item in items if isinstance(item, dict)]
    if not objects or len(objects) < len(items):
        return None
    fields: dict[str, str] = {}
    for item in objects[:5]:
        for name, value in item.items():
            fields.setdefault(fold_name(name), f"{path}.{quote_name(name)}")
            if isinstance(value, dict) and fold_name(name) in ("char_interval", "span", "offsets", "position"):
                inner = {fold_name(key): f"{path}.{quote_name(name)}.{quote_name(key)}" for key in value}
                fields |= {key: field for key, field in inner.items() if key not in fields}
    start, end = best_field("start", fields), best_field("end", fields)
    label, quote = best_field("label", fields), best_field("quote", fields)
    if not (start and (end or quote)) and not (label and quote and quote.rpartition(".")[2] != "value"):
        return None
    if start and not end and not quote:
        return None
    chosen: dict[str, str | None] = {"quote": quote, "label": label}
    if start:
        chosen = {"start": start, "end": end, **chosen}
    for role in ("severity", "explanation", "correction", "comment", "annotator"):
        field = best_field(role, {name: place for name, place in fields.items() if place not in chosen.values()})
        chosen[role] = field
    return {role: field for role, field in chosen.items() if field}


def guess_roles(
    rows: Sequence[Mapping[str, Any]], has_texts: bool, given: Mapping[str, str]
) -> tuple[dict[str, str], list[MarkList]]:
    """Guess the path of each role that is not given; also return lists that look like marks and were not chosen.

    `has_texts` states that the texts are known from a study, so that a table with IDs and numbers has scores.
    """
    names: dict[str, str] = {}
    for row in rows:
        for name in row:
            names.setdefault(fold_name(name), quote_name(name))
    taken = {field for path in given.values() for field in Path(path, rows[0] if rows else ()).top_fields}
    free = {name: field for name, field in names.items() if field.strip('"') not in taken}
    roles: dict[str, str] = {}
    lists = find_mark_lists(rows)
    chosen = [marks for marks in lists if marks.path == given.get("marks")]
    if "marks" in given and not chosen:
        roles |= {"start": f"{given['marks']}.start", "end": f"{given['marks']}.end"}
    is_nested = bool(given.keys() & {"start", "quote", "label", "end"})
    rest = lists
    if "marks" in given:
        rest = [marks for marks in lists if marks not in chosen]
    elif len(lists) == 1 and not is_nested:
        chosen, rest = lists, []
    for marks in chosen:
        roles |= dict(marks.roles)
    rest = [marks for marks in rest if not _is_used(marks, given)]
    top_of_marks = {field for marks in lists for field in Path(marks.path, rows[0] if rows else ()).top_fields}
    free = {name: field for name, field in free.items() if field.strip('"') not in top_of_marks}
    is_flat = not lists and not is_nested
    if is_flat and ("start" in free or "quote" in free or best_field("start", free)):
        for role in ("start", "end", "quote", "label", "severity", "explanation", "correction", "comment"):
            candidates = {name: field for name, field in free.items() if name != "text" and _is_filled(rows, field)}
            if field := best_field(role, candidates):
                roles.setdefault(role, field)
                free = {name: other for name, other in free.items() if other != field}
        if "start" in roles and "end" not in roles and "quote" not in roles:
            del roles["start"]
    elif is_flat and has_texts and "text" not in free and (best_field("label", free) and best_field("quote", free)):
        for role in ("quote", "label", "severity", "explanation", "correction", "comment"):
            if field := best_field(role, free):
                roles[role] = field
                free = {name: other for name, other in free.items() if other != field}
    for role in ("id", "annotator", "system", "text", "prompt"):
        if role in given or role in roles:
            continue
        texts = {name: field for name, field in free.items() if role != "text" or _is_text(rows, field)}
        scalars = {
            name: field for name, field in texts.items() if role in ("text", "prompt") or _is_scalar(rows, field)
        }
        if field := best_field(role, scalars):
            roles[role] = field
            free = {name: other for name, other in free.items() if other != field}
    if "text" not in roles and "text" not in given and not has_texts:
        roles |= _guess_nested_text(rows, free)
    is_unused = not is_flat or not {"label"} & (roles.keys() | given.keys())
    if is_unused and (field := best_field("label", free)) and _is_scalar(rows, field) and "answer.label" not in given:
        roles["answer.label"] = field
    if has_texts and "text" not in roles and not ({"start", "quote", "label"} & (roles.keys() | given.keys())):
        for name, field in free.items():
            if _is_number(rows, field):
                roles[f"score.{name}"] = field
    return {role: path for role, path in roles.items() if role not in given}, rest


def _is_used(marks: MarkList, given: Mapping[str, str]) -> bool:
    prefix = marks.path.removesuffix("[]").removesuffix("{}")
    return any(path.startswith(prefix) for path in given.values())


def _guess_nested_text(rows: Sequence[Mapping[str, Any]], free: Mapping[str, str]) -> dict[str, str]:
    """Return the path of a text in nested data: a chat, or a field of an object called response, output, ..."""
    for name in ("messages", "conversations", "conversation"):
        if name in free:
            return {"text": f"{free[name]}[-1]", "prompt": f"{free[name]}[-2]"}
    for outer in ("response", "output", "outputs", "result", "fields", "data", "completion", "doc"):
        for row in rows:
            value = row.get(free.get(outer, "").strip('"'))
            if isinstance(value, dict):
                inner = {fold_name(key): key for key, item in value.items() if isinstance(item, str)}
                if field := best_field("text", inner):
                    return {"text": f"{free[outer]}.{quote_name(field)}"}
    return {}


def _values(rows: Sequence[Mapping[str, Any]], field: str) -> list[Any]:
    values = [row.get(field.strip('"')) for row in rows]
    return [value for value in values if value is not None and value != ""]


def _is_text(rows: Sequence[Mapping[str, Any]], field: str) -> bool:
    values = _values(rows, field)
    return bool(values) and all(isinstance(value, str) for value in values)


def _is_filled(rows: Sequence[Mapping[str, Any]], field: str) -> bool:
    return bool(_values(rows, field))


def _is_scalar(rows: Sequence[Mapping[str, Any]], field: str) -> bool:
    return all(isinstance(value, str | int | float) for value in _values(rows, field))


def _is_number(rows: Sequence[Mapping[str, Any]], field: str) -> bool:
    values = _values(rows, field)
    return bool(values) and all(_as_number(value) is not None for value in values)


def _as_number(value: Any) -> float | None:
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return number if number == number else None


def leaf_paths(value: Any, path: str = "", depth: int = 0) -> Iterator[str]:
    """Yield the paths of the values in nested data, with `[]` for the items of lists."""
    if isinstance(value, dict) and value and depth < 4:
        for name, item in value.items():
            yield from leaf_paths(item, f"{path}.{quote_name(name)}" if path else quote_name(name), depth + 1)
    elif isinstance(value, list) and value and isinstance(value[0], dict) and depth < 4:
        for item in value[:3]:
            yield from leaf_paths(item, f"{path}[]", depth + 1)
    elif value not in (None, "", [], {}):
        yield path


def recognises(rows: Sequence[Mapping[str, Any]], fields: Sequence[str], lacks: Sequence[str]) -> bool:
    """Return True if each of the paths occurs in one of the rows, and none of `lacks` does.

    A path occurs if its value is present, also as an empty list or null.
    """

    def occurs(path: str) -> bool:
        return any(_occurs(row, path) for row in rows)

    return bool(fields) and all(map(occurs, fields)) and not any(map(occurs, lacks))


def _occurs(row: Mapping[str, Any], path: str) -> bool:
    compiled = Path(path, row)
    if compiled.get(row) is not None or any(name in row and "." not in path for name in (path, path.strip('"'))):
        return True
    return bool(
        compiled.depth
        and (positions := compiled.iterate(row))
        and any(compiled.get(row, position) is not None for position in positions)
    )

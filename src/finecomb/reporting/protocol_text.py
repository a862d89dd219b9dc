"""A protocol as people read it in the terminal."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Group, RenderableType
from rich.markdown import Markdown
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from finecomb.core.palette import LabelStyle, label_styles
from finecomb.core.protocol import Protocol
from finecomb.core.question import Question


def render_protocol(protocol: Protocol) -> RenderableType:
    """Labels, questions, rules, qualification."""
    parts: list[RenderableType] = [
        Text.assemble((protocol.title, "bold"), f"  {protocol.id}"),
        Text(protocol.source, "dim"),
        Text(protocol.summary),
    ]
    if protocol.labels:
        parts += [Text(""), *_render_label_groups(protocol)]
    for title, questions in _question_groups(protocol):
        if questions:
            parts += [Text(""), Text(title, "bold"), _question_table(questions)]
    if protocol.rules:
        parts += [Text(""), Text("Rules", "bold"), Markdown("\n".join(f"- {rule}" for rule in protocol.rules))]
    parts += [Text(""), Text(_describe_work(protocol), "dim")]
    return Group(*parts)


def _question_groups(protocol: Protocol) -> list[tuple[str, tuple[Question, ...]]]:
    return [
        ("Asked of every mark", protocol.questions),
        ("Asked of every part", protocol.unit_questions),
        ("Asked of the whole text", protocol.document_questions),
        ("Asked of annotators", protocol.survey),
    ]


def _render_label_groups(protocol: Protocol) -> Iterable[RenderableType]:
    look = label_styles(protocol)
    groups: list[tuple[str | None, str, str]] = [
        (group.name, group.title or group.name, group.gloss) for group in protocol.groups
    ]
    groups += [(None, "Labels", "")] if any(label.group is None for label in protocol.labels) else []
    for name, title, gloss in groups:
        yield Text.assemble((title, "bold"), f"  {gloss}" if gloss else "")
        rows = Table(box=None, padding=(0, 2, 0, 0), show_header=False)
        for label in protocol.labels:
            if label.group == name:
                rows.add_row(_flag_text(look[label.name]), Text(label.name, "bold"), Text(label.gloss))
        yield Padding(rows, (0, 0, 0, 2))


def _flag_text(look: LabelStyle) -> Text:
    return Text(look.flag, f"{look.slot.light_text} on {look.slot.light}")


def _question_table(questions: Iterable[Question]) -> Padding:
    rows = Table(box=None, padding=(0, 2, 0, 0), show_header=False)
    for question in questions:
        options = ", ".join(f"{option.value} {option.title}".strip() for option in question.options)
        when = f" (after {question.when.question} {', '.join(map(str, question.when.among))})" if question.when else ""
        optional = "" if question.required else ", optional"
        rows.add_row(
            Text(question.name, "bold"), Text(question.ask + when), Text(options or question.scale + optional, "dim")
        )
    return Padding(rows, (0, 0, 0, 2))


def _describe_work(protocol: Protocol) -> str:
    work = protocol.work
    facts = [f"work by {work.unit}", f"{work.annotators} annotators per text"]
    if protocol.qualification:
        test = protocol.qualification
        facts.append(f"qualification: {test.pass_at:g} of {test.max_points:g} points")
    if protocol.conditions:
        facts.append("conditions: " + ", ".join(condition.name for condition in protocol.conditions))
    if protocol.mode:
        facts.append(f"mode: {protocol.mode}")
    return " · ".join(facts)

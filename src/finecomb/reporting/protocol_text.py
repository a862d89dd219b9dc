"""Terminal display of a protocol."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Group, RenderableType
from rich.markdown import Markdown
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from finecomb.core.palette import label_styles
from finecomb.core.protocol import Protocol
from finecomb.reporting.figures.figure_model import format_count_with_noun


def render_protocol(protocol: Protocol) -> RenderableType:
    """Render the labels, questions, rules and workflow of a protocol for the terminal."""
    parts: list[RenderableType] = [
        Text.assemble((protocol.title, "bold"), f"  {protocol.id}"),
        Text(protocol.source, "dim"),
        Text(protocol.summary),
    ]
    if protocol.labels:
        parts += [Text(""), *_render_label_groups(protocol)]
    for title, questions in [
        ("Questions about each mark", protocol.questions),
        ("Questions about each unit", protocol.unit_questions),
        ("Questions about the whole text", protocol.document_questions),
        ("Survey of annotators", protocol.survey),
    ]:
        if questions:
            rows = Table(box=None, padding=(0, 2, 0, 0), show_header=False)
            for question in questions:
                options = ", ".join(f"{option.value} {option.title}".strip() for option in question.options)
                when = (
                    f" (if {question.when.question} is {', '.join(map(str, question.when.among))})"
                    if question.when
                    else ""
                )
                optional = "" if question.required else ", optional"
                rows.add_row(
                    Text(question.name, "bold"),
                    Text(question.ask + when),
                    Text(options or question.scale + optional, "dim"),
                )
            parts += [Text(""), Text(title, "bold"), Padding(rows, (0, 0, 0, 2))]
    if protocol.rules:
        parts += [Text(""), Text("Rules", "bold"), Markdown("\n".join(f"- {rule}" for rule in protocol.rules))]
    test, conditions = protocol.qualification, ", ".join(condition.name for condition in protocol.conditions)
    facts = [
        f"unit of work: {protocol.work.unit}",
        f"{format_count_with_noun(protocol.work.annotators, 'annotator')} per text",
        f"qualification: {test.pass_at:g} of {test.max_points:g} points" if test else "",
        f"conditions: {conditions}" if conditions else "",
        f"mode: {protocol.mode}" if protocol.mode else "",
    ]
    parts += [Text(""), Text(" · ".join(filter(None, facts)), "dim")]
    return Group(*parts)


def _render_label_groups(protocol: Protocol) -> Iterable[RenderableType]:
    style = label_styles(protocol)
    groups: list[tuple[str | None, str, str]] = [
        (group.name, group.title or group.name, group.gloss) for group in protocol.groups
    ]
    groups += [(None, "Labels", "")] if any(label.group is None for label in protocol.labels) else []
    for name, title, gloss in groups:
        yield Text.assemble((title, "bold"), f"  {gloss}" if gloss else "")
        rows = Table(box=None, padding=(0, 2, 0, 0), show_header=False)
        for label in protocol.labels:
            if label.group == name:
                rows.add_row(
                    Text(
                        style[label.name].flag, f"{style[label.name].slot.light_text} on {style[label.name].slot.light}"
                    ),
                    Text(label.name, "bold"),
                    Text(label.gloss),
                )
        yield Padding(rows, (0, 0, 0, 2))

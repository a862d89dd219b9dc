"""Actions of researchers. Each action runs on the writer thread and adds an entry to the audit log."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa
from pydantic_core import from_json

from finecomb.collection import access_storage, annotator_storage, audit_log_storage
from finecomb.collection.access_storage import Role
from finecomb.collection.annotator_meta import Bonus, with_bonus, with_display_name
from finecomb.collection.database import rows, tables
from finecomb.collection.database.connection import Transaction
from finecomb.collection.database.record_import import import_records
from finecomb.collection.database.tables import named_sql_placeholder
from finecomb.collection.task_meta import TaskMeta
from finecomb.core.errors import FinecombError, did_you_mean
from finecomb.core.protocol import Protocol
from finecomb.core.records import Document, Exclusion, Settings

if TYPE_CHECKING:
    from finecomb.collection.database.store import Store, StudyStatus


def _update_study_row(store: Store, transaction: Transaction, **values: Any) -> None:
    transaction.execute(sa.update(tables.study).values(**values).where(tables.study.c.key == store.key))


def set_study_status(store: Store, transaction: Transaction, by: str, state: StudyStatus) -> None:
    """Open, pause or close the study, or start a pilot."""
    _update_study_row(store, transaction, state=state)
    audit_log_storage.record_action(store, transaction, by, "set state", state=state)


def update_settings(store: Store, transaction: Transaction, by: str, settings: Settings) -> None:
    """Update the settings that the caller changed, and keep the others. Protocols in the settings must exist."""
    for id in settings.protocols:
        if id not in store.head.protocols:
            raise FinecombError(f"unknown protocol {id!r}{did_you_mean(id, store.head.protocols)}")
    before = store.head.settings
    changed = [name for name in Settings.model_fields if getattr(settings, name) != getattr(before, name)]
    now = _read_current_settings(store, transaction).model_copy(
        update={name: getattr(settings, name) for name in changed}
    )
    _update_study_row(store, transaction, settings=now.to_json())
    audit_log_storage.record_action(
        store, transaction, by, "set settings", **settings.model_dump(mode="json", include=set(changed))
    )


def _read_current_settings(store: Store, transaction: Transaction) -> Settings:
    """Return the stored settings, including changes by earlier jobs in the same transaction."""
    mine = tables.study.c.key == store.key
    (body,) = transaction.fetch_first(sa.select(tables.study.c.settings).where(mine)) or ("{}",)
    return Settings.model_validate_json(body)


def add_and_activate_protocol(store: Store, transaction: Transaction, by: str, protocol: Protocol) -> None:
    """Add a protocol, or a new version of one, and make it the current protocol.

    A protocol without annotations may be replaced. A protocol with annotations cannot be changed.
    """
    import_records(transaction, store.key, [protocol])
    before = _read_current_settings(store, transaction)
    others = tuple(id for id in before.protocols if id != protocol.id)
    settings = before.model_copy(update={"protocols": (protocol.id, *others)})
    _update_study_row(store, transaction, settings=settings.to_json())
    audit_log_storage.record_action(store, transaction, by, "changed the current protocol", protocol=protocol.id)


def add_documents(store: Store, transaction: Transaction, by: str, documents: Sequence[Document]) -> None:
    """Add several documents, all or none."""
    import_records(transaction, store.key, documents)
    audit_log_storage.record_action(
        store,
        transaction,
        by,
        "added documents",
        count=len(documents),
        first=[document.id for document in documents[:5]],
    )


# --- annotators and annotations ----------------------------------------------------------------------------------


def _build_exclusion(store: Store, by: str, reason: str) -> Exclusion:
    if not reason.strip():
        raise FinecombError("a reason is required; enter why the work is excluded")
    return Exclusion(by=by, when=datetime.fromtimestamp(store.clock(), UTC), reason=reason.strip())


def exclude_annotator(store: Store, transaction: Transaction, by: str, id: str, reason: str) -> None:
    """Exclude an annotator. Nothing is deleted, and their texts are assigned to others."""
    excluded = _build_exclusion(store, by, reason)
    annotator = annotator_storage.get_annotator(store, transaction, id)
    annotator_storage.replace_annotator(store, transaction, annotator.model_copy(update={"excluded": excluded}))
    audit_log_storage.record_action(store, transaction, by, "excluded annotator", annotator=id, reason=excluded.reason)


def restore_annotator(store: Store, transaction: Transaction, by: str, id: str) -> None:
    """Include an excluded annotator again."""
    annotator_storage.replace_annotator(
        store,
        transaction,
        annotator_storage.get_annotator(store, transaction, id).model_copy(update={"excluded": None}),
    )
    audit_log_storage.record_action(store, transaction, by, "restored annotator", annotator=id)


def set_display_name(store: Store, transaction: Transaction, by: str, id: str, name: str) -> None:
    """Set the display name of an annotator; an empty name removes it."""
    annotator_storage.replace_annotator(
        store, transaction, with_display_name(annotator_storage.get_annotator(store, transaction, id), name)
    )
    audit_log_storage.record_action(store, transaction, by, "named annotator", annotator=id, name=name)


def set_bonus(store: Store, transaction: Transaction, by: str, id: str, amount: float, reason: str) -> None:
    """Give an annotator a bonus; an amount of 0 removes it."""
    if amount and not reason.strip():
        raise FinecombError("a bonus requires a reason; enter one")
    bonus = Bonus(amount, reason.strip(), by, rows.iso_timestamp(store.clock()))
    annotator_storage.replace_annotator(
        store, transaction, with_bonus(annotator_storage.get_annotator(store, transaction, id), bonus)
    )
    audit_log_storage.record_action(
        store, transaction, by, "set bonus", annotator=id, amount=amount, reason=bonus.reason
    )


def set_bonuses(store: Store, transaction: Transaction, by: str, bonuses: Mapping[str, Bonus]) -> None:
    """Give several annotators a bonus, all or none."""
    for id, bonus in bonuses.items():
        set_bonus(store, transaction, by, id, bonus.amount, bonus.reason)


def exclude_annotation(store: Store, transaction: Transaction, by: str, id: str, reason: str) -> None:
    """Exclude one annotation. Nothing is deleted, and the text is assigned to another annotator."""
    excluded = _build_exclusion(store, by, reason)
    _set_annotation_exclusion(store, transaction, id, excluded)
    audit_log_storage.record_action(
        store, transaction, by, "excluded annotation", annotation=id, reason=excluded.reason
    )


def restore_annotation(store: Store, transaction: Transaction, by: str, id: str) -> None:
    """Include an excluded annotation again."""
    _set_annotation_exclusion(store, transaction, id, None)
    audit_log_storage.record_action(store, transaction, by, "restored annotation", annotation=id)


def keep_annotation_despite_rules(
    store: Store, transaction: Transaction, by: str, id: str, rules: Sequence[str]
) -> None:
    """Keep an annotation despite some screening rules. The rules are stored, so that they no longer apply to it."""
    mine = (tables.annotation.c.study == store.key, tables.annotation.c.id == id)
    row = transaction.fetch_first(sa.select(tables.annotation.c.rest).where(*mine))
    if row is None:
        raise FinecombError(f"unknown annotation {id!r}")
    rest = from_json(row[0])
    circumstances = TaskMeta.from_meta(rest.get("meta", {}))
    decided = replace(circumstances, kept=tuple(sorted({*circumstances.kept, *rules})))
    body = rows.dump_json(rest | {"meta": decided.to_meta()})
    transaction.execute(sa.update(tables.annotation).values(rest=body).where(*mine))
    audit_log_storage.record_action(store, transaction, by, "kept annotation", annotation=id, rules=list(rules))


def apply_screening_decisions(
    store: Store,
    transaction: Transaction,
    by: str,
    exclude: Iterable[str],
    people: Iterable[str],
    keep: Mapping[str, Sequence[str]],
    reason: str,
) -> None:
    """Exclude annotations and people, and keep other annotations despite screening rules, all or none."""
    for id in exclude:
        exclude_annotation(store, transaction, by, id, reason)
    for id in people:
        exclude_annotator(store, transaction, by, id, reason)
    for id, rules in keep.items():
        keep_annotation_despite_rules(store, transaction, by, id, rules)


def _set_annotation_exclusion(store: Store, transaction: Transaction, id: str, excluded: Exclusion | None) -> None:
    mine = (tables.annotation.c.study == store.key, tables.annotation.c.id == id)
    row = transaction.fetch_first(sa.select(tables.annotation.c.rest, tables.annotation.c.status).where(*mine))
    if row is None:
        raise FinecombError(f"unknown annotation {id!r}")
    rest = from_json(row[0])
    rest.pop("excluded", None)
    if excluded:
        rest["excluded"] = excluded.model_dump(mode="json")
    aside = int(excluded is not None or row[1] == "excluded")
    transaction.execute(sa.update(tables.annotation).values(rest=rows.dump_json(rest), excluded=aside).where(*mine))


# --- links -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PersonalLink:
    """New personal link. Its token is shown once and not stored."""

    annotator: str
    token: str


def create_personal_links(
    store: Store, transaction: Transaction, by: str, count: int = 0, names: Iterable[str] = ()
) -> list[PersonalLink]:
    """Create personal links for named people, new or known, and for `count` new people without names."""
    conditions = annotator_storage.conditions_by_annotator(store, transaction)
    wanted = [
        *(
            name if name in conditions else annotator_storage.create_annotator(store, transaction, name).id
            for name in names
        ),
        *(annotator_storage.create_annotator(store, transaction).id for _ in range(count)),
    ]
    links = [PersonalLink(id, access_storage.create_link_token(store, transaction, "annotator", id)) for id in wanted]
    audit_log_storage.record_action(store, transaction, by, "made personal links", annotators=wanted)
    return links


def revoke_annotator_links(store: Store, transaction: Transaction, by: str, annotator: str) -> None:
    """Revoke the links of an annotator and sign them out."""
    mine = (tables.link.c.study == store.key, tables.link.c.kind == "annotator", tables.link.c.who == annotator)
    transaction.execute(
        sa.update(tables.link).values(revoked=store.clock()).where(*mine, tables.link.c.revoked.is_(None))
    )
    access_storage.end_all_sessions(store, transaction, "annotator", annotator)
    audit_log_storage.record_action(store, transaction, by, "revoked links", annotator=annotator)


_SELECT_LINK_USAGE = (
    sa.select(tables.link.c.who, sa.func.count(), sa.func.max(tables.link.c.used))
    .where(
        tables.link.c.study == named_sql_placeholder("study"),
        tables.link.c.kind == "annotator",
        tables.link.c.revoked.is_(None),
    )
    .group_by(tables.link.c.who)
)


def link_usage_by_annotator(store: Store, transaction: Transaction) -> dict[str, tuple[int, float | None]]:
    """Return the number of valid links of each annotator, and the time at which one was last used."""
    return {who: (count, used) for who, count, used in transaction.fetch_all(_SELECT_LINK_USAGE, study=store.key)}


def replace_or_remove_open_link(store: Store, transaction: Transaction, by: str, on: bool) -> None:
    """Create an open link that replaces the previous one, or remove the open link."""
    joining = tables.study.c.joining
    number = (transaction.fetch_first(sa.select(joining).where(tables.study.c.key == store.key)) or (0,))[0]
    _update_study_row(store, transaction, joining=abs(number) + 1 if on else -abs(number))
    audit_log_storage.record_action(
        store, transaction, by, "replaced the open link" if on else "turned off the open link"
    )


# --- researchers -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Researcher:
    """Researcher with access to the study."""

    id: str
    role: Role
    created: float


_SELECT_RESEARCHERS = (
    sa.select(tables.researcher.c.id, tables.researcher.c.role, tables.researcher.c.created)
    .where(tables.researcher.c.study == named_sql_placeholder("study"), tables.researcher.c.removed.is_(None))
    .order_by(tables.researcher.c.created)
)


def list_researchers(store: Store, transaction: Transaction) -> list[Researcher]:
    """Return the researchers with access to the study."""
    return [Researcher(*row) for row in transaction.fetch_all(_SELECT_RESEARCHERS, study=store.key)]


def invite_researcher(store: Store, transaction: Transaction, by: str, id: str, role: Role) -> str:
    """Return the token of a single-use invitation, valid for a week. It replaces earlier invitations."""
    _revoke_invitations(store, transaction, id)
    token = access_storage.create_link_token(
        store, transaction, "researcher", id, role, access_storage.INVITATION_LIFETIME_SECONDS
    )
    audit_log_storage.record_action(store, transaction, by, "invited researcher", researcher=id, role=role)
    return token


def renew_invitation(store: Store, transaction: Transaction, by: str, id: str) -> str:
    """Return the token of a link with which a researcher can sign in again in the same role."""
    roles = {person.id: person.role for person in list_researchers(store, transaction)}
    if id not in roles:
        raise FinecombError(
            f"unknown researcher {id!r}{did_you_mean(id, roles) or '; an owner must invite them first'}"
        )
    return invite_researcher(store, transaction, by, id, roles[id])


def set_researcher_role(store: Store, transaction: Transaction, by: str, id: str, role: Role) -> None:
    """Change the role of a researcher. The study must keep an owner."""
    _require_remaining_owner(store, transaction, id, role)
    _revoke_invitations(store, transaction, id)
    access_storage.add_or_update_researcher(store, transaction, id, role)
    audit_log_storage.record_action(store, transaction, by, "set role", researcher=id, role=role)


def remove_researcher(store: Store, transaction: Transaction, by: str, id: str) -> None:
    """Remove a researcher, or an unused invitation. The study must keep an owner."""
    invited = _revoke_invitations(store, transaction, id)
    if id in {researcher.id for researcher in list_researchers(store, transaction)} or not invited:
        _require_remaining_owner(store, transaction, id, None)
    mine = (tables.researcher.c.study == store.key, tables.researcher.c.id == id)
    transaction.execute(sa.update(tables.researcher).values(removed=store.clock()).where(*mine))
    access_storage.end_all_sessions(store, transaction, "researcher", id)
    audit_log_storage.record_action(store, transaction, by, "removed researcher", researcher=id)


def _revoke_invitations(store: Store, transaction: Transaction, id: str) -> int:
    """Revoke the unused invitations of a researcher, and return their number."""
    mine = (tables.link.c.study == store.key, tables.link.c.kind == "researcher", tables.link.c.who == id)
    unused = (*mine, tables.link.c.used.is_(None), tables.link.c.revoked.is_(None))
    return int(transaction.execute(sa.update(tables.link).values(revoked=store.clock()).where(*unused)).rowcount)


def _require_remaining_owner(store: Store, transaction: Transaction, id: str, role: Role | None) -> None:
    everybody = {researcher.id: researcher.role for researcher in list_researchers(store, transaction)}
    if id not in everybody:
        raise FinecombError(f"unknown researcher {id!r}{did_you_mean(id, everybody)}")
    if role != "owner" and [who for who, has in everybody.items() if has == "owner"] == [id]:
        raise FinecombError(f"{id!r} is the only owner; make another researcher an owner first")

import type { Body, ErrorResponse, SaveResponse } from "../../lib/api-types";
import type { EntryKey } from "../work/work";

/** Change made by the annotator. */
export interface Change {
  readonly key: EntryKey | "finish";
  readonly body: Body | null;
  /** ID of the change, the same for every attempt. */
  readonly change: string;
  readonly active: number;
  /** Time of the change in milliseconds; increases within a page. */
  readonly at: number;
}
/** Change on its way to the server. */
export interface QueuedChange extends Omit<Change, "at"> {
  /** Version that was visible when the change was made, or the version that an attempted change will become. */
  readonly base: number;
  /** `tried` changes may already be on the server and are never altered; `refused` ones wait for a decision. */
  readonly state: "waiting" | "tried" | "refused";
  readonly problem?: ErrorResponse;
}
/** Unsent changes of one task in order, versions on the server, and the time of the last change of each entry. */
export interface Outbox {
  readonly changes: readonly QueuedChange[];
  readonly versions: Readonly<Record<string, number>>;
  readonly latest: Readonly<Record<string, number>>;
}
export const EMPTY_OUTBOX: Outbox = { changes: [], versions: {}, latest: {} };

/**
 * Add a change. It replaces an earlier one of the same entry that was not sent or was rejected, and keeps its base
 * version, so that changes from elsewhere in between are a conflict.
 */
export function enqueue(outbox: Outbox, { key, body, change, active, at }: Change): Outbox {
  const earlier = outbox.changes.filter((each) => each.key === key);
  const unsent = earlier.find((each) => each.state === "waiting");
  const others = outbox.changes.filter((each) => each.key !== key || each.state === "tried");
  const rest: Outbox = { ...outbox, changes: others, latest: { ...outbox.latest, [key]: at } };
  const version = outbox.versions[key] ?? 0;
  const isKnown = version > 0 || others.some((each) => each.key === key);
  if (body === null && key !== "finish" && !isKnown) return rest;
  const base = earlier.at(-1)?.base ?? version;
  const fresh: QueuedChange = { key, body, change: unsent?.change ?? change, base, active, state: "waiting" };
  return { ...rest, changes: [...others, fresh] };
}

/** Add a change noted by an earlier page, unless it was added before or the entry has changed since. */
export const recoverChange = (outbox: Outbox, change: Change): Outbox =>
  change.at <= (outbox.latest[change.key] ?? 0) ? outbox : enqueue(outbox, change);

/** Return the change to send now and mark it as tried. A submission waits for all other changes, also rejected ones. */
export function startNextAttempt(outbox: Outbox): [Outbox, QueuedChange | undefined] {
  const next = outbox.changes.find(
    (each) => each.state !== "refused" && (each.key !== "finish" || outbox.changes.length === 1),
  );
  if (!next || next.state === "tried") return [outbox, next];
  const tried: QueuedChange = { ...next, state: "tried" };
  return [replaceChange(outbox, next, tried), tried];
}

/** Handle a stored change. Later changes of the same entry now build on it. */
export const confirmSaved = (outbox: Outbox, { change, version }: SaveResponse): Outbox => {
  const done = outbox.changes.find((each) => each.change === change);
  if (!done) return outbox;
  const rest = outbox.changes.filter((each) => each !== done);
  const changes = rest.map((each) => (each.key === done.key ? { ...each, base: version } : each));
  return withVersion({ ...outbox, changes }, done.key, version);
};

/**
 * Handle a rejected change. A later change of the same entry replaces it, but not after a conflict: no change is
 * overwritten unseen.
 */
export function markRefused(outbox: Outbox, change: string, problem: ErrorResponse): Outbox {
  const refused = outbox.changes.find((each) => each.change === change);
  if (!refused) return outbox;
  const later = outbox.changes.find((each) => each.key === refused.key && each !== refused);
  const stored = problem.code === "conflict" ? { [refused.key]: problem.stored?.version ?? 0 } : {};
  const rest = mergeVersions({ ...outbox, changes: outbox.changes.filter((each) => each !== later) }, stored);
  if (!later) return replaceChange(rest, refused, { ...refused, state: "refused", problem });
  return replaceChange(rest, refused, problem.code === "conflict" ? { ...later, state: "refused", problem } : later);
}

/** Resend a rejected change as a new one; after a conflict, on top of the server's version. */
export const resendRefused = (outbox: Outbox, key: string, change: string): Outbox => ({
  ...outbox,
  changes: outbox.changes.map((each) => {
    if (each.key !== key || each.state !== "refused") return each;
    const { problem, ...rest } = each;
    const base = problem?.code === "conflict" ? (problem.stored?.version ?? 0) : each.base;
    return { ...rest, base, change, state: "waiting" };
  }),
});

/** Drop a change. */
export const dropChange = (outbox: Outbox, key: string): Outbox => ({
  ...outbox,
  changes: outbox.changes.filter((each) => each.key !== key),
});

/** Drop a rejected change in favour of the server's version, unless it was changed again. */
export function dropRefused(outbox: Outbox, key: string, version: number | undefined): [Outbox, boolean] {
  if (!outbox.changes.some((each) => each.key === key && each.state === "refused")) return [outbox, false];
  const rest = dropChange(outbox, key);
  return [version === undefined ? rest : withVersion(rest, key, version), true];
}

/** Record the version of an entry that the page shows. */
const withVersion = (outbox: Outbox, key: string, version: number): Outbox => ({
  ...outbox,
  versions: { ...outbox.versions, [key]: version },
});

/** Record versions on the server; they only increase. Earlier changes keep their base version. */
export const mergeVersions = (outbox: Outbox, versions: Readonly<Record<string, number>>): Outbox => ({
  ...outbox,
  versions: {
    ...outbox.versions,
    ...Object.fromEntries(
      Object.entries(versions).map(([key, version]) => [key, Math.max(version, outbox.versions[key] ?? 0)]),
    ),
  },
});

/** Return the latest body of every entry that is not on the server yet. */
export const unsentBodies = (outbox: Outbox): Map<EntryKey, Body | null> =>
  new Map(outbox.changes.flatMap((each) => (each.key === "finish" ? [] : [[each.key, each.body] as const])));

const replaceChange = (outbox: Outbox, old: QueuedChange, replacement: QueuedChange): Outbox => ({
  ...outbox,
  changes: outbox.changes.map((each) => (each === old ? replacement : each)),
});

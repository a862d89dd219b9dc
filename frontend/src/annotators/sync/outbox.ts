import type { Body, ErrorResponse, SaveResponse } from "../../lib/api-types";
import type { EntryKey } from "../work/work";

/** A change as somebody made it. */
export interface Change {
  readonly key: EntryKey | "finish";
  readonly body: Body | null;
  /** Its id: the same however often it is sent. */
  readonly change: string;
  readonly active: number;
  /** When it was made, in milliseconds; later for a later change of one page. */
  readonly at: number;
}
/** A change on its way to the server. */
export interface QueuedChange extends Omit<Change, "at"> {
  /** The version that somebody saw when changing it; behind a change that was tried, the version that one becomes. */
  readonly base: number;
  /** `tried` changes may be on the server already and are never altered; `refused` ones wait for a decision. */
  readonly state: "waiting" | "tried" | "refused";
  readonly problem?: ErrorResponse;
}
/** What one task still has to send, in order, the versions the server has, and when each entry was last changed here. */
export interface Outbox {
  readonly changes: readonly QueuedChange[];
  readonly versions: Readonly<Record<string, number>>;
  readonly latest: Readonly<Record<string, number>>;
}
export const EMPTY_OUTBOX: Outbox = { changes: [], versions: {}, latest: {} };

/**
 * Add a change. It takes the place of an earlier one of the same entry that was not sent yet, or was refused, and
 * changes the same version as that one: what the server got from elsewhere in between is a conflict.
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

/** Add a change that an earlier page noted, unless it was added before or the entry was changed again since. */
export const recoverChange = (outbox: Outbox, change: Change): Outbox =>
  change.at <= (outbox.latest[change.key] ?? 0) ? outbox : enqueue(outbox, change);

/** The change to send now, marked as tried. Handing in waits until nothing else is left, refused changes included. */
export function startNextAttempt(outbox: Outbox): [Outbox, QueuedChange | undefined] {
  const next = outbox.changes.find(
    (each) => each.state !== "refused" && (each.key !== "finish" || outbox.changes.length === 1),
  );
  if (!next || next.state === "tried") return [outbox, next];
  const tried: QueuedChange = { ...next, state: "tried" };
  return [replaceChange(outbox, next, tried), tried];
}

/** The server has it on disk. A later change of the same entry was made on top of it. */
export const confirmSaved = (outbox: Outbox, { change, version }: SaveResponse): Outbox => {
  const done = outbox.changes.find((each) => each.change === change);
  if (!done) return outbox;
  const rest = outbox.changes.filter((each) => each !== done);
  const changes = rest.map((each) => (each.key === done.key ? { ...each, base: version } : each));
  return withVersion({ ...outbox, changes }, done.key, version);
};

/**
 * The server refused it. A later change of the same entry goes on in its place, but not over a conflict: nobody's
 * change is overwritten unseen.
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

/** Send a refused change after all, as a new one; after a conflict on top of what the server had. */
export const resendRefused = (outbox: Outbox, key: string, change: string): Outbox => ({
  ...outbox,
  changes: outbox.changes.map((each) => {
    if (each.key !== key || each.state !== "refused") return each;
    const { problem, ...rest } = each;
    const base = problem?.code === "conflict" ? (problem.stored?.version ?? 0) : each.base;
    return { ...rest, base, change, state: "waiting" };
  }),
});

/** Forget a change. */
export const dropChange = (outbox: Outbox, key: string): Outbox => ({
  ...outbox,
  changes: outbox.changes.filter((each) => each.key !== key),
});

/** Forget a refused change for what the server has; not when it was changed again meanwhile. */
export function dropRefused(outbox: Outbox, key: string, version: number | undefined): [Outbox, boolean] {
  if (!outbox.changes.some((each) => each.key === key && each.state === "refused")) return [outbox, false];
  const rest = dropChange(outbox, key);
  return [version === undefined ? rest : withVersion(rest, key, version), true];
}

/** The page shows that version of an entry from now on, whatever else the server has. */
const withVersion = (outbox: Outbox, key: string, version: number): Outbox => ({
  ...outbox,
  versions: { ...outbox.versions, [key]: version },
});

/** Take note of versions that the server has; they only grow. Changes made before stay changes of what was seen then. */
export const mergeVersions = (outbox: Outbox, versions: Readonly<Record<string, number>>): Outbox => ({
  ...outbox,
  versions: {
    ...outbox.versions,
    ...Object.fromEntries(
      Object.entries(versions).map(([key, version]) => [key, Math.max(version, outbox.versions[key] ?? 0)]),
    ),
  },
});

/** The latest body of every entry that is not on the server yet. */
export const unsentBodies = (outbox: Outbox): Map<EntryKey, Body | null> =>
  new Map(outbox.changes.flatMap((each) => (each.key === "finish" ? [] : [[each.key, each.body] as const])));

const replaceChange = (outbox: Outbox, old: QueuedChange, replacement: QueuedChange): Outbox => ({
  ...outbox,
  changes: outbox.changes.map((each) => (each === old ? replacement : each)),
});

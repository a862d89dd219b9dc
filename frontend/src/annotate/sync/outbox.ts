import type { Body, Problem, Saved } from "../../lib/wire";
import type { Key } from "../model/work";

/** A change on its way to the server. */
export interface Queued {
  readonly key: Key | "finish";
  readonly body: Body | null;
  /** Its id: the same however often it is sent. */
  readonly change: string;
  /** The version that it changes; known from the first attempt on. */
  readonly base: number;
  readonly active: number;
  /** `tried` changes may be on the server already and are never altered; `refused` ones wait for a decision. */
  readonly state: "waiting" | "tried" | "refused";
  readonly problem?: Problem;
}
/** What one task still has to send, in order, and the versions the server has. */
export interface Outbox {
  readonly changes: readonly Queued[];
  readonly versions: Readonly<Record<string, number>>;
}
export const EMPTY: Outbox = { changes: [], versions: {} };

/** Add a change. It takes the place of an earlier one of the same entry that was not sent yet, or was refused. */
export function enqueue(outbox: Outbox, key: Queued["key"], body: Body | null, active: number, change: string): Outbox {
  const others = outbox.changes.filter((each) => each.key !== key || each.state === "tried");
  const unsent = outbox.changes.find((each) => each.key === key && each.state === "waiting");
  const isKnown = (outbox.versions[key] ?? 0) > 0 || others.some((each) => each.key === key);
  if (body === null && key !== "finish" && !isKnown) return { ...outbox, changes: others };
  const fresh: Queued = { key, body, change: unsent?.change ?? change, base: 0, active, state: "waiting" };
  return { ...outbox, changes: [...others, fresh] };
}

/** The change to send now, marked as tried. Handing in waits until nothing else is left, refused changes included. */
export function attempt(outbox: Outbox): [Outbox, Queued | undefined] {
  const next = outbox.changes.find(
    (each) => each.state !== "refused" && (each.key !== "finish" || outbox.changes.length === 1),
  );
  if (!next || next.state === "tried") return [outbox, next];
  const tried: Queued = { ...next, state: "tried", base: outbox.versions[next.key] ?? 0 };
  return [replace(outbox, next, tried), tried];
}

/** The server has it on disk. */
export const settle = (outbox: Outbox, { change, version }: Saved): Outbox => {
  const done = outbox.changes.find((each) => each.change === change);
  if (!done) return outbox;
  return known({ ...outbox, changes: outbox.changes.filter((each) => each !== done) }, { [done.key]: version });
};

/**
 * The server refused it. A later change of the same entry goes on in its place, but not over a conflict: nobody's
 * change is overwritten unseen.
 */
export function refuse(outbox: Outbox, change: string, problem: Problem): Outbox {
  const refused = outbox.changes.find((each) => each.change === change);
  if (!refused) return outbox;
  const later = outbox.changes.find((each) => each.key === refused.key && each !== refused);
  const stored = problem.code === "conflict" ? { [refused.key]: problem.stored?.version ?? 0 } : {};
  const rest = known({ ...outbox, changes: outbox.changes.filter((each) => each !== later) }, stored);
  if (!later) return replace(rest, refused, { ...refused, state: "refused", problem });
  return replace(rest, refused, problem.code === "conflict" ? { ...later, state: "refused", problem } : later);
}

/** Send a refused change after all, as a new one on top of what the server has. */
export const insist = (outbox: Outbox, key: string, change: string): Outbox => ({
  ...outbox,
  changes: outbox.changes.map((each) => {
    if (each.key !== key || each.state !== "refused") return each;
    const { problem: _, ...rest } = each;
    return { ...rest, change, state: "waiting" };
  }),
});

/** Forget a change. */
export const drop = (outbox: Outbox, key: string): Outbox => ({
  ...outbox,
  changes: outbox.changes.filter((each) => each.key !== key),
});

/** Take note of versions that the server has; they only grow. */
export const known = (outbox: Outbox, versions: Readonly<Record<string, number>>): Outbox => ({
  ...outbox,
  versions: {
    ...outbox.versions,
    ...Object.fromEntries(
      Object.entries(versions).map(([key, version]) => [key, Math.max(version, outbox.versions[key] ?? 0)]),
    ),
  },
});

/** The latest body of every entry that is not on the server yet. */
export const unsent = (outbox: Outbox): Map<Key, Body | null> =>
  new Map(outbox.changes.flatMap((each) => (each.key === "finish" ? [] : [[each.key, each.body] as const])));

const replace = (outbox: Outbox, old: Queued, now: Queued): Outbox => ({
  ...outbox,
  changes: outbox.changes.map((each) => (each === old ? now : each)),
});

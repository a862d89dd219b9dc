import type { Entry, Task } from "../../lib/api-types";
import type { Sources, UnitKey } from "../work/work";

/** Part of a text that is judged part by part. */
export interface TaskPart {
  readonly key: UnitKey;
  readonly start: number;
  readonly end: number;
  readonly title: string;
}

/** Return the parts of a text in page offsets. */
export function taskParts(task: Task, sources: Sources): TaskPart[] {
  const { toUtf16 } = sources.text?.offsets ?? { toUtf16: (at: number) => at };
  return (task.parts ?? []).map(({ start, end, title }) => ({
    key: `units/${start}-${end}`,
    start: toUtf16(start),
    end: toUtf16(end),
    title,
  }));
}

/** Entries of a task on the server, by key. */
export const taskEntries = (task: Task): Map<string, Entry> => {
  const withKeys = (kind: string, entries: readonly Entry[]) =>
    entries.map((entry): [string, Entry] => [`${kind}/${entry.id}`, entry]);
  return new Map([
    ...withKeys("marks", task.marks),
    ...withKeys("units", task.units),
    ...withKeys("decisions", task.decisions),
    ...(task.answers ? [["answers", task.answers] as [string, Entry]] : []),
  ]);
};

/** Version of each entry on the server. */
export const taskVersions = (task: Task): Record<string, number> =>
  Object.fromEntries([...taskEntries(task)].map(([key, { version }]) => [key, version]));

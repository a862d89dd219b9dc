import type { Change } from "./outbox";

/** A change that is not in the store yet. */
export interface JournalEntry extends Change {
  readonly task: string;
}

/**
 * Changes on their way into the store. The store answers later, and a page may be closed before; writing here is done
 * when the call returns.
 */
export class Journal {
  private readonly prefix = "finecomb/noted/";

  constructor(private readonly storage: Storage | undefined) {}

  /** Note a change; the function returned strikes it out. */
  add(entry: JournalEntry): () => void {
    const name = `${this.prefix}${entry.at}-${entry.change}`;
    try {
      this.storage?.setItem(name, JSON.stringify(entry));
    } catch {
      // no room: the store will say so
    }
    return () => this.storage?.removeItem(name);
  }

  /** What was noted and never struck out, in the order of noting, with the way to do so. */
  pendingEntries(): [JournalEntry, () => void][] {
    const names = Object.keys(this.storage ?? {})
      .filter((name) => name.startsWith(this.prefix))
      .sort();
    return names.flatMap((name): [JournalEntry, () => void][] => {
      const stored = this.storage!.getItem(name); // null when another tab has struck it out meanwhile
      return stored === null ? [] : [[JSON.parse(stored) as JournalEntry, () => this.storage!.removeItem(name)]];
    });
  }
}

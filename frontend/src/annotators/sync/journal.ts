import type { Change } from "./outbox";

/** Change that is not in the store yet. */
export interface JournalEntry extends Change {
  readonly task: string;
}

/**
 * Changes on their way into the store. The store is asynchronous and the page may close before it finishes; writing
 * here is synchronous.
 */
export class Journal {
  private readonly prefix = "finecomb/noted/";

  constructor(private readonly storage: Storage | undefined) {}

  /** Note a change; the returned function deletes it. */
  add(entry: JournalEntry): () => void {
    const name = `${this.prefix}${entry.at}-${entry.change}`;
    try {
      this.storage?.setItem(name, JSON.stringify(entry));
    } catch {
      // storage is full; the store will report it
    }
    return () => this.storage?.removeItem(name);
  }

  /** Return changes that were noted and not deleted, in order, each with a function that deletes it. */
  pendingEntries(): [JournalEntry, () => void][] {
    const names = Object.keys(this.storage ?? {})
      .filter((name) => name.startsWith(this.prefix))
      .sort();
    return names.flatMap((name): [JournalEntry, () => void][] => {
      const stored = this.storage!.getItem(name); // null if another tab has deleted it
      return stored === null ? [] : [[JSON.parse(stored) as JournalEntry, () => this.storage!.removeItem(name)]];
    });
  }
}

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
  note(noted: JournalEntry): () => void {
    const name = `${this.prefix}${noted.at}-${noted.change}`;
    try {
      this.storage?.setItem(name, JSON.stringify(noted));
    } catch {
      // no room: the store will say so
    }
    return () => this.storage?.removeItem(name);
  }

  /** What was noted and never struck out, in the order of noting, with the way to do so. */
  left(): [JournalEntry, () => void][] {
    const names = Object.keys(this.storage ?? {})
      .filter((name) => name.startsWith(this.prefix))
      .sort();
    return names.flatMap((name): [JournalEntry, () => void][] => {
      const noted = this.storage!.getItem(name); // null when another tab has struck it out meanwhile
      return noted === null ? [] : [[JSON.parse(noted) as JournalEntry, () => this.storage!.removeItem(name)]];
    });
  }
}

import type { Body } from "../../lib/wire";
import type { Queued } from "./outbox";

/** A change that is not in the store yet. */
export interface Noted {
  readonly task: string;
  readonly key: Queued["key"];
  readonly body: Body | null;
  readonly active: number;
  readonly change: string;
}

/**
 * Changes on their way into the store. The store answers later, and a page may be closed before; writing here is done
 * when the call returns.
 */
export class Journal {
  private readonly prefix = "finecomb/noted/";
  private count = 0;

  constructor(private readonly storage: Storage | undefined) {}

  /** Note a change; the function returned strikes it out. */
  note(noted: Noted): () => void {
    const name = `${this.prefix}${Date.now()}-${String(this.count++).padStart(6, "0")}-${noted.change}`;
    try {
      this.storage?.setItem(name, JSON.stringify(noted));
    } catch {
      // no room: the store will say so
    }
    return () => this.storage?.removeItem(name);
  }

  /** What was noted and never struck out, in the order of noting, with the way to do so. */
  left(): [Noted, () => void][] {
    const names = Object.keys(this.storage ?? {})
      .filter((name) => name.startsWith(this.prefix))
      .sort();
    return names.map((name) => [
      JSON.parse(this.storage!.getItem(name)!) as Noted,
      () => this.storage!.removeItem(name),
    ]);
  }
}

import type { Answers } from "../../lib/api-types";

/** What the device keeps of a page until the server knows that it is done. */
export interface Draft {
  readonly answers: Answers;
  readonly active: number;
  /** Set once the page was done: the same however often it is sent. */
  readonly change?: string;
}

const PREFIX = "finecomb/step/";

/** Drafts of pages, one for each step of each person; in memory where the device keeps nothing. */
export class Drafts {
  private readonly memory = new Map<string, string>();

  constructor(private readonly storage: Storage | undefined) {}

  read(annotator: string, step: string): Draft | undefined {
    const name = storageKey(annotator, step);
    const stored = this.memory.get(name) ?? this.storage?.getItem(name);
    try {
      return stored ? (JSON.parse(stored) as Draft) : undefined;
    } catch {
      return undefined; // written by something else
    }
  }

  /** Whether it is kept beyond this page. */
  write(annotator: string, step: string, draft: Draft): boolean {
    const [name, serialized] = [storageKey(annotator, step), JSON.stringify(draft)];
    this.memory.set(name, serialized);
    try {
      this.storage?.setItem(name, serialized);
    } catch {
      return false;
    }
    return this.storage !== undefined;
  }

  remove(annotator: string, step: string): void {
    const name = storageKey(annotator, step);
    this.memory.delete(name);
    this.storage?.removeItem(name);
  }
}

const storageKey = (annotator: string, step: string): string => `${PREFIX}${annotator}/${step}`;

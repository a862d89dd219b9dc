import type { Answers } from "../../lib/api-types";

/** Page draft stored in the browser until the server has it. */
export interface Draft {
  readonly answers: Answers;
  readonly active: number;
  /** Set when the page is submitted. Retries use the same ID. */
  readonly change?: string;
}

const PREFIX = "finecomb/step/";

/** Page drafts, one per step and person. They stay in memory if the browser has no storage. */
export class Drafts {
  private readonly memory = new Map<string, string>();

  constructor(private readonly storage: Storage | undefined) {}

  read(annotator: string, step: string): Draft | undefined {
    const name = storageKey(annotator, step);
    const stored = this.memory.get(name) ?? this.storage?.getItem(name);
    try {
      return stored ? (JSON.parse(stored) as Draft) : undefined;
    } catch {
      return undefined; // written by other code
    }
  }

  /** True if the draft survives closing the page. */
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

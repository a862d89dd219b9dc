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
  private readonly passing = new Map<string, string>();

  constructor(private readonly storage: Storage | undefined) {}

  read(annotator: string, step: string): Draft | undefined {
    const name = nameOf(annotator, step);
    const kept = this.passing.get(name) ?? this.storage?.getItem(name);
    try {
      return kept ? (JSON.parse(kept) as Draft) : undefined;
    } catch {
      return undefined; // written by something else
    }
  }

  /** Whether it is kept beyond this page. */
  write(annotator: string, step: string, draft: Draft): boolean {
    const [name, kept] = [nameOf(annotator, step), JSON.stringify(draft)];
    this.passing.set(name, kept);
    try {
      this.storage?.setItem(name, kept);
    } catch {
      return false;
    }
    return this.storage !== undefined;
  }

  strike(annotator: string, step: string): void {
    const name = nameOf(annotator, step);
    this.passing.delete(name);
    this.storage?.removeItem(name);
  }
}

const nameOf = (annotator: string, step: string): string => `${PREFIX}${annotator}/${step}`;

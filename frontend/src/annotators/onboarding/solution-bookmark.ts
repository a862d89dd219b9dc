/** Bookmark of the open solution, so that a reload returns to it. */
export class SolutionBookmark {
  constructor(private readonly storage: Storage | undefined) {}

  read(annotator: string): string | undefined {
    return this.storage?.getItem(storageKey(annotator)) ?? undefined;
  }
  write(annotator: string, task: string): void {
    try {
      this.storage?.setItem(storageKey(annotator), task);
    } catch {
      // storage is full; a reload continues with the next exercise
    }
  }
  remove(annotator: string): void {
    this.storage?.removeItem(storageKey(annotator));
  }
}

const storageKey = (annotator: string): string => `finecomb/looking/${annotator}`;

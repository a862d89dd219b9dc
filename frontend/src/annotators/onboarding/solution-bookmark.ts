/** Which solution somebody is looking at, so that a reload leads back to it. */
export class SolutionBookmark {
  constructor(private readonly storage: Storage | undefined) {}

  read(annotator: string): string | undefined {
    return this.storage?.getItem(storageKey(annotator)) ?? undefined;
  }
  write(annotator: string, task: string): void {
    try {
      this.storage?.setItem(storageKey(annotator), task);
    } catch {
      // no room: a reload leads on to the next exercise
    }
  }
  remove(annotator: string): void {
    this.storage?.removeItem(storageKey(annotator));
  }
}

const storageKey = (annotator: string): string => `finecomb/looking/${annotator}`;

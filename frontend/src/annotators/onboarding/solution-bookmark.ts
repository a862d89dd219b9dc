/** Which solution somebody is looking at, so that a reload leads back to it. */
export class SolutionBookmark {
  constructor(private readonly storage: Storage | undefined) {}

  at(annotator: string): string | undefined {
    return this.storage?.getItem(nameOf(annotator)) ?? undefined;
  }
  set(annotator: string, task: string): void {
    try {
      this.storage?.setItem(nameOf(annotator), task);
    } catch {
      // no room: a reload leads on to the next exercise
    }
  }
  strike(annotator: string): void {
    this.storage?.removeItem(nameOf(annotator));
  }
}

const nameOf = (annotator: string): string => `finecomb/looking/${annotator}`;

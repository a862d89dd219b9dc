import type { Label } from "../../lib/api-types";

export type Snap = NonNullable<Label["snap"]>;
export interface Range {
  readonly start: number;
  readonly end: number;
}

/** Words, sentences and characters of one text as the reader's language has them; Chinese and Thai have no spaces. */
export class Segmented {
  private readonly segments: Record<Snap, Pick<Intl.Segments, "containing">>;

  /** `sentences` are those that the server goes by, where a label takes whole ones. */
  constructor(
    readonly text: string,
    language: string,
    sentences?: readonly Range[],
  ) {
    const locale = supported(language);
    const cut = (granularity: "grapheme" | "word" | "sentence") =>
      new Intl.Segmenter(locale, { granularity }).segment(text);
    const sentence = sentences ? cutAt(text, sentences) : cut("sentence");
    this.segments = { character: cut("grapheme"), word: cut("word"), sentence };
  }

  /** The character, word or sentence at an offset; at the end, the last one. */
  at(offset: number, what: Snap): Range {
    const found = this.segments[what].containing(Math.max(0, Math.min(offset, this.text.length - 1)));
    return found ? { start: found.index, end: found.index + found.segment.length } : { start: 0, end: 0 };
  }

  /** The whole characters, words or sentences that a range touches, without white space around them. */
  snap({ start, end }: Range, what: Snap): Range {
    if (start >= end) return this.place(start);
    if (what === "character") return this.around(start, end, what);
    const inner = this.trimmed({ start, end });
    if (inner.start >= inner.end) return this.around(start, end, "character");
    return this.trimmed(this.around(inner.start, inner.end, what));
  }

  /** Where a caret may stand: never inside a character. */
  place(offset: number): Range {
    const at = offset >= this.text.length ? this.text.length : this.at(offset, "character").start;
    return { start: at, end: at };
  }

  /** The next stop of the caret. */
  after(offset: number, what: Snap): number {
    if (offset >= this.text.length) return this.text.length;
    const { end } = this.at(offset, what);
    return what === "word" && this.isSpace(end) ? this.skipSpace(end) : end;
  }

  /** The stop before. */
  before(offset: number, what: Snap): number {
    if (offset <= 0) return 0;
    const { start } = this.at(offset - 1, what);
    return what === "word" && this.isSpace(start) && start > 0 ? this.at(start - 1, what).start : start;
  }

  /** A range with one edge moved by one character, word or sentence; it never becomes empty. */
  moved(range: Range, edge: "start" | "end", way: -1 | 1, what: Snap): Range {
    const { start, end } = range;
    const probes = {
      end: { 1: [start, this.skipSpace(end) + 1], "-1": [start, this.at(end - 1, what).start] },
      start: { 1: [this.at(start, what).end, end], "-1": [this.skipSpaceBack(start) - 1, end] },
    };
    const [from, to] = probes[edge][way] as [number, number];
    if (from < 0 || to > this.text.length || from >= to) return range;
    const found = this.snap({ start: from, end: to }, what);
    return found.start < found.end ? found : range;
  }

  private around(start: number, end: number, what: Snap): Range {
    return { start: this.at(start, what).start, end: this.at(end - 1, what).end };
  }

  private trimmed({ start, end }: Range): Range {
    while (start < end && this.isSpace(start)) start++;
    while (end > start && this.isSpace(end - 1)) end--;
    return { start, end };
  }

  private isSpace(offset: number): boolean {
    return /\s/.test(this.text.charAt(offset));
  }

  private skipSpace(offset: number): number {
    while (this.isSpace(offset)) offset++;
    return offset;
  }

  private skipSpaceBack(offset: number): number {
    while (offset > 0 && this.isSpace(offset - 1)) offset--;
    return offset;
  }
}

/** A text cut where sentences begin; white space goes with the sentence before it. */
function cutAt(text: string, sentences: readonly Range[]): Pick<Intl.Segments, "containing"> {
  const starts = [0, ...sentences.slice(1).map(({ start }) => start), text.length];
  return {
    containing: (offset = 0) => {
      const after = starts.findIndex((start) => start > offset);
      if (after < 1) return undefined as unknown as Intl.SegmentData;
      const index = starts[after - 1]!;
      return { index, segment: text.slice(index, starts[after]), input: text };
    },
  };
}

function supported(language: string): string | undefined {
  try {
    return Intl.Segmenter.supportedLocalesOf(language)[0];
  } catch {
    return undefined; // not the name of a language: the browser's own rules
  }
}

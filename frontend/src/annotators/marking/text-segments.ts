import type { Label } from "../../lib/api-types";

export type Snap = NonNullable<Label["snap"]>;
export interface Range {
  readonly start: number;
  readonly end: number;
}

/** Words, sentences and characters of one text by the rules of its language; Chinese and Thai have no spaces. */
export class TextSegments {
  private readonly segments: Record<Snap, Pick<Intl.Segments, "containing">>;

  /** `sentences` are those of the server, for labels that mark whole sentences. */
  constructor(
    readonly text: string,
    language: string,
    sentences?: readonly Range[],
  ) {
    const locale = supportedLocale(language);
    const segment = (granularity: "grapheme" | "word" | "sentence") =>
      new Intl.Segmenter(locale, { granularity }).segment(text);
    const sentence = sentences ? sentenceSegments(text, sentences) : segment("sentence");
    this.segments = { character: segment("grapheme"), word: segment("word"), sentence };
  }

  /** Return the character, word or sentence at an offset, or the last one at the end. */
  segmentAt(offset: number, what: Snap): Range {
    const segment = this.segments[what].containing(Math.max(0, Math.min(offset, this.text.length - 1)));
    return segment ? { start: segment.index, end: segment.index + segment.segment.length } : { start: 0, end: 0 };
  }

  /** Expand a range to whole characters, words or sentences, without surrounding white space. */
  snap({ start, end }: Range, what: Snap): Range {
    if (start >= end) return this.snapCaret(start);
    if (what === "character") return this.coveringRange(start, end, what);
    const inner = this.trimSpace({ start, end });
    if (inner.start >= inner.end) return this.coveringRange(start, end, "character");
    return this.trimSpace(this.coveringRange(inner.start, inner.end, what));
  }

  /** Return the caret stops, which are never inside a character. */
  snapCaret(offset: number): Range {
    const at = offset >= this.text.length ? this.text.length : this.segmentAt(offset, "character").start;
    return { start: at, end: at };
  }

  /** Return the next caret stop. */
  nextStop(offset: number, what: Snap): number {
    if (offset >= this.text.length) return this.text.length;
    const { end } = this.segmentAt(offset, what);
    return what === "word" && this.isSpace(end) ? this.skipSpace(end) : end;
  }

  /** Return the previous caret stop. */
  previousStop(offset: number, what: Snap): number {
    if (offset <= 0) return 0;
    const { start } = this.segmentAt(offset - 1, what);
    return what === "word" && this.isSpace(start) && start > 0 ? this.segmentAt(start - 1, what).start : start;
  }

  /** Move one edge of a range by a character, word or sentence. The range never becomes empty. */
  moveEdge(range: Range, edge: "start" | "end", way: -1 | 1, what: Snap): Range {
    const { start, end } = range;
    const probes = {
      end: { 1: [start, this.skipSpace(end) + 1], "-1": [start, this.segmentAt(end - 1, what).start] },
      start: { 1: [this.segmentAt(start, what).end, end], "-1": [this.skipSpaceBack(start) - 1, end] },
    };
    const [from, to] = probes[edge][way] as [number, number];
    if (from < 0 || to > this.text.length || from >= to) return range;
    const moved = this.snap({ start: from, end: to }, what);
    return moved.start < moved.end ? moved : range;
  }

  private coveringRange(start: number, end: number, what: Snap): Range {
    return { start: this.segmentAt(start, what).start, end: this.segmentAt(end - 1, what).end };
  }

  private trimSpace({ start, end }: Range): Range {
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

/** Split a text where sentences begin. White space belongs to the sentence before it. */
function sentenceSegments(text: string, sentences: readonly Range[]): Pick<Intl.Segments, "containing"> {
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

function supportedLocale(language: string): string | undefined {
  try {
    return Intl.Segmenter.supportedLocalesOf(language)[0];
  } catch {
    return undefined; // not a valid language code; use the browser's default
  }
}

import { lookOf } from "../../lib/label-looks";
import type { Drawing, Span } from "../../lib/text/pieces";
import type { Answer, Answers, Feedback, LabelLook, Question, Task } from "../../lib/api-types";
import { answerWords } from "../../lib/questions/options";
import { fromWire, markKey, sourcesOf, spanFromWire, wordsOf, type Mark } from "../work/work";

/** A known error or a mark of one's own, after grading. */
export interface Graded {
  readonly id: string;
  readonly kind: "found" | "missed" | "extra";
  readonly look: LabelLook;
  readonly spans: readonly Span[];
  readonly words: string;
  readonly why: string;
  readonly points: number;
  /** Where the solution lies; of an extra mark nowhere. */
  readonly known: readonly Span[];
  /** The solution's words where one's own mark has others; empty where they are the same. */
  readonly knownWords: string;
}

/** How an exercise went, mark by mark, in the order of the text. */
export function graded(task: Task, feedback: Feedback, looks: readonly LabelLook[]): Graded[] {
  const sources = sourcesOf(task);
  const own = new Map(
    task.marks.flatMap(({ id, body }) => (body ? [[id, fromWire(markKey(id), body, sources) as Mark]] : [])),
  );
  const solutions = feedback.solutions.map((solved, index): Graded => {
    const mark = solved.mark == null ? undefined : own.get(solved.mark);
    const known = solved.spans.map((span) => spanFromWire(span, sources));
    const spans = mark?.spans ?? known;
    const words = wordsOf(spans, sources) || solved.quotes.join(" … ");
    const knownWords = wordsOf(known, sources);
    return {
      id: `solution-${index}`,
      kind: solved.mark == null ? "missed" : "found",
      look: lookOf(looks, solved.label ?? null),
      spans,
      words,
      why: solved.why,
      points: solved.points,
      known,
      knownWords: mark && knownWords !== words ? knownWords : "",
    };
  });
  const extra = feedback.extra.flatMap((id): Graded[] => {
    const mark = own.get(id);
    if (!mark) return [];
    const words = wordsOf(mark.spans, sources);
    const look = lookOf(looks, mark.label);
    return [{ id, kind: "extra", look, spans: mark.spans, words, why: "", points: 0, known: [], knownWords: "" }];
  });
  return [...solutions, ...extra];
}

const KINDS = { found: "mark", missed: "missed", extra: "extra" } as const;

/** What is drawn into the text: found as usual with a tick, missed outlined, extra hatched. */
export const gradedDrawings = (
  marks: readonly Graded[],
  chosen: string | undefined,
  flags: Readonly<Record<Graded["kind"], (flag: string) => string>>,
): Drawing[] => {
  const wordy = marks.map((mark) => ({ mark, flag: flags[mark.kind](mark.look.flag) }));
  return wordy.map(({ mark, flag }) => ({
    id: mark.id,
    spans: mark.spans,
    slot: mark.look.slot,
    flag: wordy.some((other) => other.mark !== mark && collide({ mark, flag }, other)) ? mark.look.flag : flag,
    kind: KINDS[mark.kind],
    tone: mark.id === chosen && mark.kind === "found" ? "chosen" : "rest",
  }));
};

interface Flagged {
  readonly mark: Graded;
  readonly flag: string;
}

/** How many characters of the text a flag takes: its letters are about two thirds as wide. */
const room = (flag: string): number => flag.length * 0.7 + 1;

/** Whether the flag of one of two marks reaches the beginning of the other. */
const collide = (a: Flagged, b: Flagged): boolean =>
  a.mark.spans.some((one) =>
    b.mark.spans.some(
      (two) => one.part === two.part && two.start - one.start < room(a.flag) && one.start - two.start < room(b.flag),
    ),
  );

/** What a found error brought, to a tenth of a point. */
export const gained = (points: number): number => Math.round(points * 10) / 10;

/** One's own marks: what was found and what was extra. */
export const ownMarks = (marks: readonly Graded[]): Graded[] => marks.filter(({ kind }) => kind !== "missed");

/** The solution at its own places: what was found and what was missed. */
export const knownMarks = (marks: readonly Graded[]): Graded[] =>
  marks.filter(({ kind }) => kind !== "extra").map((mark) => ({ ...mark, spans: mark.known }));

/** A question whose right answer is known, with what was answered, both in words. */
export interface Compared {
  readonly ask: string;
  readonly given: string;
  readonly right: string;
  readonly same: boolean;
}

/** Answers beside the right ones. */
export const compared = (questions: readonly Question[], given: Answers, right: Answers): Compared[] =>
  questions.flatMap((question) => {
    const known = right[question.name];
    if (known === undefined) return [];
    const own = given[question.name];
    const words = (answer: Answer | undefined) => answerWords(question, answer);
    return [{ ask: question.ask, given: words(own), right: words(known), same: alike(own, known) }];
  });

/** Whether every known answer was given. */
export const agrees = (given: Answers, right: Answers): boolean =>
  Object.entries(right).every(([name, known]) => alike(given[name], known));

function alike(a: Answer | undefined, b: Answer | undefined): boolean {
  if (!Array.isArray(a) || !Array.isArray(b)) return a === b;
  return a.length === b.length && a.every((each) => b.includes(each));
}

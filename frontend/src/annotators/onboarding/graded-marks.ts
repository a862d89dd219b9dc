import { findLabelLook } from "../../lib/label-styles";
import type { Drawing, Span } from "../../lib/text/pieces";
import type { Answer, Answers, Feedback, LabelLook, Question, Task } from "../../lib/api-types";
import { answerText } from "../../lib/questions/options";
import { entryFromWire, markKey, taskSources, spanFromWire, quoteSpans, type Mark } from "../work/work";

/** Known error or own mark after grading. */
export interface GradedMark {
  readonly id: string;
  readonly kind: "found" | "missed" | "extra";
  readonly look: LabelLook;
  readonly spans: readonly Span[];
  readonly quote: string;
  readonly why: string;
  readonly points: number;
  /** Span of the solution; empty for an extra mark. */
  readonly solutionSpans: readonly Span[];
  /** Words of the solution if they differ from the annotator's; otherwise empty. */
  readonly solutionQuote: string;
}

/** Return the graded marks of an exercise in text order. */
export function gradeMarks(task: Task, feedback: Feedback, looks: readonly LabelLook[]): GradedMark[] {
  const sources = taskSources(task);
  const own = new Map(
    task.marks.flatMap(({ id, body }) => (body ? [[id, entryFromWire(markKey(id), body, sources) as Mark]] : [])),
  );
  const solutions = feedback.solutions.map((solved, index): GradedMark => {
    const mark = solved.mark == null ? undefined : own.get(solved.mark);
    const solutionSpans = solved.spans.map((span) => spanFromWire(span, sources));
    const spans = mark?.spans ?? solutionSpans;
    const quote = quoteSpans(spans, sources) || solved.quotes.join(" … ");
    const solutionQuote = quoteSpans(solutionSpans, sources);
    return {
      id: `solution-${index}`,
      kind: solved.mark == null ? "missed" : "found",
      look: findLabelLook(looks, solved.label ?? null),
      spans,
      quote,
      why: solved.why,
      points: solved.points,
      solutionSpans,
      solutionQuote: mark && solutionQuote !== quote ? solutionQuote : "",
    };
  });
  const extra = feedback.extra.flatMap((id): GradedMark[] => {
    const mark = own.get(id);
    if (!mark) return [];
    const quote = quoteSpans(mark.spans, sources);
    const look = findLabelLook(looks, mark.label);
    return [
      { id, kind: "extra", look, spans: mark.spans, quote, why: "", points: 0, solutionSpans: [], solutionQuote: "" },
    ];
  });
  return [...solutions, ...extra];
}

const DRAWING_KINDS = { found: "mark", missed: "missed", extra: "extra" } as const;

/** Return drawings: found marks with a tick, missed marks outlined, extra marks hatched. */
export const gradedDrawings = (
  marks: readonly GradedMark[],
  chosen: string | undefined,
  flags: Readonly<Record<GradedMark["kind"], (flag: string) => string>>,
): Drawing[] => {
  const flaggedMarks = marks.map((mark) => ({ mark, flag: flags[mark.kind](mark.look.flag) }));
  return flaggedMarks.map(({ mark, flag }) => ({
    id: mark.id,
    spans: mark.spans,
    slot: mark.look.slot,
    flag: flaggedMarks.some((other) => other.mark !== mark && doFlagsCollide({ mark, flag }, other))
      ? mark.look.flag
      : flag,
    kind: DRAWING_KINDS[mark.kind],
    tone: mark.id === chosen && mark.kind === "found" ? "chosen" : "rest",
  }));
};

interface FlaggedMark {
  readonly mark: GradedMark;
  readonly flag: string;
}

/** Return the width of a flag in characters; its letters are about two thirds as wide. */
const flagWidth = (flag: string): number => flag.length * 0.7 + 1;

/** Return true if the flag of one mark would reach the start of another. */
const doFlagsCollide = (a: FlaggedMark, b: FlaggedMark): boolean =>
  a.mark.spans.some((one) =>
    b.mark.spans.some(
      (two) =>
        one.part === two.part && two.start - one.start < flagWidth(a.flag) && one.start - two.start < flagWidth(b.flag),
    ),
  );

/** Return the points for a found error, to a tenth of a point. */
export const roundPoints = (points: number): number => Math.round(points * 10) / 10;

/** Return the annotator's marks: found and extra. */
export const ownMarks = (marks: readonly GradedMark[]): GradedMark[] => marks.filter(({ kind }) => kind !== "missed");

/** Return the marks of the solution: found and missed. */
export const solutionMarks = (marks: readonly GradedMark[]): GradedMark[] =>
  marks.filter(({ kind }) => kind !== "extra").map((mark) => ({ ...mark, spans: mark.solutionSpans }));

/** Question with a known answer and the answer given, both as text. */
export interface AnswerComparison {
  readonly ask: string;
  readonly given: string;
  readonly right: string;
  readonly isSame: boolean;
}

/** Return the given answers paired with the correct ones. */
export const compareAnswers = (questions: readonly Question[], given: Answers, right: Answers): AnswerComparison[] =>
  questions.flatMap((question) => {
    const known = right[question.name];
    if (known === undefined) return [];
    const own = given[question.name];
    const words = (answer: Answer | undefined) => answerText(question, answer);
    return [{ ask: question.ask, given: words(own), right: words(known), isSame: isSameAnswer(own, known) }];
  });

/** Return true if every known answer was given. */
export const hasRightAnswers = (given: Answers, right: Answers): boolean =>
  Object.entries(right).every(([name, known]) => isSameAnswer(given[name], known));

function isSameAnswer(a: Answer | undefined, b: Answer | undefined): boolean {
  if (!Array.isArray(a) || !Array.isArray(b)) return a === b;
  return a.length === b.length && a.every((each) => b.includes(each));
}

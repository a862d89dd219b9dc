/** Types of annotator requests and responses, generated from `finecomb.server.annotators.schema`. */
import type {
  AnswersBody,
  AnswersEntry,
  ErrorResponse,
  MarkBody,
  MarkEntry,
  SuggestionBody,
  SuggestionEntry,
  UnitBody,
  UnitEntry,
} from "./schema";

export type {
  JudgedWork,
  AnswersBody,
  TaskSummary,
  Ending,
  Example,
  Feedback,
  Group,
  Guide,
  Guideline,
  ItemResult,
  Label,
  ProgressSection,
  LabelLook,
  MarkBody,
  Me,
  NextResponse,
  OfferedMark,
  Option,
  Page,
  Practice,
  ErrorResponse,
  Question,
  QualificationResult,
  SaveResponse,
  Solution,
  SolutionResult,
  SuggestionBody,
  Task,
  UnitBody,
  Welcome,
} from "./schema";

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };
/** `[start, end]` on the text, `[part, start, end]` on a named context; in code points. */
export type WireSpan = MarkBody["spans"][number];
export type Answers = MarkBody["answers"];
export type Answer = Answers[string];
export type Code = ErrorResponse["code"];
/** Body of an entry of a task. */
export type Body = MarkBody | UnitBody | AnswersBody | SuggestionBody;
export type Entry = MarkEntry | UnitEntry | AnswersEntry | SuggestionEntry;

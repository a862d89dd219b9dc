import type { Guide, Label, Page, Practice, Question, Task } from "../../lib/api-types";

/** Fixtures for tests. */
export const question = (name: string, more: Partial<Question> = {}): Question => ({
  name,
  ask: `${name}?`,
  help: "",
  scale: "text",
  options: [],
  required: true,
  ...more,
});

export const label = (name: string, more: Partial<Label> = {}): Label => ({
  name,
  title: "",
  aliases: [],
  gloss: "",
  rules: [],
  examples: [],
  antecedent: "none",
  verb: "",
  snap: "word",
  questions: [],
  ...more,
});

export const guide = (more: Partial<Guide> = {}): Guide => ({
  id: "test@1",
  title: "Test",
  summary: "",
  language: "en",
  groups: [],
  labels: [label("word"), label("name"), label("number"), label("again", { antecedent: "required" })],
  looks: [],
  unlabelled: false,
  questions: [],
  unit_questions: [],
  document_questions: [],
  rules: [],
  guidelines: [],
  mode: null,
  work: {
    unit: "document",
    sentences: 3,
    annotators: 1,
    once: false,
    data: false,
    view: { titles: {}, order: [], hidden: [] },
    context: "above",
    verify: false,
    within: [],
  },
  instructions: "",
  examples: [],
  thanks: "",
  ...more,
});

export const task = (text: string, more: Partial<Task> = {}): Task => ({
  id: "t1",
  number: 1,
  text,
  context: {},
  parts: [],
  sentences: {},
  offered: [],
  marks: [],
  units: [],
  decisions: [],
  phase: "work",
  round: 0,
  status: "draft",
  active: 0,
  ...more,
});

export const practice = (more: Partial<Practice> = {}): Practice => ({
  part: "",
  ask: "",
  number: 1,
  of: 2,
  points: 0,
  spans: [],
  verify: false,
  ...more,
});

export const page = (step: string, more: Partial<Page> = {}): Page => ({
  step,
  kind: "instructions",
  phase: "instructions",
  title: "",
  say: "",
  questions: [],
  answers: {},
  examples: [],
  number: 0,
  of: 0,
  is_open: false,
  ...more,
});

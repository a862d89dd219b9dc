import { createTranslator } from "./translator";

/** The words around a question that do not come from the protocol, for annotators and researchers alike. */
export const questions = {
  yes: "Yes",
  no: "No",
  choose: "Choose…",
  none: "–",
  ifYouLike: "if you like",
  keysAre: "keys {keys}",
  startFromText: "Start again from the text",
  fromTo: "from {low} to {high}",
  atLeast: "of {low} or more",
  atMost: "up to {high}",
  notInRange: "“{ask}” is answered by a number {range}; {given} is none.",
  noNumber: "“{ask}” is answered by a number; {given} is none.",
  takeOffSource: "Leave out where it was found: {source}",
} as const;

export const t = createTranslator<typeof questions>(questions);

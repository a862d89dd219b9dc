import { createTranslator } from "./translator";

/** Texts around questions, shared by annotator and researcher pages. The questions come from the protocol. */
export const questions = {
  yes: "Yes",
  no: "No",
  choose: "Select…",
  none: "–",
  ifYouLike: "optional",
  keysAre: "keys {keys}",
  startFromText: "Reset to the text",
  fromTo: "from {low} to {high}",
  atLeast: "of at least {low}",
  atMost: "of at most {high}",
  notInRange: "“{ask}” must be a number {range}; found {given}.",
  noNumber: "“{ask}” must be a number; found {given}.",
  takeOffSource: "Remove the source: {source}",
} as const;

export const t = createTranslator<typeof questions>(questions);

import { translator } from "./translator";

/** The words around a question that do not come from the protocol, for annotators and researchers alike. */
export const questions = {
  yes: "Yes",
  no: "No",
  choose: "Choose…",
  none: "–",
  ifYouLike: "if you like",
  keysAre: "keys {keys}",
  startFromText: "Start again from the text",
} as const;

export const t = translator<typeof questions>(questions);

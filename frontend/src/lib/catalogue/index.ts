import en from "./annotators.en";
import { createTranslator } from "./translator";

export type Key = keyof typeof en;
export const t = createTranslator<typeof en>(en);

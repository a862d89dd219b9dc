import en from "./annotators.en";
import { translator } from "./translator";

export type Key = keyof typeof en;
export const t = translator<typeof en>(en);

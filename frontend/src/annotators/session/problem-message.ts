import { t, type Key } from "../../lib/catalogue";
import en from "../../lib/catalogue/annotators.en";
import type { ErrorResponse } from "../../lib/api-types";

/** Return the message of the server, translated if it is a known one. */
export function problemMessage(problem: Pick<ErrorResponse, "code" | "say"> | undefined): string {
  if (!problem) return "";
  const key = `problem.${problem.code}` as Key;
  return en[key] === problem.say ? t(key) : problem.say;
}

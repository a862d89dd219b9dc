import type { Span } from "../../lib/text/pieces";
import type { Guide, Guideline } from "../../lib/api-types";
import { quoteSpan, type Mark, type Sources } from "../work/work";

/** Rule of the guide that a mark seems to break, with a suggested change. */
export interface Hint {
  readonly name: string;
  readonly say: string;
  readonly change: { readonly label: string } | { readonly spans: readonly Span[] };
}

/** Return the first rule that applies and was not dismissed. */
export function findHint(mark: Mark, guide: Guide, sources: Sources, refused: readonly string[]): Hint | undefined {
  for (const rule of guide.guidelines) {
    if (refused.includes(rule.name) || !isRuleRelevant(rule, mark)) continue;
    const match = hintFromRule(rule, mark, sources);
    if (match) return match;
  }
  return undefined;
}

const isRuleRelevant = (rule: Guideline, mark: Mark): boolean =>
  mark.spans.length === 1 &&
  mark.label !== rule.to &&
  (rule.labels.length === 0 || rule.labels.includes(mark.label ?? ""));

function hintFromRule(rule: Guideline, mark: Mark, sources: Sources): Hint | undefined {
  const [span] = mark.spans as [Span];
  const match = compileRulePattern(rule.quote)?.exec(quoteSpan(span, sources));
  if (!match) return undefined;
  if (rule.action === "relabel") return { name: rule.name, say: rule.say, change: { label: rule.to! } };
  const spans = (match.indices ?? []).slice(1).flatMap((range) => (range ? [subspan(span, range)] : []));
  return spans.length > 1 ? { name: rule.name, say: rule.say, change: { spans } } : undefined;
}

const subspan = (span: Span, [start, end]: [number, number]): Span => ({
  ...span,
  start: span.start + start,
  end: span.start + end,
});

/** Compile a rule to match the whole quote, or return undefined if only Python supports the expression. */
export function compileRulePattern(python: string): RegExp | undefined {
  const flags = /^\(\?([ims]+)\)/.exec(python);
  const source = python
    .slice(flags?.[0].length ?? 0)
    .replaceAll("(?P<", "(?<")
    .replaceAll("\\Z", "$")
    .replaceAll("\\A", "^");
  try {
    return new RegExp(`^(?:${source})$`, `du${flags?.[1] ?? ""}`);
  } catch {
    return undefined;
  }
}

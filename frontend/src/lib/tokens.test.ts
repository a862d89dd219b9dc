import { readFileSync } from "node:fs";
import { expect, test } from "vitest";

const css = readFileSync(new URL("./finecomb.css", import.meta.url), "utf8");
const [light, dark] = [/:root \{([^}]*)\}/, /:root\[data-theme="?dark"?\] \{([^}]*)\}/].map((block) => {
  const [, body] = block.exec(css)!;
  return Object.fromEntries(
    [...body!.matchAll(/--([\w-]+):\s*(#[0-9a-f]{3,6});/g)].map(([, name, value]) => [name!, value!]),
  );
}) as [Record<string, string>, Record<string, string>];
const SLOTS = ["A1", "A2", "A3", "A4", "A5", "B1", "B2", "B3", "C1", "C2", "none"];

function channels(colour: string): number[] {
  const digits = colour.slice(1);
  const long = digits.length === 3 ? [...digits].map((each) => each + each).join("") : digits;
  return [0, 2, 4].map((at) => parseInt(long.slice(at, at + 2), 16) / 255);
}
/** Relative luminance and contrast, WCAG 2.2. */
const luminance = (colour: string): number => {
  const [red, green, blue] = channels(colour).map((value) =>
    value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4,
  );
  return 0.2126 * red! + 0.7152 * green! + 0.0722 * blue!;
};
function contrast(a: string, b: string): number {
  const [low, high] = [luminance(a), luminance(b)].sort((x, y) => x - y) as [number, number];
  return (high + 0.05) / (low + 0.05);
}

test.each([
  ["light", light],
  ["dark", dark],
])("%s: text is readable, lines and flags can be seen", (_, tokens) => {
  for (const ink of ["ink", "ink-2", "ink-3", "alert"])
    expect(contrast(tokens[ink]!, tokens.paper!)).toBeGreaterThan(4.5);
  expect(contrast(tokens["ink-3"]!, tokens.wash!)).toBeGreaterThan(4.5);
  expect(contrast(tokens.ink!, tokens.sel!)).toBeGreaterThan(7);
  expect(contrast(tokens.edge!, tokens.paper!)).toBeGreaterThan(3);
  for (const slot of SLOTS) {
    expect(contrast(tokens[`c-${slot}`]!, tokens.paper!)).toBeGreaterThan(3);
    expect(contrast(tokens[`c-${slot}`]!, tokens[`k-${slot}`]!)).toBeGreaterThan(4.4);
  }
});

test("every slot has a line, and each colour is used once", () => {
  for (const slot of SLOTS) expect(css).toContain(`--ln-${slot}:`);
  for (const tokens of [light, dark]) expect(new Set(SLOTS.map((slot) => tokens[`c-${slot}`])).size).toBe(SLOTS.length);
});

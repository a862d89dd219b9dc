import { describe, expect, test } from "vitest";
import type { LabelLook } from "../../lib/api-types";
import { globalCommand, textCommand, type KeyPress } from "./keys";

const press = (key: string, more: Partial<KeyPress> = {}): KeyPress => ({
  key,
  ctrlKey: false,
  metaKey: false,
  altKey: false,
  shiftKey: false,
  isComposing: false,
  ...more,
});

const LOOKS: LabelLook[] = [{ label: "redundant", title: "Redundant", slot: "A3", flag: "RD", key: "r" }];

describe("keys", () => {
  test.each([
    [press("r"), { do: "label", label: "redundant" }],
    [press("R", { shiftKey: true }), { do: "define", label: "redundant" }],
    [press("2"), { do: "digit", digit: 2 }],
    [press("a"), { do: "antecedent" }],
    [press("["), { do: "resize", edge: "end", way: -1 }],
    [press("}", { shiftKey: true }), { do: "resize", edge: "start", way: 1 }],
    [press("[", { ctrlKey: true, altKey: true }), { do: "resize", edge: "end", way: -1 }], // AltGr
    [press("ArrowLeft"), { do: "move", by: "character", way: -1, extend: false }],
    [press("ArrowRight", { ctrlKey: true, shiftKey: true }), { do: "move", by: "word", way: 1, extend: true }],
    [press("ArrowRight", { altKey: true }), { do: "move", by: "word", way: 1, extend: false }],
    [press("ArrowDown", { altKey: true }), { do: "step", way: 1 }],
    [press("Home", { ctrlKey: true }), { do: "move", by: "all", way: -1, extend: false }],
    [press("Tab", { shiftKey: true }), { do: "cycle", way: -1 }],
    [press("z", { ctrlKey: true }), { do: "undo" }],
    [press("Z", { metaKey: true, shiftKey: true }), { do: "redo" }],
    [press("Enter", { ctrlKey: true }), { do: "finish" }],
  ])("%j", (pressed, command) => {
    expect(textCommand(pressed, LOOKS)).toEqual(command);
  });

  test.each([
    press("r", { ctrlKey: true }),
    press("r", { altKey: true }),
    press("r", { isComposing: true }),
    press("q"),
  ])("%j does nothing", (pressed) => {
    expect(textCommand(pressed, LOOKS)).toBeUndefined();
  });

  test("left moves forward in right-to-left text", () => {
    expect(textCommand(press("ArrowLeft"), LOOKS, true)).toMatchObject({ way: 1 });
  });
  test("letters do nothing outside the text", () => {
    expect(globalCommand(press("r"))).toBeUndefined();
  });
});

import type { Key as Word } from "../../lib/catalogue";
import type { LabelLook } from "../../lib/api-types";

/** Command of a key while the text has the focus. */
export type Command =
  | {
      readonly do: "move";
      readonly by: "character" | "word" | "line" | "edge" | "all";
      readonly way: -1 | 1;
      readonly extend: boolean;
    }
  | { readonly do: "label" | "define"; readonly label: string }
  | { readonly do: "digit"; readonly digit: number }
  | { readonly do: "resize"; readonly edge: "start" | "end"; readonly way: -1 | 1 }
  | { readonly do: "cycle" | "step"; readonly way: -1 | 1 }
  | {
      readonly do: "antecedent" | "add" | "gap" | "remove" | "undo" | "redo" | "finish" | "enter" | "escape" | "guide";
    };

/** Relevant fields of a KeyboardEvent. */
export interface KeyPress {
  readonly key: string;
  readonly ctrlKey: boolean;
  readonly metaKey: boolean;
  readonly altKey: boolean;
  readonly shiftKey: boolean;
  readonly isComposing: boolean;
}

const ARROW_KEYS: Record<string, { by: "character" | "line"; way: -1 | 1 }> = {
  ArrowLeft: { by: "character", way: -1 },
  ArrowRight: { by: "character", way: 1 },
  ArrowUp: { by: "line", way: -1 },
  ArrowDown: { by: "line", way: 1 },
};
const PLAIN_KEYS: Record<string, Command> = {
  "[": { do: "resize", edge: "end", way: -1 },
  "]": { do: "resize", edge: "end", way: 1 },
  "{": { do: "resize", edge: "start", way: -1 },
  "}": { do: "resize", edge: "start", way: 1 },
  "+": { do: "add" },
  "^": { do: "gap" },
  Dead: { do: "gap" }, // layouts on which ^ is a dead key
  "?": { do: "guide" },
  Delete: { do: "remove" },
  Backspace: { do: "remove" },
  Enter: { do: "enter" },
  Escape: { do: "escape" },
};

/** Return the command of a key that works everywhere except in fields, which have their own undo. */
export function globalCommand(press: KeyPress): Command | undefined {
  const control = press.ctrlKey || press.metaKey;
  const key = press.key.toLowerCase();
  if (press.isComposing) return undefined;
  if (control && key === "enter") return { do: "finish" };
  if (control && key === "z") return { do: press.shiftKey ? "redo" : "undo" };
  if (control && key === "y") return { do: "redo" };
  if (press.altKey && !control && (key === "arrowdown" || key === "arrowup"))
    return { do: "step", way: key === "arrowdown" ? 1 : -1 };
  return undefined;
}

/** Return the command of a key in the text. Letters and digits do not act with Ctrl or Alt, or while composing. */
export function textCommand(press: KeyPress, looks: readonly LabelLook[], rightToLeft = false): Command | undefined {
  const command = globalCommand(press);
  if (command || press.isComposing) return command;
  return moveCommand(press, rightToLeft) ?? plainCommand(press, looks);
}

function moveCommand(press: KeyPress, rightToLeft: boolean): Command | undefined {
  const far = press.ctrlKey || press.metaKey || press.altKey;
  const extend = press.shiftKey;
  const arrow = ARROW_KEYS[press.key];
  if (arrow?.by === "character") {
    const way = rightToLeft ? (-arrow.way as -1 | 1) : arrow.way;
    return { do: "move", by: far ? "word" : "character", way, extend };
  }
  if (arrow && !far) return { do: "move", ...arrow, extend };
  if (press.key === "Home" || press.key === "End")
    return { do: "move", by: far ? "all" : "edge", way: press.key === "Home" ? -1 : 1, extend };
  return undefined;
}

function plainCommand(press: KeyPress, looks: readonly LabelLook[]): Command | undefined {
  if (press.metaKey || press.ctrlKey !== press.altKey) return undefined; // Ctrl and Alt together are AltGr
  const command = PLAIN_KEYS[press.key];
  if (command) return command;
  if (press.ctrlKey) return undefined;
  if (press.key === "Tab") return { do: "cycle", way: press.shiftKey ? -1 : 1 };
  const look = looks.find(({ key }) => key !== "" && key === press.key.toLowerCase());
  if (look) return { do: press.shiftKey && isLetter(press.key) ? "define" : "label", label: look.label };
  if (press.key.toLowerCase() === "a") return { do: "antecedent" };
  if (/^[1-9]$/.test(press.key)) return { do: "digit", digit: Number(press.key) };
  return undefined;
}

const isLetter = (key: string): boolean => key.toLowerCase() !== key.toUpperCase();

/** Keyboard shortcuts listed in the guide. */
export const KEY_HELP: readonly (readonly [keys: readonly string[], what: Word])[] = [
  [["←", "→", "↑", "↓"], "help.move"],
  [["Ctrl ←", "Ctrl →"], "help.word"],
  [["Shift"], "help.extend"],
  [["1", "2", "3"], "help.digit"],
  [["Enter", "Esc"], "help.enter"],
  [["Tab"], "help.tab"],
  [["Alt ↓", "Alt ↑"], "help.step"],
  [["[", "]", "{", "}"], "help.resize"],
  [["+"], "help.add"],
  [["^"], "help.gap"],
  [["A"], "help.antecedent"],
  [["Del"], "help.delete"],
  [["Ctrl Z", "Ctrl Shift Z"], "help.undo"],
  [["?"], "help.guide"],
  [["Ctrl Enter"], "help.finish"],
];

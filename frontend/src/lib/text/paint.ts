import { slotVariables } from "../label-looks";
import type { Layer, Paragraph, Piece } from "./pieces";
import { stretches, wholeStretch } from "./scores";

/** Lanes that have room under a line; from the fourth layer on, the last of them stands for all that remain. */
const LANES = 3;
const TINTS = { rest: "var(--tint)", chosen: "var(--tint-on)", faint: "var(--tint-faint)" };
const FLAG_WIDTH = 2.55; // em of the flag's own size, with the gap to its neighbour

interface Painted {
  key: string;
  nodes: ChildNode[];
}
const PAINTED = new WeakMap<HTMLElement, Painted[]>();

/**
 * Draw a paragraph into `node`: text as text nodes, one element per piece, flags and bars as empty elements between.
 * Pieces that were there before, at the start and at the end, are left alone.
 */
export function paint(node: HTMLElement, text: string, paragraph: Paragraph): void {
  const before = PAINTED.get(node) ?? [];
  const keys = paragraph.pieces.map((piece) => keyOf(piece, text));
  let head = 0;
  while (head < before.length && head < keys.length && before[head]!.key === keys[head]) head++;
  let tail = 0;
  while (tail < before.length - head && tail < keys.length - head && before.at(-1 - tail)!.key === keys.at(-1 - tail))
    tail++;
  for (const old of before.slice(head, before.length - tail)) old.nodes.forEach((each) => each.remove());
  const anchor = tail > 0 ? before[before.length - tail]!.nodes[0]! : null;
  const fresh = paragraph.pieces.slice(head, keys.length - tail).map((piece, index) => ({
    key: keys[head + index]!,
    nodes: drawn(piece, text),
  }));
  const fragment = document.createDocumentFragment();
  fragment.append(...fresh.flatMap(({ nodes }) => nodes));
  node.insertBefore(fragment, anchor);
  PAINTED.set(node, [...before.slice(0, head), ...fresh, ...(tail > 0 ? before.slice(-tail) : [])]);
}

const keyOf = (piece: Piece, text: string): string =>
  [
    piece.start,
    text.slice(piece.start, piece.end),
    ...piece.layers.map(
      ({ drawing, lane, start, end }) =>
        `${drawing.id} ${drawing.slot} ${drawing.flag} ${drawing.kind} ${drawing.tone} ${lane} ${start} ${end}`,
    ),
  ].join("\u0000");

function drawn(piece: Piece, text: string): ChildNode[] {
  const shown = piece.layers.filter(({ lane, drawing }) => drawing.kind === "mark" && lane < LANES);
  const crowd = piece.layers.filter(({ lane, drawing }) => drawing.kind === "mark" && lane >= LANES - 1);
  const many = crowd.length > 1;
  const begins = piece.begins.filter(({ lane }) => !many || lane < LANES - 1);
  const nodes: ChildNode[] = piece.begins.filter(isChosenMark).map((layer) => bar(layer, "start"));
  begins.filter(({ drawing }) => drawing.flag !== "").forEach((layer, index) => nodes.push(flag(layer, index)));
  if (many && crowd.some((layer) => piece.begins.includes(layer))) nodes.push(crowdFlag(crowd.length, begins.length));
  if (piece.layers.length === 0) nodes.push(...plainWords(piece, text));
  else if (piece.start === piece.end) nodes.push(wedge(piece));
  else nodes.push(...markedWords(piece, text, shown, many));
  nodes.push(...piece.ends.filter(isChosenMark).map((layer) => bar(layer, "end")));
  return nodes;
}

const isChosenMark = ({ drawing, start, end }: Layer): boolean =>
  drawing.kind === "mark" && drawing.tone === "chosen" && start < end;

/** The words of a piece, in elements that each hold a stretch of it; one with a frame around it stays whole. */
const inStretches = (piece: Piece, text: string, make: () => HTMLElement): HTMLElement[] =>
  (isFramed(piece) ? wholeStretch : stretches)(text, piece.start, piece.end).map(({ start, end, unbroken, joined }) => {
    const element = make();
    element.dataset.at = String(start);
    element.textContent = text.slice(start, end);
    if (unbroken) element.style.whiteSpace = "nowrap";
    if (joined) element.classList.add("joined");
    return element;
  });

const isFramed = ({ layers }: Piece): boolean =>
  layers.some(({ drawing: { kind } }) => kind === "missed" || kind === "extra");

const plainWords = (piece: Piece, text: string): HTMLElement[] =>
  inStretches(piece, text, () => document.createElement("span"));

/** The words of a marked piece, with their underlines and tints as backgrounds. */
const markedWords = (piece: Piece, text: string, shown: Layer[], many: boolean): HTMLElement[] =>
  inStretches(piece, text, () => markedElement(piece, shown, many));

function markedElement(piece: Piece, shown: Layer[], many: boolean): HTMLElement {
  const element = document.createElement("span");
  element.className = "pc";
  element.dataset.mark = piece.layers.map(({ drawing }) => drawing.id).join(" ");
  for (const { lane, drawing } of shown) {
    element.style.setProperty(`--u${lane}`, `var(--ln-${many && lane === LANES - 1 ? "many" : drawing.slot})`);
    const tint = `color-mix(in oklab, var(--c-${drawing.slot}) ${TINTS[drawing.tone]}, transparent)`;
    element.style.setProperty(`--t${lane}`, `linear-gradient(${tint} 0 0)`);
  }
  if (many) element.style.setProperty(`--u${LANES - 1}`, "var(--ln-many)");
  for (const { drawing } of piece.layers.filter(({ drawing }) => drawing.kind !== "mark")) {
    element.classList.add(CLASSES[drawing.kind as keyof typeof CLASSES]);
    element.style.setProperty("--c", slotVariables(drawing.slot).c);
  }
  return element;
}

const CLASSES = { antecedent: "ante", offered: "offered", missed: "missed", extra: "extra" };

/** Between two characters: something is missing here. */
function wedge(piece: Piece): HTMLElement {
  const { drawing } = piece.layers[0]!;
  const element = empty(drawing.tone === "chosen" ? "gap on" : "gap", drawing.slot);
  element.dataset.at = String(piece.start);
  element.dataset.mark = piece.layers.map(({ drawing }) => drawing.id).join(" ");
  return element;
}

function flag({ drawing }: Layer, index: number): HTMLElement {
  const element = empty(drawing.kind === "mark" ? "fl" : drawing.kind === "extra" ? "fl ex" : "fl open", drawing.slot);
  element.dataset.flag = drawing.flag;
  if (index > 0) element.style.setProperty("--dx", `${index * FLAG_WIDTH}em`);
  return element;
}

function crowdFlag(count: number, index: number): HTMLElement {
  const element = empty("fl many", "none");
  element.dataset.flag = `+${count}`;
  element.style.setProperty("--dx", `${index * FLAG_WIDTH}em`);
  return element;
}

/** An end of the chosen mark, to be dragged. */
function bar({ drawing, start, end }: Layer, edge: "start" | "end"): HTMLElement {
  const element = empty(edge === "end" ? "hd e" : "hd", drawing.slot);
  element.dataset.bar = edge;
  element.dataset.of = drawing.id;
  element.dataset.span = `${start}-${end}`;
  return element;
}

function empty(className: string, slot: string): HTMLElement {
  const element = document.createElement("span");
  element.className = className;
  for (const [name, value] of Object.entries(slotVariables(slot))) element.style.setProperty(`--${name}`, value);
  return element;
}

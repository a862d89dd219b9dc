import { slotVariables } from "../label-styles";
import type { Layer, Paragraph, Piece } from "./pieces";
import { splitAtScores, unsplitSegment } from "./score-segments";

/** Underline levels that fit below a line; the last one stands for all deeper ones. */
const MAX_LEVELS = 3;
const TINTS = { rest: "var(--tint)", chosen: "var(--tint-on)", faint: "var(--tint-faint)" };
const FLAG_WIDTH = 2.55; // em of the flag's font size, with the gap to its neighbour

interface PaintedPiece {
  key: string;
  nodes: ChildNode[];
}
const PAINTED_PIECES = new WeakMap<HTMLElement, PaintedPiece[]>();

/**
 * Draw a paragraph into `node`: text as text nodes, one element per piece, flags and bars as empty elements between.
 * Unchanged pieces at the start and at the end are kept.
 */
export function paintParagraph(node: HTMLElement, text: string, paragraph: Paragraph): void {
  const before = PAINTED_PIECES.get(node) ?? [];
  const keys = paragraph.pieces.map((piece) => pieceKey(piece, text));
  let unchangedStart = 0;
  while (
    unchangedStart < before.length &&
    unchangedStart < keys.length &&
    before[unchangedStart]!.key === keys[unchangedStart]
  )
    unchangedStart++;
  let unchangedEnd = 0;
  while (
    unchangedEnd < before.length - unchangedStart &&
    unchangedEnd < keys.length - unchangedStart &&
    before.at(-1 - unchangedEnd)!.key === keys.at(-1 - unchangedEnd)
  )
    unchangedEnd++;
  for (const old of before.slice(unchangedStart, before.length - unchangedEnd))
    old.nodes.forEach((each) => each.remove());
  const anchor = unchangedEnd > 0 ? before[before.length - unchangedEnd]!.nodes[0]! : null;
  const repainted = paragraph.pieces.slice(unchangedStart, keys.length - unchangedEnd).map((piece, index) => ({
    key: keys[unchangedStart + index]!,
    nodes: pieceNodes(piece, text),
  }));
  const fragment = document.createDocumentFragment();
  fragment.append(...repainted.flatMap(({ nodes }) => nodes));
  node.insertBefore(fragment, anchor);
  PAINTED_PIECES.set(node, [
    ...before.slice(0, unchangedStart),
    ...repainted,
    ...(unchangedEnd > 0 ? before.slice(-unchangedEnd) : []),
  ]);
}

const pieceKey = (piece: Piece, text: string): string =>
  [
    piece.start,
    text.slice(piece.start, piece.end),
    ...piece.layers.map(
      ({ drawing, level: level, start, end }) =>
        `${drawing.id} ${drawing.slot} ${drawing.flag} ${drawing.kind} ${drawing.tone} ${level} ${start} ${end}`,
    ),
  ].join("\u0000");

function pieceNodes(piece: Piece, text: string): ChildNode[] {
  const shownLayers = piece.layers.filter(({ level, drawing }) => drawing.kind === "mark" && level < MAX_LEVELS);
  const overflowLayers = piece.layers.filter(
    ({ level, drawing }) => drawing.kind === "mark" && level >= MAX_LEVELS - 1,
  );
  const hasOverflow = overflowLayers.length > 1;
  const begins = piece.begins.filter(({ level }) => !hasOverflow || level < MAX_LEVELS - 1);
  const nodes: ChildNode[] = piece.begins.filter(isChosenMark).map((layer) => edgeBarElement(layer, "start"));
  begins.filter(({ drawing }) => drawing.flag !== "").forEach((layer, index) => nodes.push(flagElement(layer, index)));
  if (hasOverflow && overflowLayers.some((layer) => piece.begins.includes(layer)))
    nodes.push(overflowFlagElement(overflowLayers.length, begins.length));
  if (piece.layers.length === 0) nodes.push(...plainElements(piece, text));
  else if (piece.start === piece.end) nodes.push(gapElement(piece));
  else nodes.push(...markedElements(piece, text, shownLayers, hasOverflow));
  nodes.push(...piece.ends.filter(isChosenMark).map((layer) => edgeBarElement(layer, "end")));
  return nodes;
}

const isChosenMark = ({ drawing, start, end }: Layer): boolean =>
  drawing.kind === "mark" && drawing.tone === "chosen" && start < end;

/** Draw the words of a piece in elements that each hold a stretch; a framed piece stays whole. */
const segmentElements = (piece: Piece, text: string, make: () => HTMLElement): HTMLElement[] =>
  (isFramed(piece) ? unsplitSegment : splitAtScores)(text, piece.start, piece.end).map(
    ({ start, end, isUnbroken, isJoinedToNext }) => {
      const element = make();
      element.dataset.at = String(start);
      element.textContent = text.slice(start, end);
      if (isUnbroken) element.style.whiteSpace = "nowrap";
      if (isJoinedToNext) element.classList.add("joined");
      return element;
    },
  );

const isFramed = ({ layers }: Piece): boolean =>
  layers.some(({ drawing: { kind } }) => kind === "missed" || kind === "extra");

const plainElements = (piece: Piece, text: string): HTMLElement[] =>
  segmentElements(piece, text, () => document.createElement("span"));

/** Draw the words of a marked piece, with underlines and tints as backgrounds. */
const markedElements = (piece: Piece, text: string, shown: Layer[], many: boolean): HTMLElement[] =>
  segmentElements(piece, text, () => markedElement(piece, shown, many));

function markedElement(piece: Piece, shown: Layer[], many: boolean): HTMLElement {
  const element = document.createElement("span");
  element.className = "piece";
  element.dataset.mark = piece.layers.map(({ drawing }) => drawing.id).join(" ");
  for (const { level, drawing } of shown) {
    element.style.setProperty(`--u${level}`, `var(--ln-${many && level === MAX_LEVELS - 1 ? "many" : drawing.slot})`);
    const tint = `color-mix(in oklab, var(--c-${drawing.slot}) ${TINTS[drawing.tone]}, transparent)`;
    element.style.setProperty(`--t${level}`, `linear-gradient(${tint} 0 0)`);
  }
  if (many) element.style.setProperty(`--u${MAX_LEVELS - 1}`, "var(--ln-many)");
  for (const { drawing } of piece.layers.filter(({ drawing }) => drawing.kind !== "mark")) {
    element.classList.add(CLASS_BY_KIND[drawing.kind as keyof typeof CLASS_BY_KIND]);
    element.style.setProperty("--c", slotVariables(drawing.slot).c);
  }
  return element;
}

const CLASS_BY_KIND = { antecedent: "antecedent", offered: "offered", missed: "missed", extra: "extra" };

/** Draw an omission between two characters. */
function gapElement(piece: Piece): HTMLElement {
  const { drawing } = piece.layers[0]!;
  const element = emptyElement(drawing.tone === "chosen" ? "gap on" : "gap", drawing.slot);
  element.dataset.at = String(piece.start);
  element.dataset.mark = piece.layers.map(({ drawing }) => drawing.id).join(" ");
  return element;
}

function flagElement({ drawing }: Layer, index: number): HTMLElement {
  const element = emptyElement(
    drawing.kind === "mark" ? "piece-flag" : drawing.kind === "extra" ? "piece-flag extra" : "piece-flag open",
    drawing.slot,
  );
  element.dataset.flag = drawing.flag;
  if (index > 0) element.style.setProperty("--dx", `${index * FLAG_WIDTH}em`);
  return element;
}

function overflowFlagElement(count: number, index: number): HTMLElement {
  const element = emptyElement("piece-flag many", "none");
  element.dataset.flag = `+${count}`;
  element.style.setProperty("--dx", `${index * FLAG_WIDTH}em`);
  return element;
}

/** Draw a drag handle at an end of the selected mark. */
function edgeBarElement({ drawing, start, end }: Layer, edge: "start" | "end"): HTMLElement {
  const element = emptyElement(edge === "end" ? "edge-handle end" : "edge-handle", drawing.slot);
  element.dataset.bar = edge;
  element.dataset.of = drawing.id;
  element.dataset.span = `${start}-${end}`;
  return element;
}

function emptyElement(className: string, slot: string): HTMLElement {
  const element = document.createElement("span");
  element.className = className;
  for (const [name, value] of Object.entries(slotVariables(slot))) element.style.setProperty(`--${name}`, value);
  return element;
}

import { textDirection } from "./direction";
import { assignLevels } from "./underline-levels";

/** Half-open interval of UTF-16 units in one part: `text`, or the name of a context. */
export interface Span {
  readonly part: string;
  readonly start: number;
  readonly end: number;
}

/** Drawing in a text: a mark or an antecedent. */
export interface Drawing {
  readonly id: string;
  readonly spans: readonly Span[];
  readonly slot: string;
  readonly flag: string;
  readonly kind: "mark" | "antecedent" | "offered" | "missed" | "extra";
  readonly tone: "rest" | "chosen" | "faint";
}

/** Span of a drawing, with its level. */
export interface Layer {
  readonly drawing: Drawing;
  readonly start: number;
  readonly end: number;
  readonly level: number;
}

/** Stretch of text between two adjacent edges, or the position of an omission (start == end). */
export interface Piece {
  readonly start: number;
  readonly end: number;
  /** Layers over the piece, inner level first. */
  readonly layers: readonly Layer[];
  /** Layers that start and end at its edges. */
  readonly begins: readonly Layer[];
  readonly ends: readonly Layer[];
}

/** Block of text: a line with its line break, or a stretch of a very long line. */
export interface Block {
  readonly start: number;
  readonly end: number;
  /** Direction of the whole line. */
  readonly direction: "ltr" | "rtl";
}
export interface Paragraph extends Block {
  readonly pieces: readonly Piece[];
}

/** Longer lines are split into blocks, so that a change redraws only one of them. */
const MAX_BLOCK_LENGTH = 2000;
const SENTENCE_END = /[.!?…。！？]["'”’»)\]]*\s+/g;

/** Return the blocks of `text` between `from` and `to`. */
export function splitIntoBlocks(text: string, from = 0, to = text.length): Block[] {
  const blocks: Block[] = [];
  for (let start = from; start < to;) {
    const newline = text.indexOf("\n", start);
    const end = newline < 0 || newline >= to ? to : newline + 1;
    blocks.push(...splitLine(text, start, end));
    start = end;
  }
  return blocks.length > 0 ? blocks : [{ start: from, end: from, direction: "ltr" }];
}

/** Split a line into blocks that end with a sentence, or else with a word. */
function splitLine(text: string, start: number, end: number): Block[] {
  const lineDirection = textDirection(text.slice(start, Math.min(end, start + MAX_BLOCK_LENGTH)));
  const blocks: Block[] = [];
  for (let at = start; at < end;) {
    const next = end - at <= MAX_BLOCK_LENGTH ? end : blockEnd(text, at);
    blocks.push({ start: at, end: next, direction: lineDirection });
    at = next;
  }
  return blocks;
}

function blockEnd(text: string, start: number): number {
  const window = text.slice(start, start + MAX_BLOCK_LENGTH);
  const sentence = [...window.matchAll(SENTENCE_END)].at(-1);
  if (sentence) return start + sentence.index + sentence[0].length;
  const space = window.search(/\s\S*$/);
  if (space > 0) return start + space + 1;
  return start + MAX_BLOCK_LENGTH - (/[\ud800-\udbff]$/.test(window) ? 1 : 0);
}

/** Return the spans of all drawings on one part. A drawing keeps one level; antecedents are outlined and have none. */
export function buildLayers(drawings: readonly Drawing[], part: string): Layer[] {
  const onPart = drawings
    .map((drawing) => ({ drawing, spans: drawing.spans.filter((span) => span.part === part) }))
    .filter(({ spans }) => spans.length > 0);
  const underlined = onPart.filter(({ drawing }) => drawing.kind === "mark");
  const levels = new Map(
    assignLevels(underlined.map(({ spans }) => outerBounds(spans))).map((level, index) => [
      underlined[index]!.drawing,
      level,
    ]),
  );
  return onPart.flatMap(({ drawing, spans }) =>
    spans.map(({ start, end }) => ({ drawing, start, end, level: levels.get(drawing) ?? 0 })),
  );
}

const outerBounds = (spans: readonly Span[]): [number, number] => [
  Math.min(...spans.map((span) => span.start)),
  Math.max(...spans.map((span) => span.end)),
];

/** Cut `[start, end)` at every edge of `layers`. The pieces in order cover it exactly; an omission is empty. */
export function splitIntoPieces(start: number, end: number, layers: readonly Layer[]): Piece[] {
  const edges = new Set([start, end]);
  for (const layer of layers) {
    if (layer.start >= start && layer.start <= end) edges.add(layer.start);
    if (layer.end >= start && layer.end <= end) edges.add(layer.end);
  }
  const sorted = [...edges].sort((a, b) => a - b);
  const cuts = new Map(sorted.map((edge, index) => [edge, index]));
  const covering: Layer[][] = sorted.map(() => []);
  const gaps = new Map<number, Layer[]>();
  for (const layer of layers) {
    if (layer.start === layer.end) gaps.set(layer.start, [...(gaps.get(layer.start) ?? []), layer]);
    else
      for (let at = cuts.get(Math.max(layer.start, start))!; at < cuts.get(Math.min(layer.end, end))!; at++)
        covering[at]!.push(layer);
  }
  const result: Piece[] = [];
  sorted.forEach((edge, index) => {
    const gap = gaps.get(edge);
    if (gap) result.push({ start: edge, end: edge, layers: gap, begins: gap, ends: [] });
    const next = sorted[index + 1];
    if (next === undefined) return;
    const own = covering[index]!.sort((a, b) => a.level - b.level || a.start - b.start);
    result.push({
      start: edge,
      end: next,
      layers: own,
      begins: own.filter((layer) => layer.start === edge),
      ends: own.filter((layer) => layer.end === next),
    });
  });
  return result;
}

/** Lay out the text between `from` and `to` in paragraphs. Unchanged paragraphs of `before` are the same objects. */
export function layOutText(
  text: string,
  drawings: readonly Drawing[],
  part: string,
  from: number,
  to: number,
  before: readonly Paragraph[] = [],
): Paragraph[] {
  const blocks = splitIntoBlocks(text, from, to);
  const layersByBlock = layersOfBlocks(buildLayers(drawings, part), blocks);
  return blocks.map((block, index) => {
    const layers = layersByBlock[index]!;
    const old = before[index];
    if (old?.start === block.start && old.end === block.end && hasSameLayers(LAYERS_BY_PARAGRAPH.get(old), layers))
      return old;
    const paragraph = { ...block, pieces: splitIntoPieces(block.start, block.end, layers) };
    LAYERS_BY_PARAGRAPH.set(paragraph, layers);
    return paragraph;
  });
}

const LAYERS_BY_PARAGRAPH = new WeakMap<Paragraph, readonly Layer[]>();

/** Group layers by paragraph. An omission at a border belongs to the paragraph that starts there. */
function layersOfBlocks(layers: readonly Layer[], blocks: readonly { start: number; end: number }[]): Layer[][] {
  const result: Layer[][] = blocks.map(() => []);
  for (const layer of layers) {
    let at = lastStartingBefore(blocks, layer.start);
    if (layer.start === layer.end) {
      if (layer.start <= blocks[at]!.end && layer.start >= blocks[0]!.start) result[at]!.push(layer);
      continue;
    }
    for (; at < blocks.length && blocks[at]!.start < layer.end; at++)
      if (blocks[at]!.end > layer.start) result[at]!.push(layer);
  }
  return result;
}

function lastStartingBefore(blocks: readonly { start: number }[], position: number): number {
  let [low, high] = [0, blocks.length - 1];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (blocks[middle]!.start <= position) low = middle;
    else high = middle - 1;
  }
  return low;
}

const hasSameLayers = (old: readonly Layer[] | undefined, now: readonly Layer[]): boolean =>
  old !== undefined &&
  old.length === now.length &&
  old.every((layer, index) => {
    const other = now[index]!;
    return (
      layer.start === other.start &&
      layer.end === other.end &&
      layer.level === other.level &&
      isSameDrawing(layer.drawing, other.drawing)
    );
  });

const isSameDrawing = (a: Drawing, b: Drawing): boolean =>
  a === b || (a.id === b.id && a.slot === b.slot && a.flag === b.flag && a.kind === b.kind && a.tone === b.tone);

import { caretBox, textOffset, positionAt, closestSurface } from "./text-dom";

/** Range selected by hand. The caret is at `focus`. */
export interface CaretSelection {
  readonly part: string;
  readonly anchor: number;
  readonly focus: number;
}
/** Position in one part of a text. */
export interface TextPosition {
  readonly part: string;
  readonly offset: number;
}

const surfaces = (): HTMLElement[] => [...document.querySelectorAll<HTMLElement>("[data-surface]")];

/** Return the range of its part that a surface shows. */
export const surfaceBounds = (surface: HTMLElement): [number, number] => [
  Number(surface.dataset.from),
  Number(surface.dataset.to),
];

/** Return the surface that shows an offset of a part. */
export const surfaceAt = (part: string, offset: number): HTMLElement | undefined => {
  const candidates = surfaces().filter((surface) => surface.dataset.part === part);
  return (
    candidates.find((surface) => offset >= surfaceBounds(surface)[0] && offset <= surfaceBounds(surface)[1]) ??
    candidates.at(-1)
  );
};

/** Return the caret position after it leaves a surface. */
export function adjacentPosition(surface: HTMLElement | undefined, way: -1 | 1): TextPosition | undefined {
  const all = surfaces();
  const next = surface && all[all.indexOf(surface) + way];
  return next && { part: next.dataset.part!, offset: surfaceBounds(next)[way < 0 ? 1 : 0] };
}

/** Return the caret position for up, down, and the ends of a line. */
export function visualPosition(
  surface: HTMLElement | undefined,
  from: TextPosition,
  by: "line" | "edge",
  way: -1 | 1,
): TextPosition {
  const box = surface && caretBox(surface, from.offset);
  if (!surface || !box) return from;
  const corner = surface.getBoundingClientRect();
  const line = parseFloat(getComputedStyle(surface).lineHeight) || box.height * 1.6;
  const x = by === "edge" ? (way < 0 ? corner.left + 1 : corner.right - 1) : corner.left + box.left;
  const y = corner.top + box.top + box.height / 2 + (by === "line" ? way * line : 0);
  if (y < corner.top || y > corner.bottom) return adjacentPosition(surface, way) ?? from;
  const position = positionAt(x, y);
  return position?.surface === surface ? { part: from.part, offset: position.offset } : from;
}

/** Return the browser's selection if it lies within one part. */
export function browserSelection(): CaretSelection | undefined {
  const selection = getSelection();
  if (!selection?.anchorNode || !selection.focusNode || selection.isCollapsed) return undefined;
  const [from, to] = [closestSurface(selection.anchorNode), closestSurface(selection.focusNode)];
  const part = from?.dataset.part;
  const anchor = textOffset(selection.anchorNode, selection.anchorOffset);
  const focus = textOffset(selection.focusNode, selection.focusOffset);
  if (!part || part !== to?.dataset.part || anchor === undefined || focus === undefined) return undefined;
  return { part, anchor, focus };
}

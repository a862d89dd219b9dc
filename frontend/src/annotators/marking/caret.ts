import { caretBox, offsetOf, placeAt, surfaceOf } from "./dom";

/** Words selected by hand: from where to where, the caret being at `focus`. */
export interface Selected {
  readonly part: string;
  readonly anchor: number;
  readonly focus: number;
}
/** A place in one part of a text. */
export interface Place {
  readonly part: string;
  readonly offset: number;
}

const surfaces = (): HTMLElement[] => [...document.querySelectorAll<HTMLElement>("[data-surface]")];

/** From where to where a surface shows its part. */
export const boundsOf = (surface: HTMLElement): [number, number] => [
  Number(surface.dataset.from),
  Number(surface.dataset.to),
];

/** The surface that shows an offset of a part. */
export const surfaceAt = (part: string, offset: number): HTMLElement | undefined => {
  const own = surfaces().filter((surface) => surface.dataset.part === part);
  return own.find((surface) => offset >= boundsOf(surface)[0] && offset <= boundsOf(surface)[1]) ?? own.at(-1);
};

/** Where the caret goes when it leaves a surface. */
export function neighbour(surface: HTMLElement | undefined, way: -1 | 1): Place | undefined {
  const all = surfaces();
  const next = surface && all[all.indexOf(surface) + way];
  return next && { part: next.dataset.part!, offset: boundsOf(next)[way < 0 ? 1 : 0] };
}

/** Up, down, and the ends of a line: where the caret would be seen. */
export function visualTarget(surface: HTMLElement | undefined, from: Place, by: "line" | "edge", way: -1 | 1): Place {
  const box = surface && caretBox(surface, from.offset);
  if (!surface || !box) return from;
  const corner = surface.getBoundingClientRect();
  const line = parseFloat(getComputedStyle(surface).lineHeight) || box.height * 1.6;
  const x = by === "edge" ? (way < 0 ? corner.left + 1 : corner.right - 1) : corner.left + box.left;
  const y = corner.top + box.top + box.height / 2 + (by === "line" ? way * line : 0);
  if (y < corner.top || y > corner.bottom) return neighbour(surface, way) ?? from;
  const place = placeAt(x, y);
  return place?.surface === surface ? { part: from.part, offset: place.offset } : from;
}

/** The words that the browser has selected, when they lie in one part. */
export function browserSelection(): Selected | undefined {
  const selection = getSelection();
  if (!selection?.anchorNode || !selection.focusNode || selection.isCollapsed) return undefined;
  const [from, to] = [surfaceOf(selection.anchorNode), surfaceOf(selection.focusNode)];
  const part = from?.dataset.part;
  const anchor = offsetOf(selection.anchorNode, selection.anchorOffset);
  const focus = offsetOf(selection.focusNode, selection.focusOffset);
  if (!part || part !== to?.dataset.part || anchor === undefined || focus === undefined) return undefined;
  return { part, anchor, focus };
}

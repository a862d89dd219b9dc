/** Conversion between text offsets and positions on the page. Only elements with `data-at` contain text. */

/** Return the surface of a node: an element that shows one part, or a stretch of it. */
export const closestSurface = (node: Node | null): HTMLElement | null =>
  (node instanceof Element ? node : (node?.parentElement ?? null))?.closest<HTMLElement>("[data-part]") ?? null;

/** Return the offset in its part for a point in the DOM. */
export function textOffset(node: Node, offset: number): number | undefined {
  if (node instanceof Text) {
    const at = node.parentElement?.dataset.at;
    return at === undefined ? undefined : Number(at) + offset;
  }
  const element = node as HTMLElement;
  const next = element.childNodes[offset] ?? null;
  const inside =
    next instanceof HTMLElement
      ? next.matches("[data-at]")
        ? next
        : next.querySelector<HTMLElement>("[data-at]")
      : null;
  if (inside) return Number(inside.dataset.at);
  if (element.dataset.at !== undefined)
    return Number(element.dataset.at) + (offset > 0 ? (element.textContent?.length ?? 0) : 0);
  const following = next ?? element;
  return offsetAfter(following);
}

/** Return the offset at the end of `node`. */
function offsetAfter(node: Node): number | undefined {
  const surface = closestSurface(node);
  if (!surface) return undefined;
  let end: number | undefined;
  for (const piece of surface.querySelectorAll<HTMLElement>("[data-at]")) {
    const relation = node.compareDocumentPosition(piece);
    if (relation & Node.DOCUMENT_POSITION_FOLLOWING && !(relation & Node.DOCUMENT_POSITION_CONTAINED_BY)) break;
    end = Number(piece.dataset.at) + (piece.textContent?.length ?? 0);
  }
  return end;
}

/** Return the DOM point of an offset: the end of a piece instead of the start of the next if `early`. */
export function domPoint(
  surface: HTMLElement,
  offset: number,
  early = false,
): { node: Node; offset: number } | undefined {
  const pieces = paragraphAt(surface, offset, early)?.querySelectorAll<HTMLElement>("[data-at]") ?? [];
  let match: HTMLElement | undefined;
  for (const piece of pieces) {
    const at = Number(piece.dataset.at);
    if (piece.firstChild && (at < offset || (at === offset && (!early || !match)))) match = piece;
  }
  const text = match?.firstChild;
  return text
    ? { node: text, offset: Math.min(offset - Number(match!.dataset.at), text.nodeValue?.length ?? 0) }
    : undefined;
}

/** Return the paragraph of an offset. */
export function paragraphAt(surface: HTMLElement, offset: number, early = false): HTMLElement | undefined {
  let found: HTMLElement | undefined;
  for (const paragraph of surface.querySelectorAll<HTMLElement>(":scope > p")) {
    const from = Number(paragraph.dataset.from);
    if (found && (from > offset || (early && from === offset))) break;
    found = paragraph;
  }
  return found;
}

export interface Box {
  readonly left: number;
  readonly top: number;
  readonly width: number;
  readonly height: number;
}

/** Return the boxes of a range, one per line, relative to the surface. */
export function rangeBoxes(surface: HTMLElement, start: number, end: number): Box[] {
  const [from, to] = [domPoint(surface, start), domPoint(surface, end, true)];
  if (!from || !to || start >= end) return [];
  const range = document.createRange();
  range.setStart(from.node, from.offset);
  range.setEnd(to.node, to.offset);
  const corner = surface.getBoundingClientRect();
  const boxes = [...range.getClientRects()]
    .filter((box) => box.width > 0.5)
    .map((box) => ({ left: box.left - corner.left, top: box.top - corner.top, width: box.width, height: box.height }));
  return joinBoxes(boxes);
}

/** Merge boxes of adjacent pieces on one line. */
function joinBoxes(boxes: Box[]): Box[] {
  const result: Box[] = [];
  for (const box of boxes) {
    const last = result.at(-1);
    if (
      last &&
      Math.abs(last.top - box.top) < 4 &&
      box.left <= last.left + last.width + 1 &&
      box.left + box.width >= last.left - 1
    ) {
      const left = Math.min(last.left, box.left);
      const right = Math.max(last.left + last.width, box.left + box.width);
      result[result.length - 1] = { ...last, left, width: right - left };
    } else result.push(box);
  }
  return result;
}

/** Return the position of a caret, relative to the surface. */
export function caretBox(surface: HTMLElement, offset: number): Box | undefined {
  const point = domPoint(surface, offset) ?? domPoint(surface, offset, true);
  const corner = surface.getBoundingClientRect();
  if (!point) {
    const line = paragraphAt(surface, offset)?.getBoundingClientRect();
    return line && { left: line.left - corner.left, top: line.top - corner.top, width: 0, height: line.height };
  }
  const length = point.node.nodeValue?.length ?? 0;
  const range = document.createRange();
  const isLast = point.offset >= length || point.node.nodeValue?.charAt(point.offset) === "\n";
  const from = isLast && point.offset > 0 ? point.offset - 1 : point.offset;
  range.setStart(point.node, from);
  range.setEnd(point.node, Math.min(from + 1, length));
  const boxes = range.getClientRects();
  const box = from < point.offset ? boxes[boxes.length - 1] : boxes[0];
  if (!box) return undefined;
  const rightToLeft = getComputedStyle(point.node.parentElement!).direction === "rtl";
  const atRight = from < point.offset !== rightToLeft;
  return {
    left: (atRight ? box.right : box.left) - corner.left,
    top: box.top - corner.top,
    width: 0,
    height: box.height,
  };
}

/** Return the surface and offset under a point of the window. */
export function positionAt(x: number, y: number): { surface: HTMLElement; offset: number } | undefined {
  const position = caretAt(x, y);
  const surface = closestSurface(position?.node ?? null);
  if (!position || !surface) return undefined;
  const offset = textOffset(position.node, position.offset);
  return offset === undefined ? undefined : { surface, offset };
}

function caretAt(x: number, y: number): { node: Node; offset: number } | undefined {
  if ("caretPositionFromPoint" in document) {
    const position = document.caretPositionFromPoint(x, y);
    return position ? { node: position.offsetNode, offset: position.offset } : undefined;
  }
  const range = (document as Document).caretRangeFromPoint(x, y);
  return range ? { node: range.startContainer, offset: range.startOffset } : undefined;
}

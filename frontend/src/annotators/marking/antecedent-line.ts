interface Rectangle {
  readonly left: number;
  readonly right: number;
  readonly bottom: number;
}

const LINE_GAP = 3; // px below the underlines of a line
const MARGIN_GAP = 12; // px into the margin next to the text
const MAX_UNDERLINE_SHIFT = 18; // px by which other underlines may lower a mark's own; lines are farther apart

/**
 * Return the path to the antecedent as an SVG `d` attribute: below the earlier words, along the margin, and below the
 * line of the mark to its start. On one line the path runs straight below the words.
 */
export function antecedentPath(
  from: Rectangle,
  to: Rectangle,
  margin: Pick<Rectangle, "left" | "right">,
  origin: { readonly left: number; readonly top: number },
  isRightToLeft = false,
): string {
  const x = (value: number) => Math.round((value - origin.left) * 10) / 10;
  const y = (value: number) => Math.round((value - origin.top) * 10) / 10;
  const edge = isRightToLeft ? "right" : "left";
  const start = `M${x(from[edge])} ${y(from.bottom)}`;
  const end = `H${x(to[edge])}V${y(to.bottom)}`;
  const isOneLine = Math.abs(from.bottom - to.bottom) < MAX_UNDERLINE_SHIFT;
  if (isOneLine) return `${start}V${y(Math.max(from.bottom, to.bottom) + LINE_GAP)}${end}`;
  const side = isRightToLeft ? margin.right + MARGIN_GAP : margin.left - MARGIN_GAP;
  return `${start}V${y(from.bottom + LINE_GAP)}H${x(side)}V${y(to.bottom + LINE_GAP)}${end}`;
}

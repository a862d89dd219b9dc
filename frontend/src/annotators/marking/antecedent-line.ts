interface Rectangle {
  readonly left: number;
  readonly right: number;
  readonly bottom: number;
}

const LINE_GAP = 3; // px under the underlines of a line
const MARGIN_GAP = 12; // px into the margin beside the text
const MAX_UNDERLINE_SHIFT = 18; // px by which underlines of other marks may push a mark's own down; lines are farther apart

/**
 * The path of the line to the antecedent, as the `d` of a path: under the earlier words into the margin, along it, and under the line of
 * the mark to where that begins. On one line it runs straight below the words.
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

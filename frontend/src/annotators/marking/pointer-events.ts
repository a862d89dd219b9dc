import { browserSelection } from "./caret";
import { positionAt } from "./text-dom";
import type { Marking } from "./marking.svelte";
import type { TaskState } from "../session/task-state.svelte";
import { markKey, type MarkKey, type Work } from "../work/work";

const LONG_PRESS_DELAY = 450; // ms
const MAX_FINGER_MOVE = 10; // px that a resting finger may move
const HOVER_DELAY = 300; // ms

/** Handle mouse, pen and touch on the text: select words and marks, drag ends. Attach to the parent of surfaces. */
export function attachPointerEvents(root: HTMLElement, current: TaskState, marking: Marking): () => void {
  let dragTo: ((x: number, y: number) => void) | undefined;
  let finger: { x: number; y: number; timer: ReturnType<typeof setTimeout> } | undefined;
  let hoverTimer: ReturnType<typeof setTimeout> | undefined;
  let isExtending = false;
  let isPressed = false;
  let isTouchConsumed = false; // the touch that ends must not tap what appears under it
  let isTouchOnText = false; // the last finger went down on the text

  const onPointerDown = (event: PointerEvent) => {
    const target = event.target as HTMLElement;
    marking.panels.hoverCard = undefined;
    if (event.button !== 0 || !target.closest(".surface")) return;
    marking.selection.isPressing = isPressed = true;
    dragTo = dragHandler(target, marking);
    if (dragTo) event.preventDefault();
    else if (event.pointerType === "touch") {
      const { clientX: x, clientY: y } = event;
      finger = { x, y, timer: setTimeout(() => (isExtending = handleLongPress(x, y, marking)), LONG_PRESS_DELAY) };
    }
  };
  const onPointerMove = (event: PointerEvent) => {
    dragTo?.(event.clientX, event.clientY);
    if (isExtending) extendSelection(event, marking);
    if (finger && !isExtending && Math.hypot(event.clientX - finger.x, event.clientY - finger.y) > MAX_FINGER_MOVE)
      cancelLongPress();
    if (event.pointerType === "mouse" && event.buttons === 0) scheduleHoverCard(event);
  };
  const onPointerUp = (event: PointerEvent) => {
    if (!isPressed) return;
    const isTap = finger && !isExtending;
    isTouchConsumed = isExtending || dragTo !== undefined;
    const isClick = event.pointerType !== "touch" || isTap;
    if (!dragTo && isClick) handleRelease(event, marking);
    cancelLongPress();
    isExtending = isPressed = false;
    dragTo = undefined;
    marking.selection.isPressing = false;
  };
  const onPointerCancel = () => {
    cancelLongPress();
    isExtending = isPressed = false;
    dragTo = undefined;
    marking.selection.isPressing = false;
  };
  const cancelLongPress = () => {
    clearTimeout(finger?.timer);
    finger = undefined;
  };
  const scheduleHoverCard = (event: PointerEvent) => {
    clearTimeout(hoverTimer);
    const piece = (event.target as HTMLElement).closest<HTMLElement>("[data-surface] [data-mark]");
    if ((event.target as HTMLElement).closest(".hover")) return;
    hoverTimer = setTimeout(
      () => (marking.panels.hoverCard = piece ? hoverCardFor(piece, event, current.work) : undefined),
      HOVER_DELAY,
    );
  };
  /** Prevent scrolling while a selection is extended by touch or an end is dragged. */
  const preventScroll = (event: TouchEvent) => {
    if ((isExtending || dragTo) && event.cancelable) event.preventDefault();
  };
  const onTouchEnd = (event: TouchEvent) => {
    if (isTouchConsumed && event.cancelable) event.preventDefault();
    isTouchConsumed = false;
  };
  const hideHoverCard = () => {
    clearTimeout(hoverTimer);
    marking.panels.hoverCard = undefined;
  };
  const recordTouch = (event: PointerEvent) => {
    isTouchOnText = event.pointerType === "touch" && (event.target as HTMLElement).closest(".surface") !== null;
  };
  /** Ignore the click of a finger that went down on the text, even if a control appears under it. */
  const blockStrayClick = (event: MouseEvent) => {
    if (!isTouchOnText || event.detail === 0 || (event.target as HTMLElement).closest(".surface")) return;
    event.preventDefault();
    event.stopPropagation();
  };
  const blockContextMenu = (event: Event) => {
    if (isExtending || finger) event.preventDefault();
  };

  document.addEventListener("pointerdown", recordTouch, { capture: true });
  for (const type of ["mousedown", "mouseup", "click"] as const)
    document.addEventListener(type, blockStrayClick, { capture: true });
  root.addEventListener("pointerdown", onPointerDown);
  root.addEventListener("contextmenu", blockContextMenu);
  root.addEventListener("touchmove", preventScroll, { passive: false });
  root.addEventListener("touchend", onTouchEnd, { passive: false });
  document.addEventListener("pointermove", onPointerMove);
  document.addEventListener("pointerup", onPointerUp);
  document.addEventListener("pointercancel", onPointerCancel);
  document.addEventListener("scroll", hideHoverCard, { capture: true, passive: true });
  return () => {
    document.removeEventListener("pointerdown", recordTouch, { capture: true });
    for (const type of ["mousedown", "mouseup", "click"] as const)
      document.removeEventListener(type, blockStrayClick, { capture: true });
    document.removeEventListener("pointermove", onPointerMove);
    document.removeEventListener("pointerup", onPointerUp);
    document.removeEventListener("pointercancel", onPointerCancel);
    document.removeEventListener("scroll", hideHoverCard, { capture: true });
  };
}

/** Handle the end of a press: words were selected, or a position was clicked. */
function handleRelease(event: PointerEvent, marking: Marking): void {
  const adding = event.ctrlKey || event.metaKey;
  const selected = browserSelection();
  const place = positionAt(event.clientX, event.clientY);
  getSelection()?.removeAllRanges();
  const offered = (event.target as HTMLElement).closest?.<HTMLElement>("[data-mark^='offer-'], [data-mark*=' offer-']");
  if (selected) {
    if (adding) marking.picking.selectMore(selected.part, selected.anchor, selected.focus);
    else marking.selection.select(selected.part, selected.anchor, selected.focus);
    if (place && countClicks(event) >= 3)
      marking.selection.selectAround(selected.part, Math.min(selected.anchor, selected.focus), "sentence");
  } else if (place)
    marking.marks.handleClick(place.surface.dataset.part!, place.offset, offered ? offerId(offered) : undefined);
  marking.selection.focusText();
}

const offerId = (piece: HTMLElement): string =>
  piece.dataset
    .mark!.split(" ")
    .find((id) => id.startsWith("offer-"))!
    .slice("offer-".length);

let lastClick = { time: 0, count: 0, x: 0, y: 0 };
/** Count clicks at one position, because pointer events do not. */
function countClicks({ timeStamp, clientX, clientY }: PointerEvent): number {
  const isRepeated =
    timeStamp - lastClick.time < 500 && Math.hypot(clientX - lastClick.x, clientY - lastClick.y) < MAX_FINGER_MOVE;
  lastClick = { time: timeStamp, count: isRepeated ? lastClick.count + 1 : 1, x: clientX, y: clientY };
  return lastClick.count;
}

/** Return the drag handler for an end of the selected mark or of the selection. */
function dragHandler(target: HTMLElement, marking: Marking): ((x: number, y: number) => void) | undefined {
  const bar = target.closest<HTMLElement>("[data-bar]");
  if (bar) return barDragHandler(bar, marking);
  const handle = target.closest<HTMLElement>("[data-handle]")?.dataset.handle;
  const { caret } = marking.selection;
  if (!handle || !caret) return undefined;
  const fixedOffset = (handle === "start" ? Math.max : Math.min)(caret.anchor, caret.focus);
  return (x, y) => {
    const place = positionAt(x, y - (handle === "start" ? -24 : 24));
    if (place?.surface.dataset.part === caret.part && place.offset !== fixedOffset)
      marking.selection.select(caret.part, fixedOffset, place.offset);
  };
}

function barDragHandler(bar: HTMLElement, marking: Marking): (x: number, y: number) => void {
  const edge = bar.dataset.bar as "start" | "end";
  let [start, end] = bar.dataset.span!.split("-").map(Number) as [number, number];
  return (x, y) => {
    const place = positionAt(x, y);
    if (!place) return;
    marking.edits.dragEdge({ start, end }, edge, place.offset);
    const now = marking.chosen.mark?.spans.find((span) => (edge === "start" ? span.end === end : span.start === start));
    if (now) ({ start, end } = now);
  };
}

function handleLongPress(x: number, y: number, marking: Marking): boolean {
  const place = positionAt(x, y);
  if (!place) return false;
  marking.selection.selectAround(place.surface.dataset.part!, place.offset, "word");
  navigator.vibrate?.(10);
  return true;
}

function extendSelection(event: PointerEvent, marking: Marking): void {
  const place = positionAt(event.clientX, event.clientY);
  const { caret } = marking.selection;
  if (!place || !caret || place.surface.dataset.part !== caret.part) return;
  const low = Math.min(caret.anchor, caret.focus);
  const high = Math.max(caret.anchor, caret.focus);
  if (place.offset > high) marking.selection.select(caret.part, low, place.offset);
  if (place.offset < low) marking.selection.select(caret.part, high, place.offset);
}

function hoverCardFor(piece: HTMLElement, event: PointerEvent, work: Work) {
  const keys = piece.dataset
    .mark!.split(" ")
    .map(markKey)
    .filter((key): key is MarkKey => work[key] !== undefined);
  const box = [...piece.getClientRects()].find((each) => event.clientY >= each.top && event.clientY <= each.bottom);
  return keys.length > 0 && box ? { keys, x: event.clientX, y: box.bottom } : undefined;
}

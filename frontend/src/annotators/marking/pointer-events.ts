import { browserSelection } from "./caret";
import { positionAt } from "./text-dom";
import type { Marking } from "./marking.svelte";
import { markKey, type MarkKey } from "../work/work";

const LONG_PRESS_DELAY = 450; // ms
const MAX_FINGER_MOVE = 10; // px that a resting finger may move
const HOVER_DELAY = 300; // ms

/** Mouse, pen and fingers on the text: select, choose, drag ends. Attach to what holds the surfaces. */
export function attachPointerEvents(root: HTMLElement, marking: Marking): () => void {
  let dragTo: ((x: number, y: number) => void) | undefined;
  let finger: { x: number; y: number; timer: ReturnType<typeof setTimeout> } | undefined;
  let hoverTimer: ReturnType<typeof setTimeout> | undefined;
  let isExtending = false;
  let isPressed = false;
  let isTouchConsumed = false; // the touch that ends is not a tap on what appears under it
  let isTouchOnText = false; // the last finger went down on the text

  const onPointerDown = (event: PointerEvent) => {
    const target = event.target as HTMLElement;
    marking.hoverCard = undefined;
    if (event.button !== 0 || !target.closest(".surface")) return;
    marking.isPressing = isPressed = true;
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
    marking.isPressing = false;
  };
  const onPointerCancel = () => {
    cancelLongPress();
    isExtending = isPressed = false;
    dragTo = undefined;
    marking.isPressing = false;
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
      () => (marking.hoverCard = piece ? hoverCardFor(piece, event, marking) : undefined),
      HOVER_DELAY,
    );
  };
  /** While words are extended by finger, or an end is dragged, the page must not scroll. */
  const preventScroll = (event: TouchEvent) => {
    if ((isExtending || dragTo) && event.cancelable) event.preventDefault();
  };
  const onTouchEnd = (event: TouchEvent) => {
    if (isTouchConsumed && event.cancelable) event.preventDefault();
    isTouchConsumed = false;
  };
  const hideHoverCard = () => {
    clearTimeout(hoverTimer);
    marking.hoverCard = undefined;
  };
  const recordTouch = (event: PointerEvent) => {
    isTouchOnText = event.pointerType === "touch" && (event.target as HTMLElement).closest(".surface") !== null;
  };
  /** A finger that went down on the text presses nothing else, whatever appears under it before it is lifted. */
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

/** The button was released, or a finger tapped: words were selected, or a place was clicked. */
function handleRelease(event: PointerEvent, marking: Marking): void {
  const adding = event.ctrlKey || event.metaKey;
  const selected = browserSelection();
  const place = positionAt(event.clientX, event.clientY);
  getSelection()?.removeAllRanges();
  const offered = (event.target as HTMLElement).closest?.<HTMLElement>("[data-mark^='offer-'], [data-mark*=' offer-']");
  if (selected) {
    marking.select(selected.part, selected.anchor, selected.focus, adding);
    if (place && countClicks(event) >= 3)
      marking.selectAround(selected.part, Math.min(selected.anchor, selected.focus), "sentence");
  } else if (place)
    marking.handleClick(place.surface.dataset.part!, place.offset, offered ? offerId(offered) : undefined);
  marking.focusText();
}

const offerId = (piece: HTMLElement): string =>
  piece.dataset
    .mark!.split(" ")
    .find((id) => id.startsWith("offer-"))!
    .slice("offer-".length);

let lastClick = { time: 0, count: 0, x: 0, y: 0 };
/** Clicks in a row at one place; pointer events do not count them. */
function countClicks({ timeStamp, clientX, clientY }: PointerEvent): number {
  const isRepeated =
    timeStamp - lastClick.time < 500 && Math.hypot(clientX - lastClick.x, clientY - lastClick.y) < MAX_FINGER_MOVE;
  lastClick = { time: timeStamp, count: isRepeated ? lastClick.count + 1 : 1, x: clientX, y: clientY };
  return lastClick.count;
}

/** What dragging does that begins on an end of the chosen mark, or on a handle of the selection. */
function dragHandler(target: HTMLElement, marking: Marking): ((x: number, y: number) => void) | undefined {
  const bar = target.closest<HTMLElement>("[data-bar]");
  if (bar) return barDragHandler(bar, marking);
  const handle = target.closest<HTMLElement>("[data-handle]")?.dataset.handle;
  const { selection } = marking;
  if (!handle || !selection) return undefined;
  const fixedOffset = (handle === "start" ? Math.max : Math.min)(selection.anchor, selection.focus);
  return (x, y) => {
    const place = positionAt(x, y - (handle === "start" ? -24 : 24));
    if (place?.surface.dataset.part === selection.part && place.offset !== fixedOffset)
      marking.select(selection.part, fixedOffset, place.offset);
  };
}

function barDragHandler(bar: HTMLElement, marking: Marking): (x: number, y: number) => void {
  const edge = bar.dataset.bar as "start" | "end";
  let [start, end] = bar.dataset.span!.split("-").map(Number) as [number, number];
  return (x, y) => {
    const place = positionAt(x, y);
    if (!place) return;
    marking.dragEdge({ start, end }, edge, place.offset);
    const now = marking.chosenMark?.spans.find((span) => (edge === "start" ? span.end === end : span.start === start));
    if (now) ({ start, end } = now);
  };
}

function handleLongPress(x: number, y: number, marking: Marking): boolean {
  const place = positionAt(x, y);
  if (!place) return false;
  marking.selectAround(place.surface.dataset.part!, place.offset, "word");
  navigator.vibrate?.(10);
  return true;
}

function extendSelection(event: PointerEvent, marking: Marking): void {
  const place = positionAt(event.clientX, event.clientY);
  const { selection } = marking;
  if (!place || !selection || place.surface.dataset.part !== selection.part) return;
  const low = Math.min(selection.anchor, selection.focus);
  const high = Math.max(selection.anchor, selection.focus);
  if (place.offset > high) marking.select(selection.part, low, place.offset);
  if (place.offset < low) marking.select(selection.part, high, place.offset);
}

function hoverCardFor(piece: HTMLElement, event: PointerEvent, marking: Marking) {
  const keys = piece.dataset
    .mark!.split(" ")
    .map(markKey)
    .filter((key): key is MarkKey => marking.work[key] !== undefined);
  const box = [...piece.getClientRects()].find((each) => event.clientY >= each.top && event.clientY <= each.bottom);
  return keys.length > 0 && box ? { keys, x: event.clientX, y: box.bottom } : undefined;
}

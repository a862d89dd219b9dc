import { browserSelection } from "./caret";
import { placeAt } from "./dom";
import type { Marking } from "./marking.svelte";
import { markKey, type MarkKey } from "../work/work";

const LONG_PRESS = 450; // ms
const TOLERANCE = 10; // px that a resting finger may move
const HOVER_DELAY = 300; // ms

/** Mouse, pen and fingers on the text: select, choose, drag ends. Attach to what holds the surfaces. */
export function pointers(root: HTMLElement, marking: Marking): () => void {
  let drag: ((x: number, y: number) => void) | undefined;
  let finger: { x: number; y: number; timer: ReturnType<typeof setTimeout> } | undefined;
  let hovering: ReturnType<typeof setTimeout> | undefined;
  let extending = false;
  let pressed = false;
  let consumed = false; // the touch that ends is not a tap on what appears under it
  let touched = false; // the last finger went down on the text

  const down = (event: PointerEvent) => {
    const target = event.target as HTMLElement;
    marking.hover = undefined;
    if (event.button !== 0 || !target.closest(".surface")) return;
    marking.pressing = pressed = true;
    drag = dragged(target, marking);
    if (drag) event.preventDefault();
    else if (event.pointerType === "touch") {
      const { clientX: x, clientY: y } = event;
      finger = { x, y, timer: setTimeout(() => (extending = longPress(x, y, marking)), LONG_PRESS) };
    }
  };
  const move = (event: PointerEvent) => {
    drag?.(event.clientX, event.clientY);
    if (extending) extend(event, marking);
    if (finger && !extending && Math.hypot(event.clientX - finger.x, event.clientY - finger.y) > TOLERANCE) lift();
    if (event.pointerType === "mouse" && event.buttons === 0) hover(event);
  };
  const up = (event: PointerEvent) => {
    if (!pressed) return;
    const tapped = finger && !extending;
    consumed = extending || drag !== undefined;
    const resting = event.pointerType !== "touch" || tapped;
    if (!drag && resting) released(event, marking);
    lift();
    extending = pressed = false;
    drag = undefined;
    marking.pressing = false;
  };
  const cancel = () => {
    lift();
    extending = pressed = false;
    drag = undefined;
    marking.pressing = false;
  };
  const lift = () => {
    clearTimeout(finger?.timer);
    finger = undefined;
  };
  const hover = (event: PointerEvent) => {
    clearTimeout(hovering);
    const piece = (event.target as HTMLElement).closest<HTMLElement>("[data-surface] [data-mark]");
    if ((event.target as HTMLElement).closest(".hover")) return;
    hovering = setTimeout(() => (marking.hover = piece ? hovered(piece, event, marking) : undefined), HOVER_DELAY);
  };
  /** While words are extended by finger, or an end is dragged, the page must not scroll. */
  const still = (event: TouchEvent) => {
    if ((extending || drag) && event.cancelable) event.preventDefault();
  };
  const end = (event: TouchEvent) => {
    if (consumed && event.cancelable) event.preventDefault();
    consumed = false;
  };
  const stop = () => {
    clearTimeout(hovering);
    marking.hover = undefined;
  };
  const press = (event: PointerEvent) => {
    touched = event.pointerType === "touch" && (event.target as HTMLElement).closest(".surface") !== null;
  };
  /** A finger that went down on the text presses nothing else, whatever appears under it before it is lifted. */
  const guard = (event: MouseEvent) => {
    if (!touched || event.detail === 0 || (event.target as HTMLElement).closest(".surface")) return;
    event.preventDefault();
    event.stopPropagation();
  };
  const menu = (event: Event) => {
    if (extending || finger) event.preventDefault();
  };

  document.addEventListener("pointerdown", press, { capture: true });
  for (const type of ["mousedown", "mouseup", "click"] as const)
    document.addEventListener(type, guard, { capture: true });
  root.addEventListener("pointerdown", down);
  root.addEventListener("contextmenu", menu);
  root.addEventListener("touchmove", still, { passive: false });
  root.addEventListener("touchend", end, { passive: false });
  document.addEventListener("pointermove", move);
  document.addEventListener("pointerup", up);
  document.addEventListener("pointercancel", cancel);
  document.addEventListener("scroll", stop, { capture: true, passive: true });
  return () => {
    document.removeEventListener("pointerdown", press, { capture: true });
    for (const type of ["mousedown", "mouseup", "click"] as const)
      document.removeEventListener(type, guard, { capture: true });
    document.removeEventListener("pointermove", move);
    document.removeEventListener("pointerup", up);
    document.removeEventListener("pointercancel", cancel);
    document.removeEventListener("scroll", stop, { capture: true });
  };
}

/** The button was released, or a finger tapped: words were selected, or a place was clicked. */
function released(event: PointerEvent, marking: Marking): void {
  const adding = event.ctrlKey || event.metaKey;
  const selected = browserSelection();
  const place = placeAt(event.clientX, event.clientY);
  getSelection()?.removeAllRanges();
  const offered = (event.target as HTMLElement).closest?.<HTMLElement>("[data-mark^='offer-'], [data-mark*=' offer-']");
  if (selected) {
    marking.select(selected.part, selected.anchor, selected.focus, adding);
    if (place && clicks(event) >= 3)
      marking.selectAround(selected.part, Math.min(selected.anchor, selected.focus), "sentence");
  } else if (place) marking.click(place.surface.dataset.part!, place.offset, offered ? offerOf(offered) : undefined);
  marking.focusText();
}

const offerOf = (piece: HTMLElement): string =>
  piece.dataset
    .mark!.split(" ")
    .find((id) => id.startsWith("offer-"))!
    .slice("offer-".length);

let last = { time: 0, count: 0, x: 0, y: 0 };
/** Clicks in a row at one place; pointer events do not count them. */
function clicks({ timeStamp, clientX, clientY }: PointerEvent): number {
  const again = timeStamp - last.time < 500 && Math.hypot(clientX - last.x, clientY - last.y) < TOLERANCE;
  last = { time: timeStamp, count: again ? last.count + 1 : 1, x: clientX, y: clientY };
  return last.count;
}

/** What dragging does that begins on an end of the chosen mark, or on a handle of the selection. */
function dragged(target: HTMLElement, marking: Marking): ((x: number, y: number) => void) | undefined {
  const bar = target.closest<HTMLElement>("[data-bar]");
  if (bar) return dragBar(bar, marking);
  const handle = target.closest<HTMLElement>("[data-handle]")?.dataset.handle;
  const { selection } = marking;
  if (!handle || !selection) return undefined;
  const fixed = (handle === "start" ? Math.max : Math.min)(selection.anchor, selection.focus);
  return (x, y) => {
    const place = placeAt(x, y - (handle === "start" ? -24 : 24));
    if (place?.surface.dataset.part === selection.part && place.offset !== fixed)
      marking.select(selection.part, fixed, place.offset);
  };
}

function dragBar(bar: HTMLElement, marking: Marking): (x: number, y: number) => void {
  const edge = bar.dataset.bar as "start" | "end";
  let [start, end] = bar.dataset.span!.split("-").map(Number) as [number, number];
  return (x, y) => {
    const place = placeAt(x, y);
    if (!place) return;
    marking.drag({ start, end }, edge, place.offset);
    const now = marking.mark?.spans.find((span) => (edge === "start" ? span.end === end : span.start === start));
    if (now) ({ start, end } = now);
  };
}

function longPress(x: number, y: number, marking: Marking): boolean {
  const place = placeAt(x, y);
  if (!place) return false;
  marking.selectAround(place.surface.dataset.part!, place.offset, "word");
  navigator.vibrate?.(10);
  return true;
}

function extend(event: PointerEvent, marking: Marking): void {
  const place = placeAt(event.clientX, event.clientY);
  const { selection } = marking;
  if (!place || !selection || place.surface.dataset.part !== selection.part) return;
  const low = Math.min(selection.anchor, selection.focus);
  const high = Math.max(selection.anchor, selection.focus);
  if (place.offset > high) marking.select(selection.part, low, place.offset);
  if (place.offset < low) marking.select(selection.part, high, place.offset);
}

function hovered(piece: HTMLElement, event: PointerEvent, marking: Marking) {
  const keys = piece.dataset
    .mark!.split(" ")
    .map(markKey)
    .filter((key): key is MarkKey => marking.work[key] !== undefined);
  const box = [...piece.getClientRects()].find((each) => event.clientY >= each.top && event.clientY <= each.bottom);
  return keys.length > 0 && box ? { keys, x: event.clientX, y: box.bottom } : undefined;
}

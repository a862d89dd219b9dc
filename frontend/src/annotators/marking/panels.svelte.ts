import type { MissingItem } from "../work/missing-items";
import type { MarkKey } from "../work/work";

/** Panel that is open next to or above the text. */
export type Panel = "guide" | "settings" | "texts" | "cannot" | "list" | "palette";

/** Panels, cards and questions that are open on the page. */
export class Panels {
  open = $state<Panel>();
  /** Label whose definition the guide shows first. */
  definedLabel = $state<string>();
  /** Label in the palette under the pointer or focus. */
  pointedLabel = $state<string>();
  /** Field that should get attention. */
  highlightedItem = $state.raw<MissingItem>();
  /** Question that was asked once and waits for confirmation. */
  pendingConfirmation = $state<"no-errors" | "offers">();
  /** Marks shown in the hover card, and its position. */
  hoverCard = $state.raw<{ readonly keys: readonly MarkKey[]; readonly x: number; readonly y: number }>();

  openGuide(label: string | undefined): void {
    this.definedLabel = label;
    this.open = "guide";
  }

  closeAll(): void {
    this.open = this.highlightedItem = this.hoverCard = this.pendingConfirmation = undefined;
  }
}

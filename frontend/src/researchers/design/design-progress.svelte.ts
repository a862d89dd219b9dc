import type { Api } from "../../lib/api";
import type { DesignCellRow, DesignPage, Recruiting } from "../api-types";
import { LiveValue } from "../live-value.svelte";
import { formatMoney } from "../shared/format";
import { arrivalsByDay, countFilled, neededPeople, projectFilling } from "./design-matrix";

/** Design as it fills: its cells, the people who came, and the projection that several parts of the page show. */
export class DesignProgress {
  readonly design: LiveValue<DesignPage>;
  readonly recruiting: LiveValue<Recruiting>;

  constructor(api: Api) {
    this.design = new LiveValue(api, "/api/admin/design");
    this.recruiting = new LiveValue(api, "/api/admin/recruiting");
  }

  readonly cells = $derived.by(() => this.design.value?.cells ?? []);
  readonly people = $derived.by(() => this.recruiting.value?.people ?? []);
  readonly total = $derived(countFilled(this.cells));
  /** Cells that need more people, the emptiest first. */
  readonly openCells = $derived(
    this.cells.filter((cell) => neededPeople(cell) > 0).sort((a, b) => neededPeople(b) - neededPeople(a)),
  );
  readonly neededCount = $derived(this.openCells.reduce((total, cell) => total + neededPeople(cell), 0));
  readonly hasPay = $derived(this.cells.some((cell) => cell.pay !== null));
  /** Number of participants. Imported work has no arrival time. */
  readonly arrivedCount = $derived(this.people.filter((one) => one.came || one.stage !== "invited").length);
  readonly payByCell = $derived.by(() => new Map(this.recruiting.value?.cells.map((row) => [row.cell, row])));
  readonly days = $derived.by(() => {
    const { value } = this.recruiting;
    return value ? arrivalsByDay(this.people, value.as_of) : [];
  });
  readonly plan = $derived.by(() => {
    const { value } = this.recruiting;
    return value ? projectFilling(this.cells, this.people, value.as_of, value.costs.total) : undefined;
  });

  formatAmount = (value: number): string => formatMoney(value, this.design.value?.currency ?? "USD");

  factorTitle = (factor: string, value: string): string =>
    factor === "condition" ? (this.design.value?.titles[value] ?? value) : value;

  cellName = (cell: DesignCellRow): string =>
    Object.entries(cell.factors)
      .map(([factor, value]) => this.factorTitle(factor, value))
      .join(", ");
}

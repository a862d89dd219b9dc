import type { Overview } from "../api-types";

type SystemRow = Overview["models"][number];
const isHuman = ({ model }: SystemRow): boolean => model === "human";

/** Sort systems by estimate, most marks first; texts of unknown systems follow, and human texts come last. */
export const sortSystems = (rows: readonly SystemRow[]): SystemRow[] =>
  [...rows].sort(
    (one, other) =>
      Number(isHuman(one)) - Number(isHuman(other)) ||
      Number(one.model === null) - Number(other.model === null) ||
      (other.rate.value ?? -1) - (one.rate.value ?? -1),
  );

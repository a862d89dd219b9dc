import type { Overview } from "../api-types";

type SystemRow = Overview["models"][number];
const isHuman = ({ model }: SystemRow): boolean => model === "human";

/** Systems by their estimate, most marks first; texts by people last, and above them those whose system is not known. */
export const sortSystems = (rows: readonly SystemRow[]): SystemRow[] =>
  [...rows].sort(
    (one, other) =>
      Number(isHuman(one)) - Number(isHuman(other)) ||
      Number(one.model === null) - Number(other.model === null) ||
      (other.rate.value ?? -1) - (one.rate.value ?? -1),
  );

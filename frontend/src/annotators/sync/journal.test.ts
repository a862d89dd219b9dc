import { expect, test } from "vitest";
import { Journal, type JournalEntry } from "./journal";

class Memory {
  [name: string]: unknown;
  setItem(name: string, value: string) {
    this[name] = value;
  }
  getItem(name: string) {
    return this[name] as string;
  }
  removeItem(name: string) {
    delete this[name];
  }
}
const CHANGE: JournalEntry = { task: "t", key: "marks/m", body: null, active: 1, change: "c1", at: 1 };

test("a noted change is available to the next page until it is deleted", () => {
  const memory = new Memory() as unknown as Storage;
  const strike = new Journal(memory).add(CHANGE);
  new Journal(memory).add({ ...CHANGE, change: "c2" });
  expect(new Journal(memory).pendingEntries().map(([noted]) => noted.change)).toEqual(["c1", "c2"]);
  strike();
  const [[noted, done]] = new Journal(memory).pendingEntries() as [[JournalEntry, () => void]];
  expect(noted).toEqual({ ...CHANGE, change: "c2" });
  done();
  expect(new Journal(memory).pendingEntries()).toEqual([]);
});

test("a change that another tab deletes between listing and reading is ignored", () => {
  const memory = new Memory() as unknown as Storage;
  new Journal(memory).add(CHANGE);
  new Journal(memory).add({ ...CHANGE, change: "c2", at: 2 });
  const read = memory.getItem.bind(memory);
  memory.getItem = (name) => (name.endsWith("c1") ? null : read(name));
  expect(new Journal(memory).pendingEntries().map(([noted]) => noted.change)).toEqual(["c2"]);
});

test("full or missing storage causes no error", () => {
  const full = {
    setItem: () => {
      throw new Error("full");
    },
    removeItem: () => undefined,
  } as unknown as Storage;
  expect(() => new Journal(full).add(CHANGE)()).not.toThrow();
  expect(() => new Journal(undefined).add(CHANGE)()).not.toThrow();
  expect(new Journal(undefined).pendingEntries()).toEqual([]);
});

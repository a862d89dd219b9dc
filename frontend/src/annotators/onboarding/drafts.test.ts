import { describe, expect, test } from "vitest";
import { page } from "../work/fixtures";
import { Drafts, type Draft } from "./drafts";

describe("page drafts", () => {
  const draft: Draft = { answers: { age: 30 }, active: 2 };
  const storage = () => {
    const kept = new Map<string, string>();
    return {
      getItem: (name: string) => kept.get(name) ?? null,
      setItem: (name: string, value: string) => void kept.set(name, value),
      removeItem: (name: string) => void kept.delete(name),
    } as unknown as Storage;
  };
  test("are stored per person and step until deleted", () => {
    const device = storage();
    expect(new Drafts(device).write("a", "survey", draft)).toBe(true);
    expect(new Drafts(device).read("a", "survey")).toEqual(draft);
    expect([new Drafts(device).read("b", "survey"), new Drafts(device).read("a", "s")]).toEqual([undefined, undefined]);
    new Drafts(device).remove("a", "survey");
    expect(new Drafts(device).read("a", "survey")).toBeUndefined();
  });
  test("stay in memory if storage is full, and ignore foreign data", () => {
    const full = {
      ...storage(),
      setItem: () => {
        throw new DOMException("full", "QuotaExceededError");
      },
    };
    const drafts = new Drafts(full as unknown as Storage);
    expect(drafts.write("a", page("s").step, draft)).toBe(false);
    expect(drafts.read("a", "s")).toEqual(draft);
    const odd = { ...storage(), getItem: () => "{" };
    expect(new Drafts(odd as unknown as Storage).read("a", "s")).toBeUndefined();
  });
});

import { beforeEach, expect, test, vi } from "vitest";
import { Api } from "../../lib/api";
import type { Me } from "../../lib/api-types";
import { Account } from "../session/account.svelte";
import { ActivityClock } from "../session/activity-clock";
import { PartNavigation } from "../session/part-navigation.svelte";
import { SyncConnection } from "../session/sync-connection";
import { TaskChanges } from "../session/task-changes";
import { TaskState } from "../session/task-state.svelte";
import { guide, task } from "../work/fixtures";
import { Marking } from "./marking.svelte";

const TEXT = "The ferry left the old harbour at noon.";

/** Session with one text whose changes are kept here instead of being sent. */
function openText() {
  const api = new Api();
  const clock = new ActivityClock();
  const account = new Account(api);
  account.me = { guide: guide() } as Me;
  const current = new TaskState(account);
  const connection = new SyncConnection(api);
  connection.sender = { saveChange: vi.fn() } as unknown as typeof connection.sender;
  connection.store = { saveLocalState: vi.fn() } as unknown as typeof connection.store;
  const changes = new TaskChanges(current, connection, clock);
  const navigation = new PartNavigation(api, current, changes, clock);
  current.setTask(task(TEXT));
  return { current, changes, navigation };
}
const at = (word: string): [string, number, number] => {
  const start = TEXT.indexOf(word);
  return ["text", start, start + word.length];
};

let session: ReturnType<typeof openText>;
let marking: Marking;
beforeEach(() => {
  session = openText();
  marking = new Marking(session);
});
const markedWords = () =>
  session.current.marks.map(([, { spans }]) => spans.map(({ start, end }) => TEXT.slice(start, end)));

test("words selected further become part of the selected mark", () => {
  marking.selection.select(...at("ferry"));
  marking.edits.applyLabel("word");
  marking.picking.selectMore(...at("harbour"));
  expect(markedWords()).toEqual([["ferry", "harbour"]]);
});

test("words selected one after the other are marked together", () => {
  marking.selection.select(...at("ferry"));
  marking.picking.selectMore(...at("noon"));
  expect(markedWords()).toEqual([]);
  marking.edits.applyLabel("name");
  expect(markedWords()).toEqual([["ferry", "noon"]]);
});

test("Escape leaves the panel, the mode, the words and the mark, one at a time", () => {
  vi.spyOn(marking.selection, "focusText").mockImplementation(() => undefined);
  marking.selection.select(...at("ferry"));
  marking.edits.applyLabel("again");
  marking.picking.start("pick");
  marking.panels.openGuide("again");
  const state = () => [marking.panels.open, marking.selection.mode, marking.chosen.mark?.label];
  const states = [state()];
  for (let press = 0; press < 3; press++) {
    marking.handleCommand({ do: "escape" });
    states.push(state());
  }
  expect(states).toEqual([
    ["guide", "pick", "again"],
    [undefined, "pick", "again"],
    [undefined, "read", "again"],
    [undefined, "read", undefined],
  ]);
});

test("undoing a mark deselects it and another text starts from nothing", () => {
  marking.selection.select(...at("ferry"));
  marking.edits.applyLabel("word");
  marking.edits.undo();
  expect([markedWords(), marking.chosen.key]).toEqual([[], undefined]);
  marking.selection.select(...at("old"));
  marking.reset();
  expect([marking.selection.caret, marking.selection.span]).toEqual([undefined, undefined]);
});

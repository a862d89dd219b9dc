import type { Body } from "../../lib/api-types";
import type { EntryKey } from "../work/work";

/** Messages between tabs of one browser. */
export type TabMessage =
  | { readonly type: "hello" | "here" | "moved" }
  | { readonly type: "changed"; readonly task: string; readonly key: EntryKey; readonly body: Body | null }
  | { readonly type: "sent" };

/** Open a channel to the other tabs of this browser; without support, messages are dropped. */
export function openTabChannel(receive: (message: TabMessage) => void): (message: TabMessage) => void {
  if (typeof BroadcastChannel === "undefined") return () => undefined;
  const channel = new BroadcastChannel("finecomb");
  channel.onmessage = (event: MessageEvent<TabMessage>) => receive(event.data);
  return (message) => channel.postMessage(message);
}

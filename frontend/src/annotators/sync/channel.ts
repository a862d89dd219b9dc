import type { Body } from "../../lib/api-types";
import type { Key } from "../work/work";

/** What tabs of one browser tell each other. */
export type Message =
  | { readonly type: "hello" | "here" | "moved" }
  | { readonly type: "changed"; readonly task: string; readonly key: Key; readonly body: Body | null }
  | { readonly type: "sent" };

/** Talk to the other tabs of this browser; where there is no channel, silence. */
export function channel(receive: (message: Message) => void): (message: Message) => void {
  if (typeof BroadcastChannel === "undefined") return () => undefined;
  const open = new BroadcastChannel("finecomb");
  open.onmessage = (event: MessageEvent<Message>) => receive(event.data);
  return (message) => open.postMessage(message);
}

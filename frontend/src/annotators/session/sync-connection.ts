import type { Api } from "../../lib/api";
import { deviceStorage } from "../../lib/device-storage";
import { newId } from "../sync/ids";
import { Journal } from "../sync/journal";
import { Sender, type SenderListener } from "../sync/sender";
import { openStore, type Store } from "../sync/store";
import { openTabChannel, type TabMessage } from "../sync/tab-channel";

/** Local store, sender and channel to other tabs. Usable after `open`, because the browser opens its database asynchronously. */
export class SyncConnection {
  store!: Store;
  sender!: Sender;
  broadcast: (message: TabMessage) => void = () => undefined;

  constructor(private readonly api: Api) {}

  /** Open the store, recover changes of an earlier page, and listen to other tabs. */
  async open(
    listener: SenderListener,
    refreshToken: () => Promise<void>,
    onMessage: (message: TabMessage) => void,
  ): Promise<void> {
    this.store = await openStore();
    this.sender = new Sender(this.store, this.api, listener, refreshToken, newId, new Journal(deviceStorage()));
    await this.sender.recoverJournal();
    this.broadcast = openTabChannel(onMessage);
  }
}

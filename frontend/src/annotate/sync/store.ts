import type { Step } from "../model/update";
import { EMPTY, type Outbox } from "./outbox";

/** What a device remembers of a task besides what is to be sent. */
export interface Local {
  readonly past: readonly Step[];
  readonly future: readonly Step[];
  /** Hints that were refused, as `mark key/rule`. */
  readonly refusedHints: readonly string[];
  readonly active: number;
}

/** Where changes are kept until the server has them. */
export interface Store {
  /** Whether what is kept survives the page. */
  readonly lasting: boolean;
  /** Change a task's outbox in one piece, also when two tabs do it at once. */
  change<T>(task: string, apply: (outbox: Outbox) => [Outbox, T]): Promise<T>;
  outboxes(): Promise<Map<string, Outbox>>;
  local(task: string): Promise<Local | undefined>;
  keep(task: string, local: Local): Promise<void>;
}

/** A store that lasts, or one that does not where the browser allows none. */
export async function openStore(name = "finecomb"): Promise<Store> {
  try {
    return new Lasting(await open(name));
  } catch {
    return new Passing();
  }
}

function open(name: string): Promise<IDBDatabase> {
  const request = indexedDB.open(name, 1);
  request.onupgradeneeded = () => {
    request.result.createObjectStore("outbox");
    request.result.createObjectStore("local");
  };
  return result(request);
}

const result = <T>(request: IDBRequest<T>): Promise<T> =>
  new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error ?? new Error("the device keeps nothing"));
  });

const completed = (transaction: IDBTransaction): Promise<void> =>
  new Promise((resolve, reject) => {
    transaction.oncomplete = () => resolve();
    transaction.onabort = transaction.onerror = () =>
      reject(transaction.error ?? new Error("the device keeps nothing"));
  });

/** In IndexedDB; falls back to memory when the device is full, and says so by `lasting`. */
class Lasting implements Store {
  lasting = true;
  private readonly passing = new Passing();

  constructor(private readonly database: IDBDatabase) {}

  async change<T>(task: string, apply: (outbox: Outbox) => [Outbox, T]): Promise<T> {
    if (!this.lasting) return this.passing.change(task, apply);
    const transaction = this.database.transaction("outbox", "readwrite");
    const done = completed(transaction);
    const store = transaction.objectStore("outbox");
    const before = ((await result(store.get(task))) as Outbox | undefined) ?? EMPTY;
    const [after, value] = apply(before);
    store.put(after, task);
    try {
      await done;
    } catch {
      await this.giveUp();
      await this.passing.change(task, () => [after, undefined]);
    }
    return value;
  }

  async outboxes(): Promise<Map<string, Outbox>> {
    const store = this.database.transaction("outbox").objectStore("outbox");
    const [keys, values] = await Promise.all([result(store.getAllKeys()), result(store.getAll())]);
    const kept = new Map(keys.map((key, index) => [String(key), values[index] as Outbox]));
    return new Map([...kept, ...(await this.passing.outboxes())]);
  }

  async local(task: string): Promise<Local | undefined> {
    return (await result(this.database.transaction("local").objectStore("local").get(task))) as Local | undefined;
  }

  async keep(task: string, local: Local): Promise<void> {
    const transaction = this.database.transaction("local", "readwrite");
    transaction.objectStore("local").put(local, task);
    await completed(transaction).catch(() => this.giveUp());
  }

  /** No room: everything moves to memory, so that at least this page knows it all. */
  private async giveUp(): Promise<void> {
    for (const [task, outbox] of await this.outboxes()) await this.passing.change(task, () => [outbox, undefined]);
    this.lasting = false;
  }
}

/** In memory only. */
class Passing implements Store {
  readonly lasting = false;
  private readonly kept = new Map<string, Outbox>();
  private readonly locals = new Map<string, Local>();

  change<T>(task: string, apply: (outbox: Outbox) => [Outbox, T]): Promise<T> {
    const [after, value] = apply(this.kept.get(task) ?? EMPTY);
    this.kept.set(task, after);
    return Promise.resolve(value);
  }
  outboxes(): Promise<Map<string, Outbox>> {
    return Promise.resolve(new Map(this.kept));
  }
  local(task: string): Promise<Local | undefined> {
    return Promise.resolve(this.locals.get(task));
  }
  keep(task: string, local: Local): Promise<void> {
    this.locals.set(task, local);
    return Promise.resolve();
  }
}

import type { HistoryStep } from "../work/update-work";
import { EMPTY_OUTBOX, type Outbox } from "./outbox";

/** State of a task in the browser, other than unsent changes. */
export interface LocalTaskState {
  readonly past: readonly HistoryStep[];
  readonly future: readonly HistoryStep[];
  /** Dismissed hints, as `mark key/rule`. */
  readonly refusedHints: readonly string[];
  readonly active: number;
}

/** Storage of changes until the server has them. */
export interface Store {
  /** True if stored changes survive closing the page. */
  readonly isPersistent: boolean;
  /** Update a task's outbox atomically, also across tabs. */
  updateOutbox<T>(task: string, apply: (outbox: Outbox) => [Outbox, T]): Promise<T>;
  readOutboxes(): Promise<Map<string, Outbox>>;
  readLocalState(task: string): Promise<LocalTaskState | undefined>;
  saveLocalState(task: string, local: LocalTaskState): Promise<void>;
}

/** Open a persistent store, or one in memory if the browser allows none. */
export async function openStore(name = "finecomb"): Promise<Store> {
  try {
    return new IndexedDbStore(await openDatabase(name));
  } catch {
    return new MemoryStore();
  }
}

function openDatabase(name: string): Promise<IDBDatabase> {
  const request = indexedDB.open(name, 1);
  request.onupgradeneeded = () => {
    request.result.createObjectStore("outbox");
    request.result.createObjectStore("local");
  };
  return requestResult(request);
}

const requestResult = <T>(request: IDBRequest<T>): Promise<T> =>
  new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error ?? new Error("the device keeps nothing"));
  });

const transactionDone = (transaction: IDBTransaction): Promise<void> =>
  new Promise((resolve, reject) => {
    transaction.oncomplete = () => resolve();
    transaction.onabort = transaction.onerror = () =>
      reject(transaction.error ?? new Error("the device keeps nothing"));
  });

/**
 * Store in IndexedDB. When the disk is full or the browser closes the database, everything moves to memory for good,
 * so that this page can still send all changes; `lasting` reports this.
 */
class IndexedDbStore implements Store {
  /** State last seen by this page; the only copy after the database fails. */
  private readonly memory = new MemoryStore();
  private migration: Promise<void> | undefined;
  private isMigrated = false;

  constructor(private readonly database: IDBDatabase) {}

  get isPersistent(): boolean {
    return this.migration === undefined;
  }

  updateOutbox<T>(task: string, apply: (outbox: Outbox) => [Outbox, T]): Promise<T> {
    return this.withFallback(
      () => this.updateInDatabase(task, apply),
      () => this.memory.updateOutbox(task, apply),
    );
  }

  readOutboxes(): Promise<Map<string, Outbox>> {
    return this.withFallback(
      () => this.readFromDatabase(),
      () => this.memory.readOutboxes(),
    );
  }

  readLocalState(task: string): Promise<LocalTaskState | undefined> {
    return this.withFallback(
      () =>
        requestResult<LocalTaskState | undefined>(this.database.transaction("local").objectStore("local").get(task)),
      () => this.memory.readLocalState(task),
    );
  }

  saveLocalState(task: string, local: LocalTaskState): Promise<void> {
    return this.withFallback(
      async () => {
        const transaction = this.database.transaction("local", "readwrite");
        transaction.objectStore("local").put(local, task);
        await transactionDone(transaction);
        await this.memory.saveLocalState(task, local);
      },
      () => this.memory.saveLocalState(task, local),
    );
  }

  /** Run an operation in the database, or in memory if that fails or has failed before. */
  private async withFallback<T>(inDatabase: () => Promise<T>, inMemory: () => Promise<T>): Promise<T> {
    try {
      if (this.isPersistent) return await inDatabase();
    } catch {
      this.migration ??= this.migrateToMemory();
    }
    await this.migration;
    return inMemory();
  }

  private async updateInDatabase<T>(task: string, apply: (outbox: Outbox) => [Outbox, T]): Promise<T> {
    const transaction = this.database.transaction("outbox", "readwrite");
    const done = transactionDone(transaction);
    done.catch(() => undefined); // awaited below, unless reading fails first
    const store = transaction.objectStore("outbox");
    const [after, value] = apply({
      ...EMPTY_OUTBOX,
      ...((await requestResult(store.get(task))) as Outbox | undefined),
    });
    store.put(after, task);
    await done;
    await this.cacheOutbox(task, after);
    return value;
  }

  private async readFromDatabase(): Promise<Map<string, Outbox>> {
    const outboxes = await this.readAll<Outbox>("outbox");
    for (const [task, outbox] of outboxes) await this.cacheOutbox(task, outbox);
    return outboxes;
  }

  private cacheOutbox(task: string, outbox: Outbox): Promise<void> {
    if (this.isMigrated)
      throw new Error("the database answered after everything had moved to memory, which is ahead now");
    return this.memory.updateOutbox(task, () => [{ ...EMPTY_OUTBOX, ...outbox }, undefined]);
  }

  private async readAll<T>(name: "outbox" | "local"): Promise<Map<string, T>> {
    const store = this.database.transaction(name).objectStore(name);
    const [keys, values] = await Promise.all([requestResult(store.getAllKeys()), requestResult(store.getAll())]);
    return new Map(keys.map((key, index) => [String(key), values[index] as T]));
  }

  private async migrateToMemory(): Promise<void> {
    try {
      await this.readFromDatabase();
      for (const [task, local] of await this.readAll<LocalTaskState>("local"))
        await this.memory.saveLocalState(task, local);
    } catch {
      // reading fails as well; memory already has the last known state
    }
    this.isMigrated = true;
  }
}

/** Store in memory only. */
class MemoryStore implements Store {
  readonly isPersistent = false;
  private readonly outboxes = new Map<string, Outbox>();
  private readonly locals = new Map<string, LocalTaskState>();

  updateOutbox<T>(task: string, apply: (outbox: Outbox) => [Outbox, T]): Promise<T> {
    const [after, value] = apply(this.outboxes.get(task) ?? EMPTY_OUTBOX);
    this.outboxes.set(task, after);
    return Promise.resolve(value);
  }
  readOutboxes(): Promise<Map<string, Outbox>> {
    return Promise.resolve(new Map(this.outboxes));
  }
  readLocalState(task: string): Promise<LocalTaskState | undefined> {
    return Promise.resolve(this.locals.get(task));
  }
  saveLocalState(task: string, local: LocalTaskState): Promise<void> {
    this.locals.set(task, local);
    return Promise.resolve();
  }
}

import type { Step } from "../work/update";
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

/**
 * In IndexedDB. When the device is full or the browser closes the database, everything moves to memory for good, so that
 * at least this page knows it all and goes on sending; `lasting` says so.
 */
class Lasting implements Store {
  /** What this page saw last; all there is once the database gave out. */
  private readonly passing = new Passing();
  private moved: Promise<void> | undefined;
  private isMoved = false;

  constructor(private readonly database: IDBDatabase) {}

  get lasting(): boolean {
    return this.moved === undefined;
  }

  change<T>(task: string, apply: (outbox: Outbox) => [Outbox, T]): Promise<T> {
    return this.either(
      () => this.changed(task, apply),
      () => this.passing.change(task, apply),
    );
  }

  outboxes(): Promise<Map<string, Outbox>> {
    return this.either(
      () => this.read(),
      () => this.passing.outboxes(),
    );
  }

  local(task: string): Promise<Local | undefined> {
    return this.either(
      () => result<Local | undefined>(this.database.transaction("local").objectStore("local").get(task)),
      () => this.passing.local(task),
    );
  }

  keep(task: string, local: Local): Promise<void> {
    return this.either(
      async () => {
        const transaction = this.database.transaction("local", "readwrite");
        transaction.objectStore("local").put(local, task);
        await completed(transaction);
        await this.passing.keep(task, local);
      },
      () => this.passing.keep(task, local),
    );
  }

  /** Do something in the database, or in memory when that fails or has failed before. */
  private async either<T>(lasting: () => Promise<T>, passing: () => Promise<T>): Promise<T> {
    try {
      if (this.lasting) return await lasting();
    } catch {
      this.moved ??= this.move();
    }
    await this.moved;
    return passing();
  }

  private async changed<T>(task: string, apply: (outbox: Outbox) => [Outbox, T]): Promise<T> {
    const transaction = this.database.transaction("outbox", "readwrite");
    const done = completed(transaction);
    done.catch(() => undefined); // awaited below, unless reading fails first
    const store = transaction.objectStore("outbox");
    const [after, value] = apply({ ...EMPTY, ...((await result(store.get(task))) as Outbox | undefined) });
    store.put(after, task);
    await done;
    await this.remember(task, after);
    return value;
  }

  private async read(): Promise<Map<string, Outbox>> {
    const kept = await this.all<Outbox>("outbox");
    for (const [task, outbox] of kept) await this.remember(task, outbox);
    return kept;
  }

  private remember(task: string, outbox: Outbox): Promise<void> {
    if (this.isMoved) throw new Error("the database answered after everything had moved to memory, which is ahead now");
    return this.passing.change(task, () => [{ ...EMPTY, ...outbox }, undefined]);
  }

  private async all<T>(name: "outbox" | "local"): Promise<Map<string, T>> {
    const store = this.database.transaction(name).objectStore(name);
    const [keys, values] = await Promise.all([result(store.getAllKeys()), result(store.getAll())]);
    return new Map(keys.map((key, index) => [String(key), values[index] as T]));
  }

  private async move(): Promise<void> {
    try {
      await this.read();
      for (const [task, local] of await this.all<Local>("local")) await this.passing.keep(task, local);
    } catch {
      // it cannot be read either: what this page saw last is in memory already
    }
    this.isMoved = true;
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

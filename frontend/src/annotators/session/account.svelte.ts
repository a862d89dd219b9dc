import type { Api } from "../../lib/api";
import type { Me, Task, TaskSummary } from "../../lib/api-types";
import { deviceStorage } from "../../lib/device-storage";

const VISITED_STORAGE_KEY = "finecomb-visited";

/** Signed-in annotator with the list of texts. */
export class Account {
  me = $state.raw<Me>();

  constructor(private readonly api: Api) {}

  async signIn(): Promise<void> {
    this.me = await this.api.get<Me>("/api/me");
    this.api.token = this.me.csrf;
    deviceStorage()?.setItem(VISITED_STORAGE_KEY, "1");
  }

  /** True if an annotator was signed in on this device before, so that a first visit does not say "signed out". */
  get hasVisited(): boolean {
    return deviceStorage()?.getItem(VISITED_STORAGE_KEY) === "1";
  }

  setTaskStatus(id: string, status: TaskSummary["status"]): void {
    if (this.me)
      this.me = { ...this.me, tasks: this.me.tasks.map((task) => (task.id === id ? { ...task, status } : task)) };
  }

  /** Add a new text to the list of texts. */
  addTask({ id, number, status, phase }: Task): void {
    if (phase === "work" && this.me && !this.me.tasks.some((task) => task.id === id))
      this.me = { ...this.me, tasks: [...this.me.tasks, { id, number, status }] };
  }
}

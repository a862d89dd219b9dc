import { ServerError, UnreachableError, type Api } from "../lib/api";
import type { ErrorResponse } from "../lib/api-types";

/** Upload a file as it is, because `api` sends only JSON. */
export async function uploadFile<T>(api: Api, path: string, file: File): Promise<T> {
  const headers = { "X-Finecomb-Token": api.token, "Content-Type": "application/octet-stream" };
  const answer = await fetchOrThrow(path, { method: "POST", headers, body: file });
  return (await answer.json()) as T;
}

/** Change some fields. */
export async function patchFields<T>(api: Api, path: string, changes: unknown): Promise<T> {
  const headers = { "X-Finecomb-Token": api.token, "Content-Type": "application/json" };
  const answer = await fetchOrThrow(path, { method: "PATCH", headers, body: JSON.stringify(changes) });
  return (await answer.json()) as T;
}

/** Download a file under `name`; throw the error if the server rejects the request. */
export async function downloadFile(path: string, name: string): Promise<void> {
  const answer = await fetchOrThrow(path, {});
  const link = document.createElement("a");
  link.href = URL.createObjectURL(await answer.blob());
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

async function fetchOrThrow(path: string, options: RequestInit): Promise<Response> {
  const answer = await fetch(path, { credentials: "same-origin", ...options }).catch((cause: unknown) => {
    throw new UnreachableError(path, { cause });
  });
  if (answer.ok) return answer;
  const problem = (await answer.json().catch(() => null)) as ErrorResponse | null;
  throw problem ? new ServerError(problem) : new UnreachableError(path);
}

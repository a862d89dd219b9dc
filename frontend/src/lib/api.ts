import type { ErrorResponse } from "./api-types";

/** Error response of the server, always a `Problem`. */
export class ServerError extends Error {
  constructor(readonly problem: ErrorResponse) {
    super(problem.say);
  }
}

/** The server could not be reached, or did not respond in time. */
export class UnreachableError extends Error {}

const TIMEOUT_MS = 20_000;

/** JSON client for the server; `token` is sent with every request that changes data. */
export class Api {
  token = "";

  get = <T>(path: string): Promise<T> => this.send<T>("GET", path);
  put = <T>(path: string, body: unknown): Promise<T> => this.send<T>("PUT", path, body);
  post = <T>(path: string, body?: unknown): Promise<T> => this.send<T>("POST", path, body);
  delete = <T>(path: string): Promise<T> => this.send<T>("DELETE", path);

  private async send<T>(method: string, path: string, body?: unknown): Promise<T> {
    const headers: Record<string, string> = { Accept: "application/json" };
    if (method !== "GET") headers["X-Finecomb-Token"] = this.token;
    if (body !== undefined) headers["Content-Type"] = "application/json";
    const response = await fetch(path, {
      method,
      headers,
      body: body === undefined ? null : JSON.stringify(body),
      credentials: "same-origin",
      signal: AbortSignal.timeout(TIMEOUT_MS),
    }).catch((cause: unknown) => {
      throw new UnreachableError(path, { cause });
    });
    const content: unknown = await response.json().catch((cause: unknown) => {
      if (response.ok) throw new UnreachableError(path, { cause });
    });
    if (response.ok) return content as T;
    throw isErrorResponse(content)
      ? new ServerError(content)
      : response.status >= 500
        ? new UnreachableError(path)
        : foreignError(response);
  }
}

const isErrorResponse = (content: unknown): content is ErrorResponse =>
  typeof content === "object" && content !== null && "code" in content && "say" in content;

/** A response from another server, for example a proxy. */
const foreignError = (answer: Response): ServerError =>
  new ServerError({ code: answer.status === 401 ? "signed-out" : "not-allowed", say: answer.statusText, missing: [] });

/** Local storage of the browser, or undefined; some browsers throw on access. */
export function deviceStorage(): Storage | undefined {
  try {
    return localStorage;
  } catch {
    return undefined;
  }
}

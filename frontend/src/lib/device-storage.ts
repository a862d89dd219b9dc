/** What the device keeps beyond the page, if anything: some browsers refuse even to be asked. */
export function deviceStorage(): Storage | undefined {
  try {
    return localStorage;
  } catch {
    return undefined;
  }
}

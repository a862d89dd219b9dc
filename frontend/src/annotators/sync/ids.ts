/** Return a new ID, also without HTTPS, where `crypto.randomUUID` is missing. */
export const newId = (): string =>
  [...crypto.getRandomValues(new Uint8Array(12))].map((byte) => byte.toString(36).padStart(2, "0")).join("");

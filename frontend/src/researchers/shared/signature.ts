/** Parse the `name:value` pairs of a signature; values may contain colons. */
export const signatureFields = (signature: string): [name: string, value: string][] =>
  signature
    .split("|")
    .filter((each) => each !== "")
    .map((each) => {
      const colon = each.indexOf(":");
      return [each.slice(0, colon), each.slice(colon + 1)];
    });

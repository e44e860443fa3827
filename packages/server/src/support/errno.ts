import { isErrno } from "@sandboxer/protocol/errors";

export function hasCode(thrown: unknown, ...codes: readonly string[]): boolean {
  return isErrno(thrown) && thrown.code !== undefined && codes.includes(thrown.code);
}

/** For `catch`: undefined if the file system failed with one of these codes; everything else is rethrown. */
export function undefinedIf(...codes: readonly string[]): (thrown: unknown) => undefined {
  return (thrown) => {
    if (!hasCode(thrown, ...codes)) throw thrown;
  };
}

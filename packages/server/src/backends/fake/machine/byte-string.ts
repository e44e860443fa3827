/**
 * Inside the machine every string contains bytes, one per character (Latin-1), so that output that is not UTF-8
 * survives variables, pipes and JSON. Text is converted to bytes where it enters (argv, environment) and back for file
 * names.
 */
export const fromText = (text: string): string => Buffer.from(text, "utf8").toString("latin1");
export const toText = (bytes: string): string => Buffer.from(bytes, "latin1").toString("utf8");
export const toBytes = (bytes: string): Buffer => Buffer.from(bytes, "latin1");
export const fromBytes = (bytes: Uint8Array): string => Buffer.from(bytes).toString("latin1");

/**
 * Inside the machine every string holds bytes, one a character (Latin-1), so that output which is no UTF-8 survives
 * variables, pipes and JSON. Text is turned into bytes where it enters (argv, environment) and back for file names.
 */
export const fromText = (text: string): string => Buffer.from(text, "utf8").toString("latin1");
export const toText = (bytes: string): string => Buffer.from(bytes, "latin1").toString("utf8");
export const toBytes = (bytes: string): Buffer => Buffer.from(bytes, "latin1");
export const fromBytes = (bytes: Uint8Array): string => Buffer.from(bytes).toString("latin1");

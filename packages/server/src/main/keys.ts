/** The keys of a data directory, for the CLI: no server is needed. */
export { KeyFile } from "../gateway/access/key-file.ts";
export { keyStatus, type KeyRecord } from "../gateway/access/key-records.ts";

/** The numbers of agent/PROTOCOL.md. */
export const PROTOCOL_VERSION = 1;
export const MAX_FRAME_BYTES = 1_048_576;

export const Request = {
  hello: 0x01,
  ping: 0x02,
  spawn: 0x03,
  stdin: 0x04,
  stdinClose: 0x05,
  signal: 0x06,
  resize: 0x07,
  window: 0x08,
  processes: 0x09,
  forget: 0x0a,
  quiesce: 0x0b,
  resume: 0x0c,
  restored: 0x0d,
  freeze: 0x0e,
  thaw: 0x0f,
  fileStat: 0x10,
  fileList: 0x11,
  fileRead: 0x12,
  fileWrite: 0x13,
  fileMakeFolder: 0x14,
  fileRemove: 0x15,
  fileRename: 0x16,
  fileSymlink: 0x17,
  fileSet: 0x18,
  fileLink: 0x19,
  fileAttributes: 0x1a,
  fileSetAttribute: 0x1b,
  connect: 0x20,
  connectionWrite: 0x21,
  connectionClose: 0x22,
  connectionWindow: 0x23,
  listen: 0x24,
  processTable: 0x30,
  resync: 0x31,
  resyncToken: 0x32,
  user: 0x33,
} as const;

export const Reply = {
  ok: 0x80,
  error: 0x81,
  output: 0xc0,
  exit: 0xc1,
  connectionData: 0xc2,
  connectionClosed: 0xc3,
  ready: 0xc4,
  resynced: 0xc5,
  connectionAccepted: 0xc6,
} as const;

export type RequestType = (typeof Request)[keyof typeof Request];

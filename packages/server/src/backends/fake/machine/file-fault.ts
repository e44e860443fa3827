import { SandboxerError, type ErrorCode } from "@sandboxer/protocol";

/** Errors of file calls inside: the text that a program prints, and the code for a caller of the backend. */
const FAULTS = {
  ENOENT: { text: "No such file or directory", code: "file_not_found" },
  ENOTDIR: { text: "Not a directory", code: "bad_request" },
  EISDIR: { text: "Is a directory", code: "bad_request" },
  EEXIST: { text: "File exists", code: "bad_request" },
  ENOTEMPTY: { text: "Directory not empty", code: "bad_request" },
  ELOOP: { text: "Too many levels of symbolic links", code: "bad_request" },
  EINVAL: { text: "Invalid argument", code: "bad_request" },
  EPERM: { text: "Operation not permitted", code: "permission_denied" },
  EACCES: { text: "Permission denied", code: "permission_denied" },
  EFBIG: { text: "File too large", code: "limit_reached" },
  ENOSPC: { text: "No space left on device", code: "no_space" },
} as const satisfies Record<string, { text: string; code: ErrorCode }>;

export class FileFault extends Error {
  readonly errno: keyof typeof FAULTS;

  constructor(errno: keyof typeof FAULTS) {
    super(FAULTS[errno].text);
    this.errno = errno;
  }

  toSandboxerError(path: string): SandboxerError {
    return new SandboxerError(FAULTS[this.errno].code, `${path}: ${this.message}.`, {
      cause: this,
      details: { path, errno: this.errno },
    });
  }
}

/** The problem of a source, as the end of a sentence. */
export class SecretProblem extends Error {}

/** The kernel's limit for a variable is 128 KiB. */
export const MAX_SECRET_BYTES = 64 * 1024;

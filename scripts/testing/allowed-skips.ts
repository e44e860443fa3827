/** A test that may be skipped where its needs cannot be met, also with CI=true. */
export interface AllowedSkip {
  /** Its whole name, as the summary says it. */
  readonly test: RegExp;
  readonly because: string;
}

/** By name, each with the reason why it cannot be avoided. */
export const ALLOWED_SKIPS: readonly AllowedSkip[] = [
  {
    test: /^on Google storage-testbench has Google storage-testbench$/,
    because: "Its source is on GitHub only, which not every machine reaches; fake-gcs-server is always there.",
  },
  {
    test: /^the driver on Python 3\.8 /,
    because:
      "Python 3.8 gets no releases any more, and few machines have it; another test checks the driver's grammar.",
  },
];

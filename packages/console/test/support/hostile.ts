/** Texts that set `pwned` if they are treated as anything but text. */
export const HOSTILE: readonly string[] = [
  "<script>window.pwned=1</script>",
  `<img src=x onerror="window.pwned=1">`,
  `"><svg onload=window.pwned=1><"`,
  `' onmouseover='window.pwned=1' onfocus='window.pwned=1' autofocus='`,
  "</textarea></title></style></pre><script>window.pwned=1</script>",
  `<iframe srcdoc="<script>parent.pwned=1</script>"></iframe>`,
  "javascript:window.pwned=1",
  "data:text/html,<script>opener.pwned=1</script>",
  "{{constructor.constructor('window.pwned=1')()}} ${window.pwned=1} <%= window.pwned=1 %>",
  "url(javascript:window.pwned=1);}*{display:none!important}",
  // A title, a link, the clipboard, another screen, a query that a terminal answers.
  "\u001B]0;pwned\u0007",
  "\u001B]8;;javascript:window.pwned=1\u0007click here\u001B]8;;\u0007",
  "\u001B]52;c;cHduZWQ=\u0007",
  "\u001B[?1049h\u001B[2J\u001B[6n\u001B[>c\u001BP+q544e\u001B\\",
  // Reversed, invisible, with line breaks, with invalid bytes.
  "invoice\u202Egnp.exe\u202C",
  "\u200B\uFEFF\u2028\u2029zero\u0000width\u0001\u007F\u009B31m",
  "first line\r\nsecond line\ttab",
  "half of a pair \uD83D",
  "%3Cscript%3Ewindow.pwned=1%3C/script%3E %00 ..%2F..%2Fetc%2Fpasswd",
  "__proto__",
  "constructor",
  "A".repeat(1000),
  "ﷺ".repeat(100),
  "Z̷̢̛".repeat(50),
];

/** In the form of file names. */
export const HOSTILE_FILE_NAMES: readonly string[] = HOSTILE.map((text) =>
  text.replaceAll("/", "∕").replaceAll("\0", "").toWellFormed().slice(0, 60),
);

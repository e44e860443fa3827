import { quoteForShell } from "../../../support/shell-quote.ts";

/**
 * The script that runs a program inside a session. A session of the daemon keeps lines of text: it adds newlines, drops
 * NUL bytes, cannot end stdin and keeps unbounded output. So a program's bytes are sent as base64 lines, its stdin comes
 * as commands, and it waits when its output is not read. Needs sh, base64, cat, dd, env, mkfifo and setsid, and tr for
 * a pause. https://www.daytona.io/docs/en/process-code-execution/#sessions
 *
 * | line from inside | meaning |
 * |---|---|
 * | `n folder`, `n program` | not started: that is not there |
 * | `p PID TOKEN FOLDER` | started; TOKEN ends each stream; FOLDER takes larger pieces of stdin |
 * | `oBASE64`, `eBASE64` | output, on the stream of the same name |
 * | `w` | a piece of stdin was taken |
 * | `x CODE` | ended; the streams end after their tokens |
 *
 * | line to it | meaning |
 * |---|---|
 * | `i BASE64`, `f NAME`, `c` | stdin: these bytes, the file of that name in FOLDER, its end |
 * | `a BYTES`, `b BYTES` | stdout, stderr may continue to this offset |
 * | `q` | everything was read: clean up |
 */
export const BRIDGE_TOOLS = ["base64", "cat", "dd", "env", "mkfifo", "setsid", "tr"] as const;

export const BRIDGE_MARK = "sandboxer-bridge";
export const HELPER_MARK = "sandboxer-helper";

/** How much of a stream may be sent without an acknowledgement. */
export const CREDIT_BYTES = 256 << 10;

/**
 * How many base64 lines of 76 characters make one of ours. It must be one atomic write to a pipe: busybox with musl
 * splits writes over 1024 bytes, and other output may come in between.
 */
const LINES_IN_ONE = 13;
const FIRST_LINES = Array.from({ length: LINES_IN_ONE }, (_, index) => `"\${${index + 1}}"`).join(" ");

/**
 * Reads as much as a pipe holds, and sends it as lines. It counts exactly as the reader does: an overcount would add up
 * over many pieces, until it waited for an acknowledgement that never comes. Processes are expensive in some sandboxes,
 * so a piece takes two programs, and the shell does the rest.
 */
const ENCODE = `n=0 max=$3 k=$1 a=$2
while :; do
  while [ "$n" -ge "$max" ]; do read -r more <&"$a" || exit; [ "$more" -gt "$max" ] && max=$more; done
  c=$(dd bs=65536 count=1 2>/dev/null | base64)
  [ -n "$c" ] || exit
  set -- $c
  n=$((n + (\${#c} - $# + 1) / 4 * 3))
  case $c in *==) n=$((n - 2)) ;; *=) n=$((n - 1)) ;; esac
  while :; do
    printf "$k${"%s".repeat(LINES_IN_ONE)}\\n" ${FIRST_LINES}
    [ $# -gt ${LINES_IN_ONE} ] || break
    shift ${LINES_IN_ONE}
  done
done`;

/** Holds the writing end of stdin; confirms each piece. The tokens come from here, so after the last confirmation. */
const FEED = `while read -r k v; do
  case $k in
    i) printf %s "$v" | base64 -d >&4; echo w ;;
    f) cat "$1/$v" >&4; rm -f "$1/$v"; echo w ;;
    c) exec 4>&- ;;
    t) printf %s "$2" >&5; printf %s "$2" >&6 ;;
  esac
done`;

/**
 * In a session of their own: they are ended together, and signals to the program do not reach them. `exec` closes
 * descriptors that must not be held; a call with such redirections keeps them open to restore them afterwards.
 */
const HELPERS = `encode() {
${ENCODE}
}
(exec <&5 4>&- 5>&- 6>&- 8>&- 9>&-; encode o 7 ${CREDIT_BYTES}) &
(exec <&6 >&2 4>&- 5>&- 6>&- 7>&- 9>&-; encode e 8 ${CREDIT_BYTES}) &
exec <&9 7>&- 8>&- 9>&-
${FEED}`;

/** Arguments: the folder, the token, the working folder, the program, then variables and command as `env` takes them. */
export const BRIDGE = `d=$1 t=$2 w=$3 p=$4 u=$(umask); shift 4
umask 077
cd "$w" 2>/dev/null || { echo "n folder"; exit 0; }
command -v -- "$p" >/dev/null 2>&1 || { echo "n program"; exit 0; }
mkdir "$d" && mkfifo "$d/in" "$d/out" "$d/err" "$d/a" "$d/b" "$d/feed" || exit 125
exec 3<&0 4<>"$d/in" 5<>"$d/out" 6<>"$d/err" 7<>"$d/a" 8<>"$d/b" 9<>"$d/feed" </dev/null
setsid sh -c ${quoteForShell(HELPERS)} ${HELPER_MARK} "$d" "$t" 3<&- &
h=$!
exec 4>&-
{
  while read -r k v; do
    case $k in
      a) echo "$v" >&7 ;;
      b) echo "$v" >&8 ;;
      i|f|c) echo "$k $v" >&9 ;;
      q) break ;;
    esac
  done
  kill -s TERM -- -$h 2>/dev/null
  # Background processes of the program may still write.
  for s in out err; do
    exec 4<"$d/$s"
    setsid cat <&4 >/dev/null 2>&1 3<&- 4<&- 5>&- 6>&- 7>&- 8>&- 9>&- &
  done
  rm -rf "$d"
} <&3 &
l=$!
( exec setsid sh -c 'echo "p $$ $1 $2" >&9; exec 9>&-; umask "$3"; shift 3; exec env "$@"' start "$t" "$d" "$u" "$@" 9>&1 <"$d/in" >"$d/out" 2>"$d/err" 3<&- 5>&- 6>&- 7>&- 8>&- )
c=$?
echo "x $c"
# Unread input must not block the steps after this.
cat <>"$d/in" >/dev/null 2>&1 3<&- 5>&- 6>&- 7>&- 8>&- 9>&- &
e=$!
echo t >&9
exec 5>&- 6>&- 7>&- 8>&- 9>&-
wait $l
kill $e
exit $c`;

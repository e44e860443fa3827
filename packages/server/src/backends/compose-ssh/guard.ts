/**
 * Runs the script that is its argument as a process group of its own, and ends that group when standard input ends: so
 * it does when the connection is lost, or when this server is. Nothing on the host goes on for nobody. Compose
 * takes the first signal for a wish, so a second one follows. No `--` for kill: not every shell knows it.
 */
export const GUARD = `exec 3<&0
setsid sh -c "$1" sh < /dev/null 3<&- & child=$!
{ cat <&3; kill -TERM "-$child"; sleep 2; kill -KILL "-$child"; } > /dev/null 2>&1 & watch=$!
exec 3<&-
wait "$child"; code=$?
kill "$watch" 2> /dev/null
exit "$code"
`;

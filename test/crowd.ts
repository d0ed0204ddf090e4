import { readFileSync } from 'node:fs';

/** So many more than any test has that begins or ends meanwhile. */
const many = 1_000;

export interface Crowd {
  /** So many numbers of processes are left on the machine when nearly all of the crowd is there. */
  readonly threshold: number;
  /** For a shell in a container: processes that wait, so many that less than that is left, whoever else ends. */
  readonly script: string;
}

/** Makes a machine short of processes on which others are at work as well; for one test at a time. */
export function crowdOfMachine(): Crowd {
  const most = (name: string) => Number(readFileSync(`/proc/sys/kernel/${name}`, 'utf8'));
  const tasks = Number(/\d+\/(\d+)/.exec(readFileSync('/proc/loadavg', 'utf8'))?.[1]);
  const limit = Math.min(most('pid_max'), most('threads-max'));
  const threshold = limit - tasks - many;
  const expected = limit - threshold + many / 4;
  const script = `mkfifo /gate
i=0
while true; do
  read -r a b c tasks d </proc/loadavg
  if [ \${tasks#*/} -lt ${expected} ] && [ $i -lt ${2.5 * many} ]; then
    n=$((i + 100))
    while [ $i -lt $n ]; do (read -r x </gate) & i=$((i + 1)); done
  else
    sleep 0.1
  fi
done`;
  return { threshold, script };
}

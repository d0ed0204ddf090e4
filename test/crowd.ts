import { readFileSync } from 'node:fs';

/**
 * The safety margin in processes: more than other programs of the machine may start or end during
 * the test.
 */
const many = 1_000;

export interface Crowd {
  /**
   * The number of process IDs that are left on the machine when nearly all processes of the script
   * run.
   */
  readonly threshold: number;
  /**
   * A shell script for a container: it starts waiting processes until fewer process IDs than the
   * threshold are left, even if other processes exit.
   */
  readonly script: string;
}

/**
 * Computes how to exhaust the process IDs of a machine that other programs use too; for one test at
 * a time.
 */
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

import { readFile } from 'node:fs/promises';

/** The kernel counts in hundredths of a second on every machine we know. */
const tickMs = 10;

/** What a process has used so far, and what it holds now. */
export async function processFigures(
  pid: number,
): Promise<{ readonly cpuMs: number; readonly residentMb: number }> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8');
  // The name before it may hold spaces and brackets.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  const kb = Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]);
  return { cpuMs: (Number(fields[11]) + Number(fields[12])) * tickMs, residentMb: kb / 1_024 };
}

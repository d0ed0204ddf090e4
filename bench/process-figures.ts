import { readFile } from 'node:fs/promises';

/** The clock tick of /proc/PID/stat, 1/100 s on every supported machine. */
const tickMs = 10;

/** Returns the CPU time that a process has used so far, and its resident memory. */
export async function processFigures(
  pid: number,
): Promise<{ readonly cpuMs: number; readonly residentMb: number }> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8');
  // In /proc/PID/stat the process name is in parentheses and may itself contain spaces and
  // parentheses, so the fields start after the last parenthesis.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  const kb = Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]);
  return { cpuMs: (Number(fields[11]) + Number(fields[12])) * tickMs, residentMb: kb / 1_024 };
}

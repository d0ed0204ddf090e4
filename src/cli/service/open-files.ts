import { readFile } from 'node:fs/promises';
import { type Clock, type Logger, runChecked } from '../../lib/index.ts';

export interface OpenFilesDeps {
  readonly clock: Clock;
  readonly logger: Logger;
}

const withinMs = 10_000;

/** Lets this process open so many files (`maxOpenFiles`). What the kernel refuses is only told: fewer do for most. */
export async function allowOpenFiles(
  wanted: number,
  { clock, logger }: OpenFilesDeps,
  signal: AbortSignal,
): Promise<void> {
  try {
    const { soft, hard } = openFileLimits(await readFile('/proc/self/limits', 'utf8'));
    if (wanted === 0 || (soft >= wanted && hard >= wanted)) return;
    const limits = `--nofile=${wanted}:${Math.max(wanted, hard)}`;
    const args = ['--pid', String(process.pid), limits];
    await runChecked({ file: 'prlimit', args, clock, deadlineMs: withinMs }, signal);
  } catch (error) {
    if (!signal.aborted) logger.error('Cannot raise the limit of open files', error, { wanted });
  }
}

/** From the text of /proc/self/limits. */
export function openFileLimits(text: string): { readonly soft: number; readonly hard: number } {
  const [, soft, hard] = /^Max open files\s+(\S+)\s+(\S+)/m.exec(text) ?? [];
  return { soft: limitOf(soft), hard: limitOf(hard) };
}

function limitOf(word: string | undefined): number {
  return word === 'unlimited' ? Number.MAX_SAFE_INTEGER : Number(word ?? 0);
}

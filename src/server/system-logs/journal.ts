import { spawn } from 'node:child_process';
import { PassThrough } from 'node:stream';
import { type Clock, KubelingError, onAbort, runCommand } from '../../lib/index.ts';
import type { JournalOptions } from './node-log-query.ts';

/** Reads systemd's journal of the host. */
export interface Journal {
  /** Names of all units with journal entries; empty when the host has no journal. */
  units(signal: AbortSignal): Promise<ReadonlySet<string>>;
  /** Streams journal entries of the units. Ends when journalctl exits or the signal is aborted. */
  read(units: readonly string[], options: JournalOptions, signal: AbortSignal): AsyncIterable<Uint8Array>;
}

const listWithinMs = 30_000;
const maxListBytes = 4 * 1024 * 1024;

export function systemJournal(clock: Clock, program = 'journalctl'): Journal {
  return {
    async units(signal) {
      const command = { file: program, args: ['--field', '_SYSTEMD_UNIT'], clock };
      const limits = { deadlineMs: listWithinMs, maxOutputBytes: maxListBytes };
      // A failure of journalctl means that the host has no journal and its services log to files.
      const result = await runCommand({ ...command, ...limits }, signal).catch((error) => {
        signal.throwIfAborted();
        if (error instanceof KubelingError) return undefined;
        throw error;
      });
      const isSuccess = result?.end.kind === 'exited' && result.end.code === 0;
      return new Set(isSuccess ? result.stdout.split('\n').filter((line) => line !== '') : []);
    },
    read: (units, options, signal) => stream(program, journalArguments(units, options), signal),
  };
}

/**
 * Arguments of journalctl. Each value is one argument: no shell parses them, and none starts with
 * user input.
 */
export function journalArguments(units: readonly string[], options: JournalOptions): readonly string[] {
  const { sinceMs, untilMs, tailLines, boot, pattern } = options;
  return [
    ...['--utc', '--no-pager', '--output=short-precise'],
    ...(sinceMs === undefined ? [] : [`--since=${journalTime(sinceMs)}`]),
    ...(untilMs === undefined ? [] : [`--until=${journalTime(untilMs)}`]),
    ...(tailLines === undefined ? [] : ['--pager-end', `--lines=${tailLines}`]),
    ...units.map((unit) => `--unit=${unit}`),
    ...(pattern === undefined ? [] : [`--grep=${pattern}`]),
    ...(boot === undefined ? [] : [`--boot=${boot}`]),
  ];
}

/** Formats a time in UTC, as journalctl expects it. */
function journalTime(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 19).replace('T', ' ')} UTC`;
}

async function* stream(
  program: string,
  args: readonly string[],
  signal: AbortSignal,
): AsyncGenerator<Uint8Array> {
  const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'] });
  // Combines stdout and stderr of journalctl, because its errors are shown to the client too.
  const said = new PassThrough();
  for (const output of [child.stdout, child.stderr]) output.pipe(said, { end: false });
  child.once('error', (cause) =>
    said.destroy(new KubelingError('COMMAND_FAILED', `Cannot run ${program}`, { cause })),
  );
  child.once('close', () => said.end());
  using _link = onAbort(signal, () => child.kill('SIGKILL'));
  try {
    for await (const chunk of said as AsyncIterable<Buffer>) yield chunk;
  } finally {
    child.kill('SIGKILL');
  }
}

/** A container that logs as fast as it can, and checks of its log while it runs. */
import { Worker } from 'node:worker_threads';
import { realClock } from '../src/lib/index.ts';
import { ContainerLogs, realLogFiles } from '../src/runtime/index.ts';
import type { InProcessNode } from '../test/in-process-node.ts';

const lineBytes = 1_024;

/**
 * The number of lines in the file that the container prints again and again, because `cat` is
 * faster than any program in the container that generates numbers. So the line numbers restart at 0
 * after this many lines.
 */
const linesOfBlock = 20_011;

/**
 * Writes numbered lines of equal length as fast as the runtime accepts them, for the given time. A
 * pause after each block of 20 MB makes a test independent of the load of the machine, because only
 * a limited amount of rotated log is retained for a slow follower.
 */
export function floodScript(seconds: number, pauseSeconds = 0): string {
  const awk = `BEGIN { pad = sprintf("%${lineBytes - 14}s", ""); gsub(/ /, "x", pad); for (i = 0; i < ${linesOfBlock}; i++) printf "%012d %s\\n", i, pad }`;
  // `exec 2>/dev/null` discards the shell's report of a child that was killed by a signal, because
  // the report is not a numbered line.
  return `exec 2>/dev/null; awk '${awk}' >/block; timeout ${seconds} sh -c 'while true; do cat /block; sleep ${pauseSeconds}; done'; while true; do sleep 1; done`;
}

export interface Followed {
  readonly bytes: number;
  /** Describes the first line whose number does not follow the number of the previous line. */
  readonly problem: string | undefined;
}

/** Follows a log until `until` holds, and checks that its line numbers are consecutive. */
export async function followFlood(
  node: InProcessNode,
  name: string,
  until: () => boolean,
): Promise<Followed> {
  const podLogsDir = node.podLogs;
  const { cri } = node.runtime;
  const followers = node.kubelet.runtime.logFollowers;
  const deps = { clock: realClock(), cri, podLogsDir, files: realLogFiles(podLogsDir), followers };
  const pod = await node.podIs(name, 'running', ({ phase }) => phase === 'Running');
  const controller = new AbortController();
  const { signal } = controller;
  const log = await new ContainerLogs(deps).open(
    { pod, container: 'main', instance: { which: 'newest' }, view: {}, follow: 'until-ended' },
    signal,
  );
  if (log.kind !== 'open') throw new Error(log.message);
  let bytes = 0;
  let problem: string | undefined;
  const watch = setInterval(() => {
    if (until()) controller.abort(new Error('enough'));
  }, 200);
  try {
    for await (const chunk of log.chunks) {
      problem ??= checkChunk(chunk, bytes);
      bytes += chunk.length;
    }
  } catch (error) {
    if (!signal.aborted) throw error;
  } finally {
    clearInterval(watch);
  }
  return { bytes, problem };
}

/** All lines have the same length, so the offset of a line determines its expected number. */
function checkChunk(chunk: Uint8Array, from: number): string | undefined {
  const skip = (lineBytes - (from % lineBytes)) % lineBytes;
  const last = Math.floor((chunk.length - skip) / lineBytes) - 1;
  for (const line of last > 0 ? [0, last] : [0]) {
    const at = skip + line * lineBytes;
    if (at + 12 > chunk.length) return undefined;
    const observed = Buffer.from(chunk.subarray(at, at + 12)).toString('latin1');
    const expected = String(((from + at) / lineBytes) % linesOfBlock).padStart(12, '0');
    if (observed !== expected) return `after ${from} bytes there is line ${observed} instead of ${expected}`;
  }
  return undefined;
}

/**
 * Samples the total size of the files below a directory in a worker thread, and records the
 * maximum.
 */
export class SizeWatch implements AsyncDisposable {
  readonly #worker: Worker;
  readonly #shared = new Float64Array(new SharedArrayBuffer(16));

  constructor(directory: string) {
    const code = `
      const { readdirSync, lstatSync } = require('node:fs');
      const { workerData: { directory, shared } } = require('node:worker_threads');
      const sleeper = new Int32Array(new SharedArrayBuffer(4));
      const sizeOf = (dir) => readdirSync(dir, { withFileTypes: true }).reduce((sum, entry) => {
        const path = dir + '/' + entry.name;
        if (entry.isDirectory()) return sum + sizeOf(path);
        return sum + (lstatSync(path, { throwIfNoEntry: false })?.size ?? 0);
      }, 0);
      for (;;) {
        try { shared[1] = sizeOf(directory); shared[0] = Math.max(shared[0], shared[1]); } catch {}
        Atomics.wait(sleeper, 0, 0, 20);
      }`;
    const workerData = { directory, shared: this.#shared };
    this.#worker = new Worker(code, { eval: true, workerData });
  }

  get most(): number {
    return this.#shared[0] ?? 0;
  }

  get now(): number {
    return this.#shared[1] ?? 0;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#worker.terminate();
  }
}

import { onAbort } from '../../lib/index.ts';
import { outputClosed, type Stdio } from '../streams/stdio.ts';

/** Where logs are printed. */
export interface LogOutput {
  /**
   * Writes the bytes; resolves when more may be written. Rejects when aborted; the caller aborts on
   * `closed`.
   */
  write(bytes: Uint8Array, signal: AbortSignal): Promise<void>;
  /** Aborted when the reader of the output closes it, as in `| head`. */
  readonly closed: AbortSignal;
}

export function logOutput(stdio: Stdio): LogOutput {
  const { stdout } = stdio;
  return {
    closed: outputClosed(stdio),
    write: (bytes, signal) => (stdout.write(bytes) ? Promise.resolve() : drained(stdout, signal)),
  };
}

function drained(stdout: Stdio['stdout'], signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const go = () => {
      link[Symbol.dispose]();
      resolve();
    };
    const link = onAbort(signal, (reason) => {
      stdout.off('drain', go);
      reject(reason);
    });
    stdout.once('drain', go);
  });
}

const newline = 0x0a;
const longestHeldBytes = 1 << 20;

/**
 * The output of one of several logs: prints complete lines with a prefix. A line longer than a
 * megabyte is split.
 */
export function lineOutput(
  output: LogOutput,
  prefix: string,
): LogOutput & { flush(signal: AbortSignal): Promise<void> } {
  const mark = Buffer.from(prefix);
  let held: Uint8Array = new Uint8Array(0);
  let isLineStart = true;
  const marked = (bytes: Uint8Array): Buffer => {
    const out: Uint8Array[] = [];
    for (let at = 0; at < bytes.length; ) {
      const end = bytes.indexOf(newline, at) + 1 || bytes.length;
      if (isLineStart) out.push(mark);
      out.push(bytes.subarray(at, end));
      isLineStart = bytes[end - 1] === newline;
      at = end;
    }
    return Buffer.concat(out);
  };
  return {
    closed: output.closed,
    async write(bytes, signal) {
      const all = Buffer.concat([held, bytes]);
      const completeLength = all.length > longestHeldBytes ? all.length : all.lastIndexOf(newline) + 1;
      held = all.subarray(completeLength);
      if (completeLength > 0) await output.write(marked(all.subarray(0, completeLength)), signal);
    },
    async flush(signal) {
      if (held.length > 0) await output.write(marked(Buffer.concat([held, Uint8Array.of(newline)])), signal);
      held = new Uint8Array(0);
    },
  };
}

import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';

/** A failure that the user can fix: its message says how, and no stack is shown. */
export class SetupError extends Error {
  constructor(message, exitCode = 1) {
    super(message);
    this.exitCode = exitCode;
  }
}

const heartbeatMs = 5_000;
const limitMs = 30 * 60_000;
const keptLines = 12;
const looksLikeError = /^(npm (error|ERR!)\s+(?!at )\S|E: |Err:)/;

/**
 * Runs a command to its end and returns { code, words }: the first lines of its output that look
 * like errors of npm or apt, or else the last lines of its output. While it runs, progress is shown
 * every few seconds: the latest text that `progress(line)` returned for a line of output. Ctrl-C is
 * passed on, and the command is awaited before the set-up ends, so that it is never left half done.
 */
export function runTask(host, { command, args, env, cwd, progress }) {
  return new Promise((resolve, reject) => {
    const started = performance.now();
    const child = spawn(command, args, { cwd, env, stdio: ['ignore', 'pipe', 'pipe'] });
    let text = 'working';
    let stopped;
    const errors = [];
    const last = [];
    const takeLine = (line) => {
      text = progress(line) ?? text;
      if (looksLikeError.test(line) && errors.length < keptLines) errors.push(line);
      if (last.push(line) > keptLines) last.shift();
    };
    const beat = setInterval(() => {
      host.say(`  ${text}, ${Math.round((performance.now() - started) / 1000)} s`);
    }, heartbeatMs);
    const limit = setTimeout(() => child.kill('SIGTERM'), limitMs);
    const stop = (signal) => {
      stopped = signal;
      child.kill(signal);
    };
    const end = () => {
      clearInterval(beat);
      clearTimeout(limit);
      process.off('SIGINT', stop);
      process.off('SIGTERM', stop);
    };
    process.on('SIGINT', stop);
    process.on('SIGTERM', stop);
    createInterface({ input: child.stdout }).on('line', takeLine);
    createInterface({ input: child.stderr }).on('line', takeLine);
    child.once('error', (error) => {
      end();
      reject(new SetupError(`Cannot run ${command}: ${error.message}`));
    });
    child.once('close', (code, signal) => {
      end();
      if (stopped !== undefined) reject(new SetupError(`stopped by ${stopped}`, 130));
      else resolve({ code: code ?? signal, words: (errors.length > 0 ? errors : last).join('\n') });
    });
  });
}

/**
 * Returns the environment for npm without its compile cache: npm loads compiled code from a directory below /tmp that any user may have
 * created first.
 */
export function withoutSharedCache(env) {
  return { ...env, NODE_DISABLE_COMPILE_CACHE: '1' };
}

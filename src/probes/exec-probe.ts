import { type Clock, formatDurationMs, KubelingError, type Logger, withDeadline } from '../lib/index.ts';
import {
  type ExecAction,
  failure,
  maxOutputBytes,
  type ProbeRequest,
  type ProbeResponse,
} from './probe-request.ts';

/**
 * Runs a command in a container. Rejects with CRI_EXEC_TIMEOUT when the runtime reports a timeout.
 */
export interface CommandRunner {
  execSync(
    request: {
      readonly containerId: string;
      readonly command: readonly string[];
      readonly timeoutSeconds: number;
    },
    signal: AbortSignal,
  ): Promise<{ readonly exitCode: number; readonly output: Uint8Array }>;
}

export interface ExecProbesDeps {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly runner: CommandRunner;
}

/** The time that the runtime gets beyond the command's timeout to report the timeout. */
const graceMs = 5_000;
/**
 * The time after the command's timeout at which an unanswered call is cancelled, so that the probe
 * starts commands again.
 */
const cancelMs = 30_000;

/**
 * Runs exec probes. The runtime may respond to an ExecSync call long after the timeout, for example
 * when a child process keeps the output open: the probe then fails shortly after the timeout, and
 * starts no other command until the call has ended or is cancelled.
 */
export class ExecProbes {
  readonly #deps: ExecProbesDeps;
  readonly #inFlight = new Set<string>();

  constructor(deps: ExecProbesDeps) {
    this.#deps = deps;
  }

  /** The number of ExecSync calls in flight. */
  get size(): number {
    return this.#inFlight.size;
  }

  async probe(request: ProbeRequest<ExecAction>, signal: AbortSignal): Promise<ProbeResponse> {
    // The message omits the arguments of the command, which may be secrets, because it becomes an
    // event.
    const program = JSON.stringify(request.action.command[0] ?? '');
    if (this.#inFlight.has(keyOf(request))) {
      this.#warn('Skipped exec probe, previous command still runs', request);
      return failure(`command timed out: ${program} of an earlier probe still runs`);
    }
    const call = this.#start(request, signal);
    const limits = { clock: this.#deps.clock, ms: request.timeoutMs + graceMs, what: 'end a command' };
    try {
      const { exitCode, output } = await withDeadline(limits, () => call, signal);
      const text = Buffer.from(output).subarray(0, maxOutputBytes).toString('utf8');
      return exitCode === 0 ? { is: 'success', output: text } : failure(text);
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof KubelingError) || error.kind !== 'DeadlineExceeded') throw error;
      if (error.code === 'DEADLINE_EXCEEDED') this.#warn('Runtime did not end the probe command', request);
      const limit = formatDurationMs(request.timeoutMs);
      return failure(`command timed out: ${program} timed out after ${limit}`);
    }
  }

  #start(request: ProbeRequest<ExecAction>, signal: AbortSignal) {
    const { containerId, action, timeoutMs } = request;
    const key = keyOf(request);
    this.#inFlight.add(key);
    const timeoutSeconds = Math.ceil(timeoutMs / 1_000);
    const command = { containerId, command: action.command, timeoutSeconds };
    const limits = { clock: this.#deps.clock, ms: timeoutMs + cancelMs, what: 'end a command' };
    const call = withDeadline(limits, (inner) => this.#deps.runner.execSync(command, inner), signal);
    const end = () => void this.#inFlight.delete(key);
    call.then(end, end);
    return call;
  }

  #warn(message: string, { podUid, container, type }: ProbeRequest): void {
    this.#deps.logger.warn(message, { podUid, container, probe: type });
  }
}

function keyOf({ type, containerId }: ProbeRequest): string {
  return `${type}/${containerId}`;
}
